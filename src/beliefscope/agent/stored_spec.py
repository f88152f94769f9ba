"""Reads back what a stored run was trained on: from `spec.json` to the `TrainingSpec` it describes."""

import json
from pathlib import Path
from typing import Any

from beliefscope.agent.cells import CELLS
from beliefscope.agent.training_spec import DRQN, TrainingSpec
from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Irrelevant, MountainHike, TMaze, read_pomdp
from beliefscope.store import RunFiles, is_file


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
