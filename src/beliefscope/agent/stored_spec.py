"""Reads back what a stored run was trained on: from `spec.json` to the `TrainingSpec` it describes."""

import json
from pathlib import Path
from typing import Any

from beliefscope.agent.cells import BRC, GRU, LSTM, MGU, NBRC
from beliefscope.agent.hyperparameters import DRQN
from beliefscope.agent.training_spec import TrainingSpec
from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze, read_pomdp

CELLS = {cell.__name__: cell for cell in (LSTM, GRU, BRC, NBRC, MGU)}


def read_spec(run: Path, *, file: Path | None = None) -> TrainingSpec:
    """The description of the run in this folder; `file` is the .pomdp file of a run that was trained on one.

    Only what can be rebuilt exactly is: the result describes itself in the very words of `spec.json`.
    """
    stored = run / "spec.json"
    require(
        stored.is_file(),
        rule="a run is a folder with a spec.json, DIR/runs/<id>",
        received=str(run),
        advice="choose one of the folders that `beliefscope train` has named at its end",
    )
    text = stored.read_text()
    for spec in _candidates(stored, text, file):
        if spec.canonical_json() == text:
            return spec
    raise ValueError(
        "a run is rebuilt from its description where the POMDP is beliefscope's own or its .pomdp file is given, and "
        f"the cell is beliefscope's own, but {stored} describes another; pass --file for a .pomdp file, or build the "
        "TrainingSpec in Python and call beliefscope.measure(RunFolder(folder, spec))."
    )


def _candidates(stored: Path, text: str, file: Path | None) -> list[TrainingSpec]:
    """All that may have been meant: arrays are stored by digest, so the variants are tried."""
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
