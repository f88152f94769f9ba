"""The folder of one training run, `DIR/runs/<id>`: description, metrics, networks, and the state to resume from.

    spec.json             what is trained
    metrics.jsonl         one line per evaluation
    params/<episode>.eqx  the network after so many episodes
    resume.eqx            all that is needed to go on, or to have ended
    failed.json           there if a parameter or the loss was not finite any more, with the episode

After each chunk of episodes the files are written in this order; `resume.eqx` comes last and what it says counts.
"""

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from beliefscope.agent.checkpoint import load_tree, save_tree, write_atomic
from beliefscope.agent.drqn import Agent, init_agent
from beliefscope.agent.network import QNetwork
from beliefscope.agent.training_spec import TrainingSpec
from beliefscope.errors import require


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
            advice="choose another folder",
        )
        for unfinished in self.path.rglob(".*.tmp"):
            unfinished.unlink(missing_ok=True)

    def save(self, agent: Agent, episode: int, metrics: list[dict[str, Any]]) -> None:
        """Store the state after `episode` episodes, all metrics so far and, where one is due, the network."""
        if episode % self.spec.learner.checkpoint_period == 0:
            save_tree(self._params(episode), agent.network)
        lines = "".join(json.dumps(line, allow_nan=False) + "\n" for line in metrics)
        write_atomic(self.path / "metrics.jsonl", lines.encode())
        save_tree(self.path / "resume.eqx", (jnp.asarray(episode), agent))

    def resume(self) -> tuple[int, Agent] | None:
        """The episodes done and the agent, or None before the first chunk."""
        file = self.path / "resume.eqx"
        if not file.exists():
            return None
        episode, agent = load_tree(file, (jnp.asarray(0), self._like()))
        return int(episode), agent

    def metrics(self, until: int | None = None) -> list[dict[str, Any]]:
        """One record per evaluation, by default all, else those of at most `until` episodes."""
        file = self.path / "metrics.jsonl"
        try:
            lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{file} holds one JSON object per line, but one cannot be read ({error}); "
                "restore the file or delete its run's folder and train again."
            ) from error
        return [line for line in lines if until is None or line["episode"] <= until]

    def fail(self, episode: int) -> None:
        """Record that after so many episodes a parameter or the loss was not finite any more."""
        record = {"episode": episode, "reason": "a parameter of the network or the loss is not a finite number"}
        write_atomic(self.path / "failed.json", (json.dumps(record) + "\n").encode())

    def failed(self) -> int | None:
        """The number of episodes (at least 1) after which the run failed, or None."""
        file = self.path / "failed.json"
        return json.loads(file.read_text())["episode"] if file.exists() else None

    def checkpoints(self) -> list[int]:
        """The episodes after which the network was stored."""
        return sorted(int(file.stem) for file in (self.path / "params").glob("[0-9]*.eqx"))

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
