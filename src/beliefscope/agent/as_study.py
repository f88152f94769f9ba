"""Trained runs as a study of their own: what `beliefscope report` and the other commands that look ask for."""

import hashlib
import json
from collections.abc import Sequence

from beliefscope.agent.run_folder import RunFolder
from beliefscope.pomdp import label_of, maximal_return
from beliefscope.store.growing_study import NewRun, add_runs
from beliefscope.store.study_folder import LONGEST_NAME


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
