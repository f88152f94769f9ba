"""The folder of one training run, `DIR/runs/<id>`: description, metrics, networks, and the state to resume from.

    spec.json             what is trained
    metrics.jsonl         one line per evaluation
    params/<episode>.eqx  the network after so many episodes
    resume.eqx            all that is needed to go on, or to have ended
    failed.json           there if a parameter or the loss was not finite any more, with the episode
    trained.json          there if the last episode is done, with the digests of metrics and networks

After each chunk of episodes the first four are written in this order; `resume.eqx` comes last and what it says counts.
"""

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from beliefscope.agent.drqn import Agent, init_agent
from beliefscope.agent.manifest import made_with
from beliefscope.agent.network import QNetwork
from beliefscope.agent.training_spec import TrainingSpec
from beliefscope.errors import require
from beliefscope.storage import (
    Damaged,
    clear_unfinished,
    load_tree,
    read_lines,
    read_record,
    save_tree,
    write_atomic,
    write_lines,
    write_record,
)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Where one run lies."""

    folder: Path  # DIR
    spec: TrainingSpec

    @property
    def path(self) -> Path:
        return self.folder / "runs" / self.spec.id

    def open(self) -> None:
        """Make the folder, or check that it is this run's and clear away what a killed process was writing."""
        file, text = self.path / "spec.json", self.spec.canonical_json()
        if not file.exists():
            write_atomic(file, text.encode())
        require(
            file.read_text() == text,
            rule=f"{file} describes the run whose name its folder bears",
            received="another description",
            advice="restore the file, or delete it to have it written anew",
        )
        clear_unfinished(self.path)

    def save(self, agent: Agent, episode: int, metrics: list[dict[str, Any]]) -> None:
        """Store the state after `episode` episodes, all metrics so far and, where one is due, the network."""
        if episode % self.spec.learner.checkpoint_period == 0:
            save_tree(self._params(episode), agent.network)
        write_lines(self.path / "metrics.jsonl", metrics)
        save_tree(self.path / "resume.eqx", (jnp.asarray(episode), agent))

    def resume(self) -> tuple[int, Agent] | None:
        """The episodes done and the agent, or None before the first chunk."""
        file = self.path / "resume.eqx"
        if not file.exists():
            return None
        episode, agent = load_tree(file, (jnp.asarray(0), self._like()))
        if [line["episode"] for line in self.metrics(until=int(episode))][-1:] != [int(episode)]:
            raise Damaged(self.path / "metrics.jsonl", "its last lines are missing")
        return int(episode), agent

    def metrics(self, until: int | None = None) -> list[dict[str, Any]]:
        """One record per evaluation, by default all, else those of at most `until` episodes."""
        file = self.path / "metrics.jsonl"
        lines = read_lines(file) if file.exists() else []
        return [line for line in lines if until is None or line["episode"] <= until]

    def fail(self, episode: int) -> None:
        """Record that after so many episodes a parameter or the loss was not finite any more."""
        record = {"episode": episode, "reason": "a parameter of the network or the loss is not a finite number"}
        write_record(self.path / "failed.json", record)

    def failed(self) -> int | None:
        """The number of episodes (at least 1) after which the run failed, or None."""
        file = self.path / "failed.json"
        return read_record(file)["episode"] if file.exists() else None

    def finish(self) -> None:
        """Record that the last episode is done, and the digests of what the run leaves."""
        due = range(0, self.spec.learner.num_episodes + 1, self.spec.learner.checkpoint_period)
        files = [self.path / "metrics.jsonl", *(self._params(episode) for episode in due)]
        for file in files:
            if not file.exists():
                raise Damaged(file, "it is not there any more")
        digests = {str(file.relative_to(self.path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        record = {"episodes": self.spec.learner.num_episodes, "files": digests, "made_with": made_with()}
        write_record(self.path / "trained.json", record)

    def finished(self) -> bool:
        """Is the training over, its last episode done?"""
        return (self.path / "trained.json").exists()

    def checkpoints(self) -> list[int]:
        """The episodes after which the network was stored."""
        return sorted(int(file.stem) for file in (self.path / "params").glob("[0-9]*.eqx"))

    def last_checkpoint(self) -> int:
        """The last episode after which a network is stored, once the training is over."""
        learner = self.spec.learner
        return learner.num_episodes // learner.checkpoint_period * learner.checkpoint_period

    def network(self, episode: int) -> QNetwork:
        """The network after `episode` episodes."""
        require(
            episode in self.checkpoints(),
            rule=f"networks are stored every {self.spec.learner.checkpoint_period} episodes",
            received=episode,
            advice=f"choose among {self.checkpoints()}",
        )
        return load_tree(self._params(episode), self._like().network)

    def _params(self, episode: int) -> Path:
        return self.path / "params" / f"{episode}.eqx"

    def _like(self) -> Agent:
        """An agent's shapes; no number of it is used."""
        return eqx.filter_eval_shape(init_agent, jax.random.key(0), self.spec.pomdp, self.spec.learner)


def check_companions(folder: Path, spec: TrainingSpec) -> None:
    """Refuse a folder with runs that differ from this one in more than the seed."""
    asked = _settings(json.loads(spec.canonical_json()))
    for file in sorted((folder / "runs").glob("*/spec.json")):
        there = _settings(_read_description(file))
        different = sorted(name for name in asked.keys() | there.keys() if asked.get(name) != there.get(name))
        require(
            not different,
            rule="the runs of one folder differ in their seeds alone",
            received=", ".join(f"{name} {asked.get(name)} (there: {there.get(name)})" for name in different),
            advice=f"choose another folder than {folder}, or repeat the settings of the runs there",
        )


def _read_description(file: Path) -> dict[str, Any]:
    description: Any = None
    with contextlib.suppress(json.JSONDecodeError):
        description = json.loads(file.read_text())
    require(
        isinstance(description, dict),
        rule=f"{file} describes a run as a JSON object",
        received="something else",
        advice="restore the file or delete its run's folder",
    )
    return description


def _settings(description: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """All but the seed of a description, the inner fields by their paths."""
    flat = {}
    for name, value in description.items():
        inner = _settings(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
        flat.update(inner)
    flat.pop("seed", None)
    return flat
