"""Train agents and store them; a call that was interrupted continues where it stopped.

Runs that differ only in their seeds form a batch, which one compiled program trains, a chunk at a time: the episodes
from one evaluation to the next. Agents are the leading axis. On CPU they run one after another inside the program,
because `vmap` would cost twice as much and change bits. On GPU they run side by side. After every chunk each agent's
evaluation, network and whole state are on disk (run_folder.py).

`begin_from` begins a run with what a shorter run of the same settings has stored. What an agent learns in an episode
does not depend on how many are to come, so a run that continues a shorter one has the same bits as one that is trained
so long from the start (on the same machine).
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt

from beliefscope.agent.drqn import Agent, Plan, cpu_plan, gpu_plan, init_agent, train_episode
from beliefscope.agent.network import Evaluation, evaluate
from beliefscope.agent.run_folder import RunFolder, enter
from beliefscope.agent.training_spec import DRQN, TrainingSpec
from beliefscope.errors import require
from beliefscope.fast_keys import fast_key
from beliefscope.pomdp import POMDP
from beliefscope.progress import TrainingBar
from beliefscope.store.files import lock, read_bytes, write_atomic
from beliefscope.store.layout import StudyFiles, is_file
from beliefscope.store.manifest import write_manifest
from beliefscope.store.pieces import training_name


class Progress(NamedTuple):
    """What a chunk reports of each agent."""

    evaluation: Evaluation  # of the greedy policy at its end
    loss: Float[Array, "*agents"]  # mean over its gradient steps, NaN if there were none
    failed: Int[Array, "*agents"]  # after so many episodes a parameter or the loss was not finite, or -1


class Keys(NamedTuple):
    """An agent's random keys; everything random in its training comes from its seed."""

    init: PRNGKeyArray
    train: PRNGKeyArray
    evaluate: PRNGKeyArray


def keys_of_seed(seed: UInt[Array, ""]) -> Keys:
    """Three keys from a seed."""
    return Keys(*jax.random.split(fast_key(jax.random.key(seed)), 3))


@eqx.filter_jit
def start_agents(pomdp: POMDP, learner: DRQN, seeds: UInt[Array, " agents"]) -> Agent:
    """A new agent for each seed."""
    return lax.map(lambda seed: init_agent(keys_of_seed(seed).init, pomdp, learner), seeds)


class Work(NamedTuple):
    """What a chunk does."""

    pomdp: POMDP
    learner: DRQN
    seeds: UInt[Array, " agents"]
    first: Int[Array, ""]  # the first episode
    episodes: Int[Array, ""]  # how many; with none there is only the evaluation


@eqx.filter_jit(donate="all-except-first")
def run_chunk(work: Work, agents: Agent) -> tuple[Agent, Progress]:
    """Train, then evaluate; the buffers of `agents` are donated."""
    horizon = work.pomdp.horizon
    with jax.default_matmul_precision("float32"):
        if jax.default_backend() == "cpu":
            return lax.map(
                lambda one: _run(cpu_plan(horizon), work._replace(seeds=one[0]), one[1]), (work.seeds, agents)
            )
        return _run(gpu_plan(horizon), work, agents)


def _run(plan: Plan, work: Work, agents: Agent) -> tuple[Agent, Progress]:
    pomdp, learner, seeds, first, episodes = work
    keys = plan.each(keys_of_seed)(seeds)

    def episode(number, carry):
        agents, total, failed = carry
        agents, loss = train_episode(plan, pomdp, learner, agents, keys.train, first + number)
        broken = ~(plan.each(_finite)(agents) & jnp.isfinite(loss))
        return agents, total + loss, jnp.where((failed < 0) & broken, first + number + 1, failed)

    start = (agents, jnp.zeros(seeds.shape), jnp.full(seeds.shape, -1))
    agents, total, failed = lax.fori_loop(0, episodes, episode, start)
    keys_evaluate = plan.each(lambda key: jax.random.fold_in(key, first + episodes))(keys.evaluate)
    play = partial(evaluate, num_episodes=learner.evaluation_episodes)
    evaluation = plan.each(lambda key, agent: play(key, pomdp, agent.network))(keys_evaluate, agents)
    return agents, Progress(evaluation, total / episodes, failed)


def _finite(agent: Agent) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(agent.network)]))


def train(
    specs: Sequence[TrainingSpec],
    folder: str | Path,
    *,
    environment: str | None = None,
    lengthen: str | Path | None = None,
    watch: Callable[[float], None] | None = None,
) -> list[RunFolder]:
    """Train every agent to its last episode, or to its failure; return their folders, in the order of `specs`.

    Runs that are already there are not trained again; runs that were interrupted go on. Ask `failed()` of a folder
    whether its agent diverged. The folder becomes a study of its runs, in which the POMDP is called `environment`, by
    default after its class and size. `lengthen` is a folder with runs that differ in num_episodes alone, which is
    smaller there: training goes on from what they have stored. `watch` is told the fraction of a batch's episodes that
    is done, instead of a progress bar and of entries in manifest and study.
    """
    specs, folder = _checked(specs), Path(folder)
    runs = [RunFolder(folder, spec) for spec in specs]
    shorter = {spec.id: shorter_run(spec, Path(lengthen)) for spec in specs} if lengthen is not None else {}
    if watch is None:
        write_manifest(folder, jax.devices()[0].device_kind)
        enter(runs, environment)
    for batch in _batches(runs):
        with contextlib.ExitStack() as stack:
            for run in batch:
                stack.enter_context(lock(run.files.study.lock(training_name(run.spec.id))))
                run.open()
                run.store_last()
                if run.spec.id in shorter:
                    begin_from(shorter[run.spec.id], run)
            _train_batch(batch, watch)
    return runs


