"""One training run on disk: description, metrics, networks, and the state to resume from (store/layout.py).

After each chunk of episodes the network, the metrics and the state to resume from are written in this order;
`resume.eqx` decides how far a run is, and has the digests of the metrics and networks up to there, so that those of
another run are found in their place. A run that ends writes `trained.json`, with the digests of its files, or
`failed.json`. `read_spec` reads back what was trained, from `spec.json`. `enter` makes a folder of runs a study.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from beliefscope.agent.cells import CELLS
from beliefscope.agent.drqn import Agent, init_agent
from beliefscope.agent.network import QNetwork
from beliefscope.agent.training_spec import DRQN, TrainingSpec
from beliefscope.errors import is_whole, require
from beliefscope.pomdp import (
    POMDP,
    Irrelevant,
    MountainHike,
    PomdpFileError,
    TabularPOMDP,
    TMaze,
    format_pomdp,
    label_of,
    maximal_return,
    read_pomdp,
)
from beliefscope.store.files import (
    Damaged,
    clear_unfinished,
    load_tree,
    read_bytes,
    read_lines,
    read_record,
    save_tree,
    write_atomic,
    write_lines,
    write_record,
)
from beliefscope.store.growing_study import NewRun, add_runs
from beliefscope.store.layout import RunFiles, StudyFiles, is_file, is_there
from beliefscope.store.manifest import made_with
from beliefscope.store.records import checked, read_trained, stored_episodes
from beliefscope.store.schema import LONGEST_NAME, Evaluation, Failed


def read_spec(run: Path, *, file: Path | None = None) -> TrainingSpec:
    """The description of the run in this folder.

    A POMDP of tables is read from the .pomdp file that is stored with the run; `file` is needed where an older version
    stored none.

    A run is rebuilt only if this is exact: the result's own description must equal `spec.json`.
    """
    stored = RunFiles(run).spec
    require(
        is_file(stored),
        rule="a run is a folder with a spec.json, DIR/runs/<id>",
        received=str(run),
        advice="choose one of the folders that `beliefscope train` has named at its end",
    )
    text = stored.read_text("utf-8", "replace")
    kept = RunFiles(run).pomdp
    for spec in _candidates(stored, text, file if file is not None or not is_file(kept) else kept):
        if spec.canonical_json() == text:
            return spec
    raise ValueError(
        "a run is rebuilt from its description where the POMDP is beliefscope's own or in its .pomdp file, and the "
        f"cell is beliefscope's own, but {stored} describes another; pass the right .pomdp file by --file, or build "
        "the TrainingSpec in Python and call beliefscope.measure(RunFolder(folder, spec))."
    )


def _candidates(stored: Path, text: str, file: Path | None) -> list[TrainingSpec]:
    """All possible POMDPs: arrays are stored by digest, so the variants are tried."""
    try:
        described = json.loads(text)
        learner = dict(described["learner"])
        kind, cell = learner.pop("class"), CELLS.get(learner.pop("cell"))
        if kind != "DRQN" or cell is None:
            return []
        pomdps = _pomdps(described["pomdp"], file)
        return [
            TrainingSpec(pomdp=pomdp, learner=DRQN(cell=cell, **learner), seed=described["seed"]) for pomdp in pomdps
        ]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{stored} describes a run as `beliefscope train` writes it, but it cannot be read ({error!r}); restore "
            "the file or train again."
        ) from error


def _pomdps(described: dict[str, Any], file: Path | None) -> list[POMDP]:
    fields = dict(described)
    kind = fields.pop("class")
    if kind in ("TMaze", "MountainHike"):
        return [{"TMaze": TMaze, "MountainHike": MountainHike}[kind](**fields)]
    if kind == "Irrelevant":
        inner, size = _pomdps(fields["pomdp"], file), fields["dimensions"]
        return [Irrelevant.of_paper(pomdp, size, variant) for pomdp in inner for variant in ("text", "code")]
    return [] if file is None else [read_pomdp(file, horizon=fields["horizon"])]


_RIGHT: set[tuple[str, bytes | None]] = set()  # runs and digests of their .pomdp files: large ones take time to write


def _digest(file: Path) -> bytes | None:
    try:
        return hashlib.sha256(read_bytes(file)).digest()
    except (Damaged, FileNotFoundError):
        return None


@functools.lru_cache(maxsize=10_000)
def _digest_of(file: Path, modified: int) -> bytes:
    """Of a network, which is read once however many states are stored after it."""
    return hashlib.sha256(read_bytes(file)).digest()


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    folder: Path  # DIR
    spec: TrainingSpec

    @property
    def path(self) -> Path:
        return self.files.folder

    @property
    def files(self) -> RunFiles:
        return StudyFiles(self.folder).run(self.spec.id)

    def open(self) -> None:
        """Make the folder, or check that it is this run's and clear away what a killed process was writing.

        A POMDP of tables is kept beside the description, which has the digests of its arrays alone.
        """
        file, text = self.files.spec, self.spec.canonical_json()
        if not is_there(file):
            write_atomic(file, text.encode())
        require(
            read_bytes(file) == text.encode(),
            rule=f"{file} describes the run that its folder is named after",
            received="another description",
            advice="restore the file, or delete it so that it is written again",
        )
        clear_unfinished(self.files.folders)
        self._keep_tables()

    def _keep_tables(self) -> None:
        file, id = self.files.pomdp, self.spec.id
        if (id, _digest(file)) not in _RIGHT:
            tables = _tables(self.spec.pomdp)
            if tables is not None and _digest(file) != hashlib.sha256(tables.encode()).digest():
                write_atomic(file, tables.encode())
            _RIGHT.add((id, _digest(file)))

    def save(self, agent: Agent, episode: int, metrics: list[dict[str, Any]]) -> None:
        """Store the state after `episode` episodes, all metrics so far and, where one is due, the network."""
        if self.spec.learner.stores(episode):
            save_tree(self.files.network(episode), agent.network)
        write_lines(self.files.metrics, metrics)
        self.save_state(agent, episode, metrics)

    def save_state(self, agent: Agent, episode: int, metrics: list[dict[str, Any]]) -> None:
        """Store the state to resume from; networks and metrics are there already."""
        save_tree(self.files.resume, (jnp.asarray(episode), agent, self._digests(episode, metrics)), of=self.spec.id)

    def resume(self) -> tuple[int, Agent] | None:
        """The episodes done and the agent, or None before the first chunk."""
        file = self.files.resume
        if not is_there(file):
            return None
        like, none = (jnp.asarray(0), self._like()), np.zeros((len(self._lasting()), 32), np.uint8)
        try:
            episode, agent, digests = load_tree(file, (*like, none), of=self.spec.id)
        except Damaged:
            (episode, agent), digests = load_tree(file, like, of=self.spec.id), None  # older ones have none
        metrics = self.metrics(until=int(episode))
        if [line["episode"] for line in metrics][-1:] != [int(episode)]:
            raise Damaged(self.files.metrics, "its last lines are missing")
        if digests is not None:
            self._check_same(digests, self._digests(int(episode), metrics))
        return int(episode), agent

    def _check_same(self, stored: UInt8[np.ndarray, "files 32"], here: UInt8[np.ndarray, "files 32"]) -> None:
        """Raise `Damaged` for metrics and networks that are there, and not those that the state goes on from."""
        for file, before, now in zip(self._lasting(), stored, here, strict=True):
            if now.any() and (before != now).any():
                raise Damaged(file, "it is not the one that resume.eqx goes on from")

    def _digests(self, episode: int, metrics: list[dict[str, Any]]) -> UInt8[np.ndarray, "files 32"]:
        """Those of the metrics and networks of at most so many episodes; zeros for what is not there."""
        rows = [hashlib.sha256(json.dumps(metrics).encode()).digest()]
        for due, file in zip(self.spec.learner.checkpoints(), self._lasting()[1:], strict=True):
            rows.append(_digest_of(file, file.stat().st_mtime_ns) if due <= episode and is_there(file) else bytes(32))
        return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 32)

    def _lasting(self) -> list[Path]:
        """The files that a run leaves: its metrics, then its networks."""
        return [self.files.metrics, *map(self.files.network, self.spec.learner.checkpoints())]

    def metrics(self, until: int | None = None) -> list[dict[str, Any]]:
        """One record per evaluation, by default all, else those of at most `until` episodes."""
        file = self.files.metrics
        lines = [checked(file, line, Evaluation) for line in read_lines(file)] if is_there(file) else []
        return [line for line in lines if until is None or line["episode"] <= until]

    def fail(self, episode: int) -> None:
        """Record that after so many episodes a parameter or the loss was not finite any more.

        The network of the last state before that stays as one more checkpoint.
        """
        record = {"episode": episode, "reason": "a parameter of the network or the loss is not a finite number"}
        state = self.resume()
        if state is not None:
            last, agent = state
            if not is_there(self.files.network(last)):
                save_tree(self.files.network(last), agent.network)
            record["last_network"] = last
        write_record(self.files.failed, record)

    def failed(self) -> int | None:
        """The number of episodes (at least 1) after which the run failed, or None."""
        file = self.files.failed
        return checked(file, read_record(file), Failed)["episode"] if is_there(file) else None

    def finish(self) -> None:
        """Record that the last episode is done, and the digests of what the run leaves."""
        files = self._lasting()
        for file in files:
            if not is_file(file):
                raise Damaged(file, "it is missing")
        digests = {str(file.relative_to(self.path)): hashlib.sha256(read_bytes(file)).hexdigest() for file in files}
        record = {"episodes": self.spec.learner.num_episodes, "files": digests, "made_with": made_with()}
        write_record(self.files.trained, record)

    def store_last(self) -> None:
        """A run of an older version may have ended without its last network, which resume.eqx still has."""
        last = self.spec.learner.num_episodes
        if not self.finished() or last in self.due() or not set(self.due()) <= set(self.checkpoints()):
            return
        state = self.resume()
        if state is not None and state[0] == last:
            save_tree(self.files.network(last), state[1].network)
            self.finish()

    def finished(self) -> bool:
        """Is the training over, its last episode done?"""
        return is_file(self.files.trained)

    def checkpoints(self) -> list[int]:
        """The episodes after which the network was stored, and is there."""
        return self.files.networks()

    def due(self) -> list[int]:
        """The episodes after which the run stores a network, whether these are there yet, or were removed since.

        Of a run that is over its records say so: one of an older version may lack the last network.
        """
        if self.finished():
            return stored_episodes(read_trained(self.files.trained))
        asked, failed = self.spec.learner.checkpoints(), self.files.failed
        if not is_there(failed):
            return asked
        record = checked(failed, read_record(failed), Failed)
        last = record.get("last_network")
        return sorted({*(each for each in asked if each < record["episode"]), *([] if last is None else [last])})

    def last_checkpoint(self) -> int:
        """The last episode after which a network is stored, once the training is over."""
        return self.due()[-1]

    def network(self, episode: int) -> QNetwork:
        """The network after `episode` episodes."""
        require(
            episode in self.checkpoints(),
            rule=f"networks are stored at the start, at the end and every {self.spec.learner.checkpoint_period} "
            "episodes (checkpoint_period), until `beliefscope archive` removes them",
            received=episode,
            advice=f"choose among {self.checkpoints()}, or train the run again",
        )
        return load_tree(self.files.network(episode), self._like().network)

    def _like(self) -> Agent:
        """An agent's shapes; no number of it is used."""
        return eqx.filter_eval_shape(init_agent, jax.random.key(0), self.spec.pomdp, self.spec.learner)


