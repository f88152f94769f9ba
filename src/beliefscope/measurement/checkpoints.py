"""Measures the checkpoints of a trained run: `measure(run)` writes one small file for each, and skips those there.

A file `DIR/runs/<id>/measure/<measurement-id>.json` says what was measured and how (episode, ε, N, M, estimator), the
return of the sampled episodes, the bits with each part of the belief, H(b), what makes them doubtful and, in
deterministic T-Mazes, the exact I(h + σξ; b). The first, the middle and the last checkpoint also get the controls. In
a study one checkpoint of each environment also has the calibration: what is read of known information with its beliefs.

A measurement of sufficiency has shares in place of bits: how much of what the belief knows about the state is in the
memory, on two sets of histories. `own` are those of the checkpoint's own policy, `last` those of the run's last one,
which the checkpoint's network reads without acting: on its own histories an agent that stays at the start has all of
the belief in sight. Beside them stand, where beliefs recur, the atoms bound on I(h; b).

The controls say what else shares information with the belief, on the same histories: a memory that shares many bits
with the belief may owe them to the time alone, to the last observations, or to what any untrained network keeps.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from beliefscope.agent.network import QNetwork, WholeMemory
from beliefscope.agent.run_folder import RunFolder, enter
from beliefscope.belief import ByPart, filter_of_paper
from beliefscope.belief.exact import mean_and_covariance
from beliefscope.errors import require
from beliefscope.fast_keys import generator
from beliefscope.information import (
    MINE,
    AtomsBound,
    AtomsEstimate,
    BestBound,
    Estimate,
    Estimator,
    Trusted,
    calibrate,
    decode,
    discrete_entropy,
    sufficiency,
)
from beliefscope.measurement.greedy_episodes import can_enumerate, exact_information, visited_atoms
from beliefscope.measurement.sample import Pairs, sample_pairs
from beliefscope.progress import EstimateBar
from beliefscope.store import MeasurementSpec, Record, made_with, read_record, write_record
from beliefscope.store.files import make_once
from beliefscope.store.growing_study import add_measurement
from beliefscope.store.pieces import OLDER, Piece, first_middle_last, measurement_name
from beliefscope.warning_signs import doubts


def controls(
    key: PRNGKeyArray, estimator: Estimator, pairs: Pairs, belief: Any, *, horizon: int
) -> dict[str, Estimate]:
    """The information of each control with the belief, by name; `pairs.replayed` is the network before training."""
    require(
        pairs.replayed is not None,
        rule="the controls need what the untrained network remembers of the same histories",
        received="no replayed memories",
        advice="pass replay=network_before_training to sample_pairs",
    )
    key_shuffle, *keys = jax.random.split(key, 7)
    time = jax.nn.one_hot(pairs.time, horizon)
    others: dict[str, Any] = {
        "untrained": pairs.replayed,  # (b) the same network at episode 0 over these histories
        "time": time,  # (c)
        "observation": pairs.observation,  # (d) o_t
        "recent": pairs.recent,  # (e) the last 8 (action, observation)
        "memory and time": jnp.concatenate([pairs.memory, time], axis=1),
    }
    found = {name: estimator.estimate(key, x, belief) for key, (name, x) in zip(keys, others.items(), strict=False)}
    order = generator(key_shuffle).permutation(len(pairs.time))
    return {"shuffled": estimator.estimate(keys[-1], pairs.memory[order], belief), **found}  # (a)


def given_time(found: dict[str, Estimate]) -> float:
    """I(h; b | t) = I(h, t; b) − I(t; b), in bits, by the chain rule."""
    return found["memory and time"].bits - found["time"].bits


def _how_to_get_networks(run: RunFolder) -> str:
    if run.finished() and set(run.due()) > set(run.checkpoints()):
        return (
            "`beliefscope archive` removes networks: train the run in another folder, or repeat its `beliefscope run`"
        )
    return "train the run first, or choose among those"


def measure(
    run: RunFolder, spec: MeasurementSpec | None = None, *, episodes: Sequence[int] | None = None
) -> list[Record]:
    """The records of the checkpoints after so many episodes each, by default all that are stored."""
    spec, stored = spec or MeasurementSpec(), run.checkpoints()
    asked = stored if episodes is None else sorted(set(episodes))
    require(
        bool(stored) and set(asked) <= set(stored),
        rule="only stored networks can be measured, and checkpoint_period says which are stored",
        received=f"{list(asked)} of {stored}",
        advice=_how_to_get_networks(run),
    )
    due = run.due()
    require(
        spec.estimator != "sufficiency" or due[-1] in stored,
        rule=f"sufficiency is also measured on the histories of the run's last network, that after {due[-1]} episodes",
        received=f"the networks {stored}",
        advice="train the run to its end, or choose another estimator",
    )
    # Which get controls depends neither on what is asked for nor on what is there, or the same command in two parts
    # would differ.
    thorough = first_middle_last(due)
    enter([run])
    records = []
    with EstimateBar(f"{run.spec.id}, checkpoints", total=len(asked)) as bar:
        for episode in asked:
            bar.begin(f"the network after {episode} episodes")
            controlled = episode in thorough
            records.append(measure_checkpoint(run, spec, episode, with_controls=controlled))
            piece = Piece(
                kind="measure", run=run.spec.id, label="", episode=episode, measurement=spec, controls=controlled
            )
            add_measurement(run.folder, piece)
            bar.end()
    return records


def measure_checkpoint(
    run: RunFolder, spec: MeasurementSpec, episode: int, *, with_controls: bool, with_calibration: bool = False
) -> Record:
    """From the file if it is there, else measured and written."""
    name = spec.id(episode, with_controls=with_controls, with_calibration=with_calibration)
    file = run.files.measurement(name)

    def make() -> None:
        # The same numbers with a calibration as without. Each run has its own: with the critic's first weights in
        # common, the errors of all runs at a checkpoint would go together.
        of_all = spec.id(episode, with_controls=with_controls)
        key = jax.random.key(int(of_all[:8], 16) ^ int(run.spec.id[:8], 16))
        about = {"run": run.spec.id, "episode": episode, **spec.describe(), "made_with": made_with()}
        if spec.estimator == "sufficiency":
            found = _measure_shares(key, run, spec, episode, with_controls=with_controls)
        else:
            found = _measure_bits(key, run, spec, episode, with_controls=with_controls, calibrated=with_calibration)
        write_record(file, about | found)

    make_once(run.files.study.lock(measurement_name(run.spec.id, name)), file, make)
    return read_record(file)


def build_estimator(spec: MeasurementSpec) -> Estimator:
    """What estimates bits; 'sufficiency' does not."""
    if spec.estimator == OLDER:
        return Trusted()
    if spec.estimator == "best-bound":
        return BestBound()
    if spec.estimator == "atoms":
        return AtomsBound()
    mine = MINE("text" if spec.estimator == "mine" else "code")
    return dataclasses.replace(mine, settings=mine.settings._replace(epochs=spec.num_epochs))


def _sample(
    key: PRNGKeyArray, run: RunFolder, spec: MeasurementSpec, agent: QNetwork | WholeMemory, replay: Any
) -> Pairs:
    pomdp = run.spec.pomdp
    filter = filter_of_paper(pomdp, run.spec.learner.variant, num_particles=spec.num_particles)
    return sample_pairs(key, agent, pomdp, filter, num_samples=spec.num_rows, epsilon=spec.epsilon, replay=replay)


def _reader(network: QNetwork, spec: MeasurementSpec) -> QNetwork | WholeMemory:
    return WholeMemory(network) if spec.memory == "whole" else network


def _parts(belief: Any) -> dict[str, Any]:
    """Beliefs, features or health by name: `belief`, or `relevant` and `irrelevant` of a product."""
    if isinstance(belief, ByPart):
        return {"relevant": belief.relevant, "irrelevant": belief.irrelevant}
    return {"belief": belief}


def _asked_parts(part: str, belief: Any) -> dict[str, Any]:
    """Those that a measurement asks for."""
    found = _parts(belief)
    require(
        part == "all" or part in found,
        rule=f"the belief here has the parts {sorted(found)}",
        received=part,
        advice="ask for part 'all'",
    )
    return found if part == "all" else {part: found[part]}


def _written_entropy(belief: Any) -> Record | None:
    """H(b) by counting; None where beliefs are sets, whose entropy no counting gives."""
    return discrete_entropy(belief)._asdict() if np.ndim(belief) == 2 else None


def _measure_bits(
    key: PRNGKeyArray,
    run: RunFolder,
    spec: MeasurementSpec,
    episode: int,
    *,
    with_controls: bool,
    calibrated: bool,
) -> Record:
    """By part of the belief: the estimate of I(h; b), H(b), health and warnings."""
    key_pairs, key_fit, key_controls, key_decode, key_exact = jax.random.split(key, 5)
    network, untrained = _reader(run.network(episode), spec), _reader(run.network(0), spec) if with_controls else None
    pairs = _sample(key_pairs, run, spec, network, untrained)
    estimator = build_estimator(spec)
    record: Record = {"return": float(np.mean(np.asarray(pairs.returns)))}
    health = _parts(pairs.health)
    for part, belief in _asked_parts(spec.part, pairs.belief).items():
        found = estimator.estimate(key_fit, pairs.memory, belief)
        about = _written(found, spec) | {"entropy": _written_entropy(belief), "health": _written_health(health[part])}
        if with_controls:
            others = controls(key_controls, estimator, pairs, belief, horizon=run.spec.pomdp.horizon)
            about["controls"] = {name: _written(other, spec) for name, other in others.items()}
            about["given time"] = given_time(others)
            about["decoded"] = _decoded(key_decode, pairs.memory, belief, part)
        if calibrated:
            about["calibration"] = _calibration(key_controls, estimator, pairs.memory.shape[1], belief)
        record[part] = about | {"warnings": [*found.warnings, *doubts(about)]}
    if can_enumerate(run.spec.pomdp, spec.epsilon):
        record["exact"] = _exact(key_exact, network, run)
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


def _measure_shares(
    key: PRNGKeyArray, run: RunFolder, spec: MeasurementSpec, episode: int, *, with_controls: bool
) -> Record:
    """By part of the belief: `own`, `last`, `atoms` and, with controls, `controls`."""
    key_own, key_last, key_fit = jax.random.split(key, 3)
    last = run.last_checkpoint()
    here, there = (_reader(run.network(each), spec) for each in (episode, last))
    own = _sample(key_own, run, spec, here, _reader(run.network(0), spec) if with_controls else None)
    others = None if episode == last else _sample(key_last, run, spec, there, here)
    health = _parts(own.health)
    record: Record = {"return": float(np.mean(np.asarray(own.returns))), "last_episode": last}
    for part, belief in _asked_parts(spec.part, own.belief).items():
        entropy = _written_entropy(belief)
        measured = _shares(key_fit, own.memory, _readable(belief, part), own.time)
        record[part] = {
            "N": spec.num_samples,
            "M": np.shape(belief)[1] if np.ndim(belief) == 3 else None,
            "own": measured,
            "last": measured
            if others is None
            else _shares(key_fit, others.replayed, _readable(_parts(others.belief)[part], part), others.time),
            "entropy": entropy,
            "health": _written_health(health[part]),
            "atoms": None if entropy is None or entropy["flagged"] else _atoms(key_fit, own.memory, belief),
        }
        if with_controls:
            record[part]["controls"] = _share_controls(key_fit, own, _readable(belief, part))
    if can_enumerate(run.spec.pomdp, spec.epsilon):
        record["exact"] = _exact(key_fit, here, run)
    return record


def _readable(belief: Any, part: str) -> Any:
    """Probabilities and particles as they are; the features of a Kalman filter as means and covariances."""
    return mean_and_covariance(belief) if part == "irrelevant" else np.asarray(belief)


def _shares(key: PRNGKeyArray, memory: Any, belief: Any, time: Any) -> Record:
    return _written_sufficiency(sufficiency(np.asarray(memory), belief, np.asarray(time), key=key))


def _share_controls(key: PRNGKeyArray, pairs: Pairs, belief: Any) -> Record:
    """The same on the same histories of what else may tell the state; time alone stands in every measurement."""
    order = generator(key).permutation(len(pairs.time))
    others = {
        "shuffled": np.asarray(pairs.memory)[order],
        "untrained": pairs.replayed,
        "observation": pairs.observation,
        "recent": pairs.recent,
    }
    return {name: _shares(key, memory, belief, pairs.time) for name, memory in others.items()}


def _atoms(key: PRNGKeyArray, memory: Any, belief: Any) -> Record:
    found = AtomsBound().estimate(key, memory, belief)
    names = ("bits", "standard_error", "num_atoms", "num_classes", "rare", "num_judged", "entropy", "entropy_bias")
    return {name: getattr(found, name) for name in names} | {"warnings": list(found.warnings)}


def _written_health(health: Any) -> Record:
    """How far the beliefs can be trusted: their mean effective number of particles, the share after the impossible."""
    sizes = np.asarray(health.effective_sample_size, np.float64)
    return {
        "effective_sample_size": float(sizes.mean()) if np.isfinite(sizes).all() else None,  # nothing was sampled
        "impossible": float(np.mean(np.asarray(health.impossible))),
    }


def _written_sufficiency(found: Any) -> Record:
    """A `Sufficiency`, whose ratios become lists of value, low and high."""

    def ratio(given: Any) -> list[float] | None:
        return None if given is None else [float(number) for number in given]

    def reading(given: Any) -> Record | None:
        if given is None:
            return None
        return {
            "available": given.available,
            **{name: ratio(getattr(given, name)) for name in ("linear", "mlp", "best")},
        }

    plain = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    return plain | {
        "given_time": reading(found.given_time),
        "plain": reading(found.plain),
        "time_alone": ratio(found.time_alone),
        "coarser": None if found.coarser is None else _written_sufficiency(found.coarser),
        "warnings": list(found.warnings),
    }
