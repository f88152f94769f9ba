"""Measures the checkpoints of a trained run: `measure(run)` writes one small file for each, and skips those there.

A file `DIR/runs/<id>/measure/<measurement-id>.json` says what was measured and how (episode, ε, N, M, estimator), the
return of the sampled episodes, the bits with each part of the belief, H(b), what makes them doubtful and, in
deterministic T-Mazes, the exact I(h + σξ; b). The first, the middle and the last checkpoint also get the controls. In
a study one checkpoint of each environment also has the calibration: what is read of known information with its beliefs.
A measurement of sufficiency has shares in place of bits (sufficiency.py).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from rich.console import Console
from rich.progress import Progress

from beliefscope.agent.manifest import made_with
from beliefscope.agent.network import QNetwork, WholeMemory
from beliefscope.agent.run_folder import RunFolder
from beliefscope.belief import filter_of_paper
from beliefscope.errors import require
from beliefscope.information import AtomsEstimate, Estimate, Estimator, calibrate, decode
from beliefscope.measurement.controls import controls, given_time
from beliefscope.measurement.doubts import doubts
from beliefscope.measurement.exact import can_enumerate, exact_information, visited_atoms
from beliefscope.measurement.measurement_spec import MeasurementSpec
from beliefscope.measurement.parts import asked_parts, parts, written_entropy, written_health
from beliefscope.measurement.sufficiency import measure_sufficiency
from beliefscope.pairs import sample_pairs
from beliefscope.storage import lock, read_record, write_record

Record = dict[str, Any]


def measure(
    run: RunFolder, spec: MeasurementSpec | None = None, *, episodes: Sequence[int] | None = None
) -> list[Record]:
    """The records of the checkpoints after so many episodes each, by default all that are stored."""
    spec, stored = spec or MeasurementSpec(), run.checkpoints()
    asked = stored if episodes is None else sorted(set(episodes))
    require(
        bool(stored) and set(asked) <= set(stored),
        rule="measured are networks that are stored",
        received=f"{list(asked)} of {stored}",
        advice="train the run first, or choose among those",
    )
    # Which get controls does not depend on what is asked for, or the same command in two parts would differ.
    thorough = {stored[0], stored[len(stored) // 2], stored[-1]}
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        return [
            measure_checkpoint(run, spec, episode, with_controls=episode in thorough)
            for episode in bar.track(asked, description=f"{run.spec.id}, checkpoints")
        ]


def measure_checkpoint(
    run: RunFolder, spec: MeasurementSpec, episode: int, *, with_controls: bool, with_calibration: bool = False
) -> Record:
    """From the file if it is there, else measured and written."""
    name = spec.id(episode, with_controls=with_controls, with_calibration=with_calibration)
    file = run.path / "measure" / f"{name}.json"
    with lock(run.folder / "locks" / f"measure-{run.spec.id}-{name}"):
        if not file.exists():
            # The same numbers with a calibration as without.
            key = jax.random.key(int(spec.id(episode, with_controls=with_controls)[:8], 16))
            about = {"run": run.spec.id, "episode": episode, **spec.describe(), "made_with": made_with()}
            if spec.estimator == "sufficiency":
                found = measure_sufficiency(key, run, spec, episode, with_controls=with_controls)
            else:
                found = _measure(key, run, spec, episode, with_controls=with_controls, calibrated=with_calibration)
            write_record(file, about | found)
        return read_record(file)


def _measure(
    key: PRNGKeyArray,
    run: RunFolder,
    spec: MeasurementSpec,
    episode: int,
    *,
    with_controls: bool,
    calibrated: bool,
) -> Record:
    key_pairs, key_fit, key_controls, key_decode, key_exact = jax.random.split(key, 5)
    network, pomdp = run.network(episode), run.spec.pomdp
    filter = filter_of_paper(pomdp, run.spec.learner.variant, num_particles=spec.num_particles)
    reader = WholeMemory if spec.memory == "whole" else lambda agent: agent
    pairs = sample_pairs(
        key_pairs,
        reader(network),
        pomdp,
        filter,
        num_samples=spec.num_rows,
        epsilon=spec.epsilon,
        replay=reader(run.network(0)) if with_controls else None,
    )
    estimator = spec.build()
    record: Record = {"return": float(np.mean(np.asarray(pairs.returns)))}
    health = parts(pairs.health)
    for part, belief in asked_parts(spec.part, pairs.belief).items():
        found = estimator.estimate(key_fit, pairs.memory, belief)
        about = _written(found, spec) | {"entropy": written_entropy(belief), "health": written_health(health[part])}
        if with_controls:
            others = controls(key_controls, estimator, pairs, belief, horizon=pomdp.horizon)
            about["controls"] = {name: _written(other, spec) for name, other in others.items()}
            about["given time"] = given_time(others)
            about["decoded"] = _decoded(key_decode, pairs.memory, belief, part)
        if calibrated:
            about["calibration"] = _calibration(key_controls, estimator, pairs.memory.shape[1], belief)
        record[part] = about | {"warnings": [*found.warnings, *doubts(about)]}
    if can_enumerate(pomdp, spec.epsilon):
        record["exact"] = _exact(key_exact, reader(network), run)
    return record


def _decoded(key: PRNGKeyArray, memory: Any, belief: Any, part: str) -> Record | None:
    """What simple decoders read of the belief; None where its features are no distribution: a mean and a covariance."""
    if part == "irrelevant":
        return None
    return {probe: dataclasses.asdict(decode(key, memory, belief, probe=probe)) for probe in ("linear", "MLP")}


def _calibration(key: PRNGKeyArray, estimator: Estimator, memory_size: int, belief: Any) -> Record:
    found = calibrate(belief, memory_size, estimator=estimator, key=key)
    points = [
        {
            "truth": point.truth,
            "truth_error": point.truth_error,
            "bits": point.read.bits,
            "standard_error": point.read.standard_error,
        }
        for point in found.points
    ]
    return {"num_atoms": found.num_atoms, "in_cells": found.in_cells, "points": points}


def _exact(key: PRNGKeyArray, network: QNetwork | WholeMemory, run: RunFolder) -> Record:
    atoms = visited_atoms(network, run.spec.pomdp, filter_of_paper(run.spec.pomdp))  # pyright: ignore[reportArgumentType]
    found = exact_information(key, atoms)
    entropy = next(iter(found.values())).entropy
    return {"entropy": entropy, **{f"σ = {noise:g}": one.bits for noise, one in found.items()}}


def _written(found: Estimate, spec: MeasurementSpec) -> Record:
    atoms = {}
    if isinstance(found, AtomsEstimate):
        atoms = {name: getattr(found, name) for name in ("num_atoms", "num_classes", "rare", "num_judged")}
    return {
        "bits": found.bits,
        "standard_error": found.standard_error,
        "N": spec.num_samples,
        "M": found.num_particles,
        "estimator": found.estimator,
        "ceiling": found.ceiling,
        "near_ceiling": found.near_ceiling,
        "curve": [round(float(bits), 4) if np.isfinite(bits) else None for bits in found.curve],
        **atoms,
        **({} if found.interval is None else {"interval": [_finite(end) for end in found.interval]}),
    }


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return float(number) if np.isfinite(number) else None