def _tables(pomdp: POMDP) -> str | None:
    """A POMDP of tables as a .pomdp file, from which the same arrays are read; None for others."""
    inner = pomdp.pomdp if isinstance(pomdp, Irrelevant) else pomdp
    with contextlib.suppress(PomdpFileError):  # the format holds no first observation
        return format_pomdp(inner) if isinstance(inner, TabularPOMDP) else None
    return None


def check_companions(folder: Path, spec: TrainingSpec) -> None:
    """Refuse a folder with runs that differ from this one in more than the seed."""
    asked = _settings(json.loads(spec.canonical_json()))
    for run in StudyFiles(folder).runs():
        there = _settings(_read_description(run.spec))
        different = sorted(name for name in asked.keys() | there.keys() if asked.get(name) != there.get(name))
        length = "learner.num_episodes"
        longer = different == [length] and is_whole(there[length]) and there[length] < asked[length]
        require(
            not different,
            rule="the runs of one folder differ only in their seeds",
            received=", ".join(f"{name} {asked.get(name)} (there: {there.get(name)})" for name in different),
            advice=f"to train these agents longer, choose another folder and add --lengthen {folder}"
            if longer
            else f"choose another folder than {folder}, or repeat the settings of the runs there",
        )


def _read_description(file: Path) -> dict[str, Any]:
    description: Any = None
    with contextlib.suppress(ValueError):
        description = json.loads(read_bytes(file))
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


def enter(runs: Sequence[RunFolder], environment: str | None = None) -> None:
    """Enter the runs of one folder into its study.json; `environment` is its name, by default from the POMDP."""
    by_id = {run.spec.id: run.spec for run in runs}

    def optimum(id: str) -> float | None:
        best = maximal_return(by_id[id].pomdp)
        return best.value if best is not None and best.exact else None

    add_runs(runs[0].folder, [_described(run, environment) for run in runs], optimum)


def _described(run: RunFolder, environment: str | None) -> NewRun:
    spec, described = run.spec, json.loads(run.spec.canonical_json())
    del described["seed"], described["learner"]["cell"]
    group = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
    name = "".join(letter if letter.isprintable() else "�" for letter in environment or label_of(spec.pomdp))
    return NewRun(spec.id, name[:LONGEST_NAME], spec.learner.cell.__name__, spec.seed, group)
