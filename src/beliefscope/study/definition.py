"""A study's definition: from a TOML file, or the name of a study that beliefscope ships, to the study.

    name = "my-study"                # the file's stem by default
    description = "one line"
    cells = ["GRU", "LSTM"]          # all five by default
    seeds = [0, 1]                   # by scale
    traces = true                    # of the first, middle and last checkpoint of each first seed
    include = ["paper/tmaze-50"]     # the runs of other studies besides; shared ones are merged

    [[environments]]
    pomdp = "t-maze"                 # with length, stochasticity, irrelevant;
                                     # or mountain-hike: varying, irrelevant; or file: path, horizon
    [training]                       # any field of DRQN but cell and variant

    [measurement]
    estimators = ["mine", "sufficiency"]  # mine, mine-authors, sufficiency, atoms, best-bound; by variant and scale
    epsilons = [0.0]
    part = "all"
    memories = ["hidden"]            # h; and "whole": (h, c) of the LSTM
    checkpoints = "all"              # or first-middle-last, first-last (of MINE, at quick), last, or a list of episodes
    controls = "first-middle-last"   # or last (at quick; of MINE none), none, all
    calibrate = true                 # one checkpoint of each environment: known information with its beliefs
    num_samples = 10000              # by scale, as num_particles and epochs

    [interventions]                  # none without this table; on environments with finitely many states
    checkpoints = "first-last"       # or as above

What the file says holds at every scale. All that is wrong gets one sentence that begins with the file.
"""

import contextlib
import dataclasses
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from beliefscope.agent import DRQN, TrainingSpec
from beliefscope.agent.cells import CELLS
from beliefscope.errors import require
from beliefscope.pomdp import POMDP, Finite, Variant, label_of
from beliefscope.store.pieces import first_middle_last
from beliefscope.studies import shipped_studies, shipped_text, user_text
from beliefscope.study.definition_tables import (
    SCALES,
    Scale,
    ScaleName,
    chosen_checkpoints,
    one_of,
    read_environment,
    read_learner,
    read_measurements,
    read_table,
)
from beliefscope.study.spec import RunSpec, Study, check_name, checkpoints, merge

__all__ = ["read_study", "shipped_studies"]

STUDY = {
    "name": str,
    "description": str,
    "cells": list[str],
    "seeds": list[int],
    "traces": bool,
    "include": list[str],
    "environments": list[dict],
    "training": dict,
    "measurement": dict,
    "interventions": dict,
}
ENVIRONMENT_KEYS = ("cells", "seeds", "training", "measurement", "interventions")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Settings:
    """The settings with which a definition is read."""

    scale: Scale
    variant: Variant
    within: tuple[str, ...] = ()  # the studies that include this one, and itself
    folder: Path = Path()  # relative paths start here


def read_study(name_or_path: str | Path, *, scale: ScaleName = "quick", variant: Variant = "text") -> Study:
    """The study that is shipped under this name, or defined in this file if it ends in `.toml`."""
    one_of(scale, SCALES, what="the scale")
    one_of(variant, get_args(Variant), what="the variant")
    content, runs = _read(str(name_or_path), _Settings(scale=SCALES[scale], variant=variant))
    return Study(
        name=content["name"],
        description=content.get("description", ""),
        runs=runs,
        settings={"scale": scale, "variant": variant},
    )


def _read(name: str, settings: _Settings) -> tuple[dict[str, Any], tuple[RunSpec, ...]]:
    """A definition's content and its runs."""
    is_file, path = name.endswith(".toml"), settings.folder / name
    here = str(path.resolve()) if is_file else name
    require(
        here not in settings.within, rule="no study includes itself", received=name, advice="leave out that include"
    )
    text = user_text(path) if is_file else shipped_text(name)
    inside = dataclasses.replace(
        settings, within=(*settings.within, here), folder=path.parent if is_file else settings.folder
    )
    with _errors_naming(str(path) if is_file else name):
        content = {"name": path.stem if is_file else name, **read_table(_parse(text), what="a study", keys=STUDY)}
        check_name(content["name"])
        require(
            len(content.get("description", "x").splitlines()) == 1,
            rule="a study's description is one line",
            received=content.get("description"),
            advice="shorten it to one, or leave it out",
        )
        return content, _runs(content, inside)


def _runs(content: dict[str, Any], settings: _Settings) -> tuple[RunSpec, ...]:
    included = [run for name in content.get("include", []) for run in _read(name, settings)[1]]
    misplaced = [key for key in ENVIRONMENT_KEYS if key in content and "environments" not in content]
    require(
        not misplaced,
        rule=f"{', '.join(ENVIRONMENT_KEYS)} concern the study's own environments, not those it includes",
        received=misplaced,
        advice="add [[environments]], or leave them out",
    )
    runs = merge([*included, *_own_runs(content, settings)])
    require(
        len(runs) > 0,
        rule="a study has [[environments]] or includes other studies",
        received="neither",
        advice="write [[environments]] and below it pomdp = 't-maze', say",
    )
    labels = Counter(run.label for run in runs)
    require(
        len(labels) == len(runs),
        rule="a study has no two different runs of the same environment, cell and seed",
        received=[label for label, count in labels.items() if count > 1][:3],
        advice="put them into two studies",
    )
    return runs if content.get("traces", True) else tuple(dataclasses.replace(run, traces=()) for run in runs)


def _own_runs(content: dict[str, Any], settings: _Settings) -> Iterator[RunSpec]:
    cells = [one_of(cell, CELLS, what="a cell") for cell in content.get("cells", CELLS)]
    seeds = content.get("seeds", settings.scale.seeds)
    learners = [
        read_learner(content.get("training", {}), cell=cell, scale=settings.scale, variant=settings.variant)
        for cell in cells
    ]
    environments = [read_environment(table) for table in content.get("environments", [])]
    pomdps = [environment.build(settings.variant, settings.folder) for environment in environments]
    names = [each.label or label_of(pomdp) for each, pomdp in zip(environments, pomdps, strict=True)]
    labels = Counter(names)
    require(
        len(labels) == len(environments),
        rule="the environments of a study differ in their names",
        received=[label for label, count in labels.items() if count > 1],
        advice="leave out the repeated ones, or give one .pomdp file another name",
    )
    for name, pomdp in zip(names, pomdps, strict=True):
        for learner in learners:
            measurements = read_measurements(
                content.get("measurement", {}), learner=learner, pomdp=pomdp, scale=settings.scale
            )
            for seed in seeds:
                training = TrainingSpec(pomdp=pomdp, learner=learner, seed=seed)
                yield RunSpec(
                    training=training,
                    environment=name,
                    measurements=measurements,
                    traces=first_middle_last(checkpoints(training)) if seed == seeds[0] else (),
                    interventions=_interventions(content.get("interventions"), learner=learner, pomdp=pomdp),
                )


def _interventions(table: dict[str, Any] | None, *, learner: DRQN, pomdp: POMDP) -> tuple[int, ...]:
    """The checkpoints that are intervened on; none without the table."""
    if table is None:
        return ()
    given = read_table(table, what="[interventions]", keys={"checkpoints": str | list[int]})
    require(
        isinstance(pomdp, Finite),
        rule="interventions are for environments with finitely many states, whose observations recur",
        received=type(pomdp).__name__,
        advice="leave out [interventions], or put this environment into another study",
    )
    return chosen_checkpoints(given.get("checkpoints", "first-last"), learner.checkpoints())


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"a study is written in TOML, but this is not: {error}; correct it there.") from error


@contextlib.contextmanager
def _errors_naming(file: str) -> Iterator[None]:
    """Errors raised inside begin with the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
