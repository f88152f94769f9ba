"""Measures how much of what the belief knows about the state is in a checkpoint's memory, on two sets of histories.

`own` are the histories of the checkpoint's own policy, `last` those of the run's last one, which the checkpoint's
network reads without acting: on its own histories an agent that stays at the start has all of the belief in sight.
Beside them stand, where beliefs recur, the atoms bound on I(h; b), and where they are asked for the controls.
"""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from beliefscope.agent.network import QNetwork, WholeMemory
from beliefscope.agent.run_folder import RunFolder
from beliefscope.belief import filter_of_paper
from beliefscope.information import AtomsBound, Sufficiency, sufficiency
from beliefscope.information.seeding import generator
from beliefscope.measurement.measurement_spec import MeasurementSpec
from beliefscope.measurement.parts import asked_parts, parts, written_entropy, written_health
from beliefscope.pairs import Pairs, sample_pairs

Record = dict[str, Any]


def measure_sufficiency(
    key: PRNGKeyArray, run: RunFolder, spec: MeasurementSpec, episode: int, *, with_controls: bool
) -> Record:
    """By part of the belief: `own`, `last`, `atoms` and, with controls, `controls`."""
    key_own, key_last, key_fit = jax.random.split(key, 3)
    last = run.last_checkpoint()
    here, first, there = (_reader(run.network(each), spec) for each in (episode, run.checkpoints()[0], last))
    own = _sample(key_own, run, spec, here, first if with_controls else None)
    others = None if episode == last else _sample(key_last, run, spec, there, here)
    health = parts(own.health)
    record: Record = {"return": float(np.mean(np.asarray(own.returns))), "last_episode": last}
    for part, belief in asked_parts(spec.part, own.belief).items():
        entropy = written_entropy(belief)
        measured = _shares(key_fit, own.memory, _readable(belief, part), own.time)
        record[part] = {
            "N": spec.num_samples,
            "M": np.shape(belief)[1] if np.ndim(belief) == 3 else None,
            "own": measured,
            "last": measured
            if others is None
            else _shares(key_fit, others.replayed, _readable(parts(others.belief)[part], part), others.time),
            "entropy": entropy,
            "health": written_health(health[part]),
            "atoms": None if entropy is None or entropy["flagged"] else _atoms(key_fit, own.memory, belief),
        }
        if with_controls:
            record[part]["controls"] = _controls(key_fit, own, _readable(belief, part))
    return record


def _reader(network: QNetwork, spec: MeasurementSpec) -> QNetwork | WholeMemory:
    return WholeMemory(network) if spec.memory == "whole" else network


def _sample(key: PRNGKeyArray, run: RunFolder, spec: MeasurementSpec, agent, replay) -> Pairs:
    pomdp = run.spec.pomdp
    filter = filter_of_paper(pomdp, run.spec.learner.variant, num_particles=spec.num_particles)
    return sample_pairs(key, agent, pomdp, filter, num_samples=spec.num_rows, epsilon=spec.epsilon, replay=replay)


def _readable(belief: Any, part: str) -> Any:
    """Probabilities and particles as they are; the features of a Kalman filter as means and covariances."""
    array = np.asarray(belief)
    if part != "irrelevant":
        return array
    size = round((np.sqrt(1 + 4 * array.shape[1]) - 1) / 2)
    return array[:, :size], array[:, size:].reshape(-1, size, size)


def _shares(key: PRNGKeyArray, memory: Any, belief: Any, time: Any) -> Record:
    return written_sufficiency(sufficiency(np.asarray(memory), belief, np.asarray(time), key=key))


def _controls(key: PRNGKeyArray, pairs: Pairs, belief: Any) -> Record:
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


def written_sufficiency(found: Sufficiency) -> Record:
    """As plain data: ratios are lists of value, low and high."""

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
        "coarser": None if found.coarser is None else written_sufficiency(found.coarser),
        "warnings": list(found.warnings),
    }
