"""The tables of a study's file (environments, training, measurement, interventions), and what a scale fills in.

Every table is checked: it has only known keys, each with a value of its kind. A kind is `bool`, `int`, `float`, `str`,
`dict`, a list of one of them, or a union such as `str | list[int]`. A whole number has at most 64 bits. Where a number
is wanted a whole number becomes one, so that 0 and 0.0 mean the same.
"""

import dataclasses
import math
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from beliefscope.agent import DRQN
from beliefscope.agent.cells import CELLS, LSTM
from beliefscope.errors import is_real, is_whole, nearest, require
from beliefscope.pomdp import HORIZON, POMDP, Finite, Irrelevant, MountainHike, TMaze, Variant, read_pomdp
from beliefscope.store import MeasurementSpec
from beliefscope.store.pieces import ESTIMATORS, STORED, asked_estimator, estimator_name, first_middle_last
from beliefscope.study.spec import Measurement

ScaleName = Literal["quick", "small", "full"]
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
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "a table"}
PLURALS = {bool: "booleans", int: "whole numbers", float: "numbers", str: "texts", dict: "tables"}


class Scale(NamedTuple):
    """One of the three sizes of a study; it gives the values that a study's file leaves out."""

    num_episodes: int
    checkpoint_period: int
    seeds: tuple[int, ...]
    num_samples: int
    num_particles: int
    epochs: int | None  # of MINE; None is the estimator's own: 200 for 'text', 100 for 'code'
    controls: str  # which checkpoints get them: seven fits there in place of one
    without_mine: bool = False  # in a finite POMDP, unless a file asks for it: the atoms bound stands in its place
    bound_samples: int | None = None  # of sufficiency where it does: so many that the bound is tight
    mine_samples: int | None = None  # of MINE; None is num_samples
    mine_checkpoints: str = "all"  # of MINE
    mine_controls: str | None = None  # of MINE; None is controls


# MINE needs more than a thousand steps of Adam to converge, which takes far longer than sufficiency. At `quick` it has
# them, and is measured at fewer checkpoints. In a maze of L = 50 that is not enough: with 10,000 pairs and 200 epochs
# it reads 2.97 bits of a memory that holds 3.9, as 6,000 pairs suffice to prove.
SCALES: dict[str, Scale] = {
    "quick": Scale(
        300,
        100,
        (0, 1),
        2_000,
        64,
        400,
        "last",
        without_mine=True,
        bound_samples=6_000,
        mine_samples=4_000,
        mine_checkpoints="first-last",
        mine_controls="none",
    ),
    "small": Scale(2_000, 200, (0, 1, 2, 3), 5_000, 128, 100, "first-middle-last"),
    "full": Scale(5_000, 100, (0, 1, 2, 3), 10_000, 1_000, None, "first-middle-last"),
}


