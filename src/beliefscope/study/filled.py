"""The tables `[training]` and `[measurement]` of a study's file, filled in by the scale: learners and measurements."""

import dataclasses
import math
from typing import Any

from beliefscope.agent import DRQN
from beliefscope.agent.cells import LSTM
from beliefscope.agent.stored_spec import CELLS
from beliefscope.errors import require
from beliefscope.measurement import MeasurementSpec
from beliefscope.measurement.measurement_spec import ESTIMATORS, STORED, asked_estimator, estimator_name
from beliefscope.pomdp import POMDP, Finite, Irrelevant, Variant
from beliefscope.study.run_spec import Measurement, first_middle_last
from beliefscope.study.scales import Scale
from beliefscope.study.table import one_of, read_table

TRAINING = {field.name: field.type for field in dataclasses.fields(DRQN) if field.name not in ("cell", "variant")}
MEASUREMENT = {
    "estimators": list[str],
    "epsilons": list[float],
    "part": str,
    "memories": list[str],
    "checkpoints": str | list[int],
    "controls": str,
    "calibrate": bool,
    "num_samples": int,
    "num_particles": int,
    "epochs": int,
}
MAX_CHECKPOINTS = 10_000


def learner_of(table: dict[str, Any], *, cell: str, scale: Scale, variant: Variant) -> DRQN:
    """How the agents with this cell learn."""
    given = read_table(table, what="[training]", keys=TRAINING)
    num_episodes = given.get("num_episodes", scale.num_episodes)
    # A period that the file leaves open gives way to the file's number of episodes, so that the last network is stored.
    period = math.gcd(scale.checkpoint_period, num_episodes)
    filled = {"num_episodes": num_episodes, "checkpoint_period": period, **given}
    learner = DRQN(cell=CELLS[cell], variant=variant, **filled)
    require(
        learner.num_episodes % learner.checkpoint_period == 0,
        rule=f"num_episodes is a multiple of checkpoint_period, here {learner.checkpoint_period}, so that the last "
        "network is stored",
        received=learner.num_episodes,
        advice="change one of them in [training]",
    )
    require(
        learner.num_episodes // learner.checkpoint_period <= MAX_CHECKPOINTS,
        rule=f"a run of a study stores at most {MAX_CHECKPOINTS} networks",
        received=learner.num_episodes // learner.checkpoint_period,
        advice="raise checkpoint_period in [training]",
    )
    return learner


def measurements_of(table: dict[str, Any], *, learner: DRQN, pomdp: POMDP, scale: Scale) -> tuple[Measurement, ...]:
    """What is measured of a run: every estimator with every ε and memory."""
    given = read_table(table, what="[measurement]", keys=MEASUREMENT)
    estimators, part = _estimators(given, learner, pomdp), given.get("part", "all")
    require(
        part not in ("relevant", "irrelevant") or isinstance(pomdp, Irrelevant),
        rule="only an environment with irrelevant variables has a belief in parts",
        received=f"part = {part!r}",
        advice="write part = 'all', or irrelevant = 1 in the environment",
    )
    stored = list(range(0, learner.num_episodes + 1, learner.checkpoint_period))
    episodes = _episodes(given.get("checkpoints", "all"), stored)
    controls = _controls(given.get("controls", scale.controls), stored)
    specs = [
        MeasurementSpec(
            estimator=estimator,  # pyright: ignore[reportArgumentType]
            num_samples=given.get("num_samples", scale.num_samples),
            num_particles=given.get("num_particles", scale.num_particles),
            epsilon=epsilon,
            epochs=given.get("epochs", scale.epochs) if estimator in STORED else None,
            part=one_of(part, ("all", "relevant", "irrelevant"), what="part"),  # pyright: ignore[reportArgumentType]
            memory=memory,  # pyright: ignore[reportArgumentType]
        )
        for memory in _memories(given.get("memories", ["hidden"]), learner)
        for estimator in estimators
        for epsilon in given.get("epsilons", [0.0])
    ]
    # Shown beside the information in h on the histories nearest to the greedy policy's; each costs six fits more.
    least = min((spec.epsilon for spec in specs), default=0.0)  # of a GRU the whole memory is not measured: none
    thorough = tuple(each for each in episodes if each in controls)
    asked = given.get("calibrate", True)
    return tuple(
        Measurement(
            spec=spec,
            episodes=episodes,
            controls=thorough if _has_controls(spec, least) else (),
            calibrate=asked and spec.estimator != "sufficiency",
        )
        for spec in specs
    )


def _has_controls(spec: MeasurementSpec, least: float) -> bool:
    return (spec.memory, spec.epsilon) == ("hidden", least) and spec.estimator != "atoms"


def _estimators(given: dict[str, Any], learner: DRQN, pomdp: POMDP) -> list[str]:
    """By default the variant's MINE, as in the paper, and sufficiency."""
    default = [estimator_name(learner.variant), "sufficiency"]
    asked = [
        one_of(asked_estimator(each), ESTIMATORS, what="an estimator") for each in given.get("estimators", default)
    ]
    require(
        len(set(asked)) == len(asked),
        rule="estimators names each of them once, 'text' being 'mine' and 'code' being 'mine-authors'",
        received=given.get("estimators"),
        advice="leave out the repeated ones",
    )
    require(
        "epochs" not in given or any(each in STORED for each in asked),
        rule="epochs concerns the estimators 'mine' and 'mine-authors'",
        received=asked,
        advice="leave epochs out: the others choose for themselves",
    )
    inner = pomdp.pomdp if isinstance(pomdp, Irrelevant) else pomdp
    require(
        "atoms" not in asked or (isinstance(inner, Finite) and (inner is pomdp or given.get("part") == "relevant")),
        rule="the atoms bound is for beliefs that are rows of probabilities, those of a finite POMDP",
        received=type(pomdp).__name__,
        advice="leave out 'atoms'; 'sufficiency' has it beside its shares wherever beliefs recur",
    )
    return asked


def _memories(asked: list[str], learner: DRQN) -> list[str]:
    """The whole memory is another one only where a cell carries more than its hidden state, as the LSTM does."""
    for memory in asked:
        one_of(memory, ("hidden", "whole"), what="a memory")
    return [memory for memory in asked if memory == "hidden" or learner.cell is LSTM]


def _episodes(asked: str | list[int], stored: list[int]) -> tuple[int, ...]:
    if isinstance(asked, list):
        return tuple(sorted(asked))
    choices = {"all": tuple(stored), "first-middle-last": first_middle_last(stored), "last": (stored[-1],)}
    return choices[one_of(asked, choices, what="checkpoints, unless a list of episodes,")]


def _controls(asked: str, stored: list[int]) -> tuple[int, ...]:
    """Of what is stored, not of what is measured, or the same checkpoint would have controls in one study only."""
    choices = {
        "first-middle-last": first_middle_last(stored),
        "last": (stored[-1],),
        "none": (),
        "all": tuple(stored),
    }
    return choices[one_of(asked, choices, what="controls")]