def _checked(specs: Sequence[TrainingSpec]) -> list[TrainingSpec]:
    require(
        isinstance(specs, Sequence) and len(specs) > 0 and all(isinstance(spec, TrainingSpec) for spec in specs),
        rule="train takes a list of at least one TrainingSpec",
        received=specs,
        advice="pass [TrainingSpec(pomdp=TMaze(50), seed=0)], say",
    )
    ids = [spec.id for spec in specs]
    require(
        len(set(ids)) == len(ids),
        rule="each run is given once",
        received=[spec.seed for spec in specs],
        advice="give each agent its own seed",
    )
    return list(specs)


def _batches(runs: list[RunFolder]) -> list[list[RunFolder]]:
    """Runs that differ only in their seeds, together."""
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
    """Train agents that are at the same episode until `goal`, store them after every chunk, return those alive."""
    runs, episode = [member.run for member in members], members[0].episode
    metrics = [run.metrics(until=episode) for run in runs]
    agents, alive = _stack([member.agent for member in members]), list(range(len(runs)))
    while episode < goal and alive:
        work = _next_chunk(runs, episode)
        agents, progress = run_chunk(work, agents)
        progress, states = jax.device_get((progress, agents))
        episodes = int(work.episodes)
        episode = int(work.first) + episodes
        for index in alive:
            if progress.failed[index] >= 0:
                runs[index].fail(int(progress.failed[index]))
            else:
                metrics[index].append(_record(episode, progress, index))
                runs[index].save(_pick(states, index), episode, metrics[index])
        alive = [index for index in alive if progress.failed[index] < 0]
        bar.update(episodes * len(runs), [metrics[index][-1]["return"] for index in alive])
    return [_Member(runs[index], episode, _pick(agents, index)) for index in alive]


def _next_chunk(runs: list[RunFolder], episode: int) -> Work:
    """The episodes until the next evaluation; before the first episode there is an evaluation alone."""
    spec = runs[0].spec
    episodes = 0 if episode < 0 else spec.learner.evaluation_period
    first = jnp.asarray(max(episode, 0))
    return Work(spec.pomdp, spec.learner, _seeds(runs), first, jnp.asarray(episodes))


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


def begin_from(shorter: RunFolder, run: RunFolder) -> None:
    """Copy what the shorter run has stored; a run that has begun already stays as it is.

    The state to resume from is copied last: what it says counts.
    """
    if is_file(run.files.resume) or run.finished() or run.failed() is not None:
        return
    with lock(shorter.files.study.lock(training_name(shorter.spec.id))):
        _copy(shorter, run)


def _copy(shorter: RunFolder, run: RunFolder) -> None:
    state = shorter.resume()
    done = 0 if state is None else state[0]
    networks = [] if state is None else [each for each in run.spec.learner.checkpoints() if each <= done]
    missing = sorted(set(networks) - set(shorter.checkpoints()))
    require(
        state is not None and not missing,
        rule="a run is lengthened from its resume.eqx and its networks",
        received=f"{shorter.path} without {f'the networks after {missing} episodes' if missing else 'resume.eqx'}",
        advice="leave out --lengthen, which trains from the start",
    )
    for episode in networks:
        write_atomic(run.files.network(episode), read_bytes(shorter.files.network(episode)))
    write_atomic(run.files.metrics, read_bytes(shorter.files.metrics))
    assert state is not None
    run.save_state(state[1], done, run.metrics(until=done))


def shorter_run(spec: TrainingSpec, folder: Path) -> RunFolder:
    """The run in the folder that has the same settings and seed, and fewer episodes."""
    for files in StudyFiles(folder).runs():
        text = read_bytes(files.spec).decode("utf-8", "replace")
        try:
            episodes = json.loads(text)["learner"]["num_episodes"]
            learner = dataclasses.replace(spec.learner, num_episodes=episodes)
        except (ValueError, KeyError, TypeError):
            continue
        found = RunFolder(folder, dataclasses.replace(spec, learner=learner))
        if found.spec.canonical_json() == text and episodes < spec.learner.num_episodes:
            return found
    raise ValueError(
        "--lengthen takes a folder with the same runs of fewer episodes, all other settings being the same, but got "
        f"{str(folder)!r}, which has none for seed {spec.seed}; repeat the settings of the runs there, with a larger "
        "--num-episodes."
    )