def read_table(table: dict[str, Any], *, what: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The table's values, of the kinds that `keys` names; `what` is what errors call the table."""
    for key in table:
        require(
            key in keys,
            rule=f"the keys of {what} are {', '.join(keys)}",
            received=key,
            advice=nearest(key, keys, otherwise="leave it out"),
        )
    return {key: _value(key, value, keys[key]) for key, value in table.items()}


def one_of(value: str, choices: Iterable[str], *, what: str) -> str:
    """The value, if it is one of the choices."""
    choices = list(choices)
    require(
        value in choices,
        rule=f"{what} is {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}",
        received=value,
        advice=nearest(value, choices, otherwise="choose one of these"),
    )
    return value


def build_from_file(path: Path, horizon: int) -> POMDP:
    """The POMDP of a .pomdp file."""
    require(
        path.is_file(),
        rule="the path of a POMDP leads to a .pomdp file",
        received=str(path.absolute()),
        advice="that is a folder: name a file in it" if path.is_dir() else "nothing is there: correct the path",
    )
    return read_pomdp(path, horizon=horizon)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TMazeEnvironment:
    """The T-Maze: remember the first observation until the junction."""

    length: int = 50
    """L, the corridor's length; the paper uses 50 and 100."""
    stochasticity: float = 0.0
    """λ, how often a move goes astray; the paper's Stochastic T-Maze has 0.3."""
    irrelevant: int = 0
    """d, irrelevant variables to observe beside it; the paper uses 1 and 4."""
    label = None  # by the POMDP itself

    def build(self, variant: Variant, folder: Path = Path()) -> POMDP:
        """With the paper's horizon, where there is one."""
        require(
            self.stochasticity != 1,
            rule="the horizon of a T-Maze, ⌈3 L / (1 − λ)⌉, needs a stochasticity λ below 1",
            received=self.stochasticity,
            advice="the paper uses 0 and 0.3; in Python TMaze(length, 1, horizon=…) has a horizon of its own",
        )
        return _with_irrelevant(TMaze(self.length, self.stochasticity), self.irrelevant, variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MountainHikeEnvironment:
    """The Mountain Hike: find the goal on a map, seeing a noisy altitude."""

    varying: bool = False
    """Start with an unknown orientation: the paper's Varying Mountain Hike."""
    irrelevant: int = 0
    """d, irrelevant variables to observe beside it; the paper uses 1 and 4."""
    label = None

    def build(self, variant: Variant, folder: Path = Path()) -> POMDP:
        return _with_irrelevant(MountainHike.of_paper(variant, varying=self.varying), self.irrelevant, variant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileEnvironment:
    """Any POMDP in Cassandra's .pomdp format."""

    path: str = ""
    """The file; in a study, relative to the study's own."""
    horizon: int = HORIZON
    """H, the number of actions after which an episode is cut."""

    @property
    def label(self) -> str:
        return Path(self.path).stem

    def build(self, variant: Variant, folder: Path) -> POMDP:
        require(
            self.path != "",
            rule="an environment with pomdp = 'file' has a path, relative to the study's file",
            received=self.path,
            advice="write path = 'my.pomdp'",
        )
        return build_from_file(folder / self.path, self.horizon)


Environment = TMazeEnvironment | MountainHikeEnvironment | FileEnvironment
KINDS: dict[str, type[Environment]] = {
    "t-maze": TMazeEnvironment,
    "mountain-hike": MountainHikeEnvironment,
    "file": FileEnvironment,
}


def read_environment(table: dict[str, Any]) -> Environment:
    """The environment that a table of the study's file describes."""
    name = table.get("pomdp", "")
    require(
        isinstance(name, str) and name != "",
        rule="an environment has a key pomdp, which is " + " or ".join(map(repr, KINDS)),
        received=table,
        advice="write pomdp = 't-maze', say",
    )
    kind = KINDS[one_of(name, KINDS, what="pomdp")]
    keys = {field.name: field.type for field in dataclasses.fields(kind)}
    given = read_table(table, what=f"a {name} environment", keys={"pomdp": str, **keys})
    return kind(**{key: value for key, value in given.items() if key != "pomdp"})


def read_learner(table: dict[str, Any], *, cell: str, scale: Scale, variant: Variant) -> DRQN:
    """How the agents with this cell learn."""
    given = read_table(table, what="[training]", keys=TRAINING)
    num_episodes = given.get("num_episodes", scale.num_episodes)
    # A period that the file leaves open gives way to the file's number of episodes: checkpoints are equally far apart.
    period = math.gcd(scale.checkpoint_period, num_episodes)
    filled = {"num_episodes": num_episodes, "checkpoint_period": period, **given}
    learner = DRQN(cell=CELLS[cell], variant=variant, **filled)
    require(
        learner.num_episodes // learner.checkpoint_period <= MAX_CHECKPOINTS,
        rule=f"a run of a study stores at most {MAX_CHECKPOINTS} networks",
        received=learner.num_episodes // learner.checkpoint_period,
        advice="raise checkpoint_period in [training]",
    )
    return learner


def read_measurements(table: dict[str, Any], *, learner: DRQN, pomdp: POMDP, scale: Scale) -> tuple[Measurement, ...]:
    """What is measured of a run: every estimator with every ε and memory."""
    given = read_table(table, what="[measurement]", keys=MEASUREMENT)
    estimators, part = _estimators(given, learner, pomdp, scale), given.get("part", "all")
    require(
        part not in ("relevant", "irrelevant") or isinstance(pomdp, Irrelevant),
        rule="only an environment with irrelevant variables has a belief in parts",
        received=f"part = {part!r}",
        advice="write part = 'all', or irrelevant = 1 in the environment",
    )
    stored = learner.checkpoints()
    alone = isinstance(pomdp, Finite) and not any(each in STORED for each in estimators)
    specs = [
        MeasurementSpec(
            estimator=estimator,  # pyright: ignore[reportArgumentType]
            num_samples=given.get("num_samples", _usual_samples(estimator, scale, alone=alone)),
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
    asked = given.get("calibrate", True)
    return tuple(
        Measurement(
            spec=spec,
            episodes=episodes,
            controls=thorough if _has_controls(spec, least) else (),
            calibrate=asked and spec.estimator != "sufficiency",
        )
        for spec, (episodes, thorough) in ((spec, _when(given, spec, scale, stored)) for spec in specs)
    )


def _when(
    given: dict[str, Any], spec: MeasurementSpec, scale: Scale, stored: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The checkpoints that are measured, and those of them that get controls. What the file says holds for all."""
    is_mine = spec.estimator in STORED
    usual = scale.mine_controls if is_mine and scale.mine_controls is not None else scale.controls
    episodes = chosen_checkpoints(given.get("checkpoints", scale.mine_checkpoints if is_mine else "all"), stored)
    controls = _controls(given.get("controls", usual), stored)
    return episodes, tuple(each for each in episodes if each in controls)


def _usual_samples(estimator: str, scale: Scale, *, alone: bool) -> int:
    """`alone`: the atoms bound is all that there is of bits."""
    if estimator in STORED:
        return scale.mine_samples or scale.num_samples
    return scale.bound_samples or scale.num_samples if alone else scale.num_samples


def _has_controls(spec: MeasurementSpec, least: float) -> bool:
    return (spec.memory, spec.epsilon) == ("hidden", least) and spec.estimator != "atoms"


def _estimators(given: dict[str, Any], learner: DRQN, pomdp: POMDP, scale: Scale) -> list[str]:
    """By default the variant's MINE, as in the paper, and sufficiency."""
    without_mine = scale.without_mine and isinstance(pomdp, Finite) and "epochs" not in given
    default = [*([] if without_mine else [estimator_name(learner.variant)]), "sufficiency"]
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
        advice="leave epochs out: the other estimators choose their own",
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


def chosen_checkpoints(asked: str | list[int], stored: list[int]) -> tuple[int, ...]:
    if isinstance(asked, list):
        return tuple(sorted(asked))
    choices = {
        "all": tuple(stored),
        "first-middle-last": first_middle_last(stored),
        "first-last": tuple(sorted({stored[0], stored[-1]})),
        "last": (stored[-1],),
    }
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


def _with_irrelevant(pomdp: POMDP, size: int, variant: Variant) -> POMDP:
    require(
        size >= 0,
        rule="irrelevant is a whole number of at least 0",
        received=size,
        advice="the paper uses 1 and 4, and 0 leaves the environment as it is",
    )
    return Irrelevant.of_paper(pomdp, size, variant) if size else pomdp


def _value(key: str, value: Any, kind: Any) -> Any:
    chosen = next((each for each in _alternatives(kind) if _fits(value, each)), None)
    advice = f"write [[{key}]], in double brackets" if kind == list[dict] else "change its value"
    require(chosen is not None, rule=f"{key} is {_words(kind)}", received=value, advice=advice)
    if not isinstance(value, list):
        return _number(value) if chosen is float else value
    values = [_number(each) for each in value] if get_args(chosen) == (float,) else value
    repeated = any(each in values[:place] for place, each in enumerate(values))
    require(
        bool(values), rule=f"{key} lists at least one value", received=value, advice="add one, or leave the key out"
    )
    require(not repeated, rule=f"{key} lists no value twice", received=value, advice="leave out the repeated ones")
    return values


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(each, *get_args(kind)) for each in value)
    if kind is int:
        return is_whole(value) and abs(value) < 2**63
    if kind is float:
        return is_real(value) and (isinstance(value, float) or abs(value) < 2**53)
    return isinstance(value, kind)


def _number(value: int | float) -> float:
    return float(value) + 0.0  # so that −0 becomes 0


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def _words(kind: Any) -> str:
    def word(each: Any) -> str:
        return f"a list of {PLURALS[get_args(each)[0]]}" if get_origin(each) is list else WORDS[each]

    return " or ".join(word(each) for each in _alternatives(kind))
