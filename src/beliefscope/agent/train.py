"""Train agents, and store what they become; a call that was interrupted goes on where it stopped.

Runs that differ in their seeds alone form a batch, which one compiled program trains (chunk.py). After every chunk of
episodes, each agent's evaluation, network and whole state are on disk (run_folder.py).
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from beliefscope.agent.chunk import Progress, Work, run_chunk, start_agents
from beliefscope.agent.drqn import Agent
from beliefscope.agent.manifest import write_manifest
from beliefscope.agent.progress import TrainingBar
from beliefscope.agent.run_folder import RunFolder
from beliefscope.agent.training_spec import TrainingSpec
from beliefscope.errors import require
from beliefscope.storage import lock


def train(
    specs: Sequence[TrainingSpec], folder: str | Path, *, watch: Callable[[float], None] | None = None
) -> list[RunFolder]:
    """Train every agent to its last episode, or to its failure; give their folders, in the order of `specs`.

    Runs that are already there are not trained again; runs that were interrupted go on. Ask `failed()` of a folder
    whether its agent diverged. `watch` is told the fraction of a batch's episodes that is done, instead of a progress
    bar and an entry in the manifest.
    """
    specs, folder = _checked(specs), Path(folder)
    runs = [RunFolder(folder, spec) for spec in specs]
    if watch is None:
        write_manifest(folder, jax.devices()[0].device_kind)
    for batch in _batches(runs):
        with contextlib.ExitStack() as stack:
            for run in batch:
                stack.enter_context(lock(folder / "locks" / f"train-{run.spec.id}"))
                run.open()
            _train_batch(batch, watch)
    return runs


def _checked(specs: Sequence[TrainingSpec]) -> list[TrainingSpec]:
    require(
        isinstance(specs, Sequence) and len(specs) > 0 and all(isinstance(spec, TrainingSpec) for spec in specs),
        rule="what to train is a list of at least one TrainingSpec",
        received=specs,
        advice="pass [TrainingSpec(pomdp=TMaze(50), seed=0)], say",
    )
    ids = [spec.id for spec in specs]
    require(
        len(set(ids)) == len(ids),
        rule="no run is asked for twice",
        received=[spec.seed for spec in specs],
        advice="give each agent its own seed",
    )
    return list(specs)


def _batches(runs: list[RunFolder]) -> list[list[RunFolder]]:
    """Runs that differ in their seeds alone, together."""
    batches: dict[str, list[RunFolder]] = {}
    for run in runs:
        batches.setdefault(dataclasses.replace(run.spec, seed=0).id, []).append(run)
    return list(batches.values())


class _Member(NamedTuple):
    """An agent between two chunks."""

    run: RunFolder
    episode: int  # episodes done; -1 if it was not even evaluated
    agent: Agent


def _train_batch(runs: list[RunFolder], watch: Callable[[float], None] | None) -> None:
    spec, end = runs[0].spec, runs[0].spec.learner.num_episodes
    members = _gather(runs)
    title = f"{type(spec.pomdp).__name__}, {spec.learner.cell.__name__}"
    done = sum(max(member.episode, 0) for member in members)
    with TrainingBar(title, agents=len(members), total=len(members) * end, done=done, watch=watch) as bar:
        while members := [member for member in members if member.episode < end]:
            # Those behind catch up first, so that all that can run together does.
            at = min(member.episode for member in members)
            behind = [member for member in members if member.episode == at]
            ahead = [member for member in members if member.episode > at]
            goal = min((member.episode for member in ahead), default=end)
            members = ahead + _advance(behind, goal, bar)
    for run in runs:
        if not run.finished() and run.failed() is None:
            run.finish()


def _gather(runs: list[RunFolder]) -> list[_Member]:
    """Every agent that has not failed, as it was stored or new."""
    runs = [run for run in runs if run.failed() is None and not run.finished()]
    stored = [(run, run.resume()) for run in runs]
    members = [_Member(run, *state) for run, state in stored if state is not None]
    new = [run for run, state in stored if state is None]
    if new:
        agents = start_agents(new[0].spec.pomdp, new[0].spec.learner, _seeds(new))
        members += [_Member(run, -1, agent) for run, agent in zip(new, _unstack(agents), strict=True)]
    return members


def _advance(members: list[_Member], goal: int, bar: TrainingBar) -> list[_Member]:
    """Train agents that stand at the same episode until `goal`, and store them after every chunk."""
    runs, episode, learner = [m.run for m in members], members[0].episode, members[0].run.spec.learner
    metrics = [run.metrics(until=episode) for run in runs]
    agents, alive = _stack([member.agent for member in members]), set(range(len(runs)))
    while episode < goal and alive:
        first, count = max(episode, 0), 0 if episode < 0 else learner.evaluation_period
        work = Work(runs[0].spec.pomdp, learner, _seeds(runs), jnp.asarray(first), jnp.asarray(count))
        agents, progress = run_chunk(work, agents)
        progress, states = jax.device_get((progress, agents))
        episode = first + count
        for index in sorted(alive):
            if progress.failed[index] >= 0:
                runs[index].fail(int(progress.failed[index]))
                alive.remove(index)
                continue
            metrics[index].append(_record(episode, progress, index))
            runs[index].save(_pick(states, index), episode, metrics[index])
        bar.update(count * len(runs), [metrics[index][-1]["return"] for index in sorted(alive)])
    return [_Member(runs[index], episode, _pick(agents, index)) for index in sorted(alive)]


def _record(episode: int, progress: Progress, index: int) -> dict:
    """One line of metrics.jsonl."""
    evaluation = progress.evaluation
    return {
        "episode": episode,
        "return": float(evaluation.discounted_return[index]),
        "undiscounted_return": float(evaluation.undiscounted_return[index]),
        "length": float(evaluation.length[index]),
        "terminated": float(evaluation.terminated[index]),
        "loss": float(progress.loss[index]) if episode else None,
    }


def _seeds(runs: list[RunFolder]) -> Array:
    return jnp.asarray(np.array([run.spec.seed for run in runs], np.uint32))


def _stack(agents: list[Agent]) -> Agent:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)


def _unstack(agents: Agent) -> list[Agent]:
    return [_pick(agents, index) for index in range(len(agents.replay.total))]


def _pick(agents: Agent, index: int) -> Agent:
    return jax.tree.map(lambda leaf: leaf[index], agents)
