"""What each kind of stored record holds. records.py checks them against it where they are read.

The kinds are written as types. A record may have more entries than its kind names, because older and newer versions
write others. A whole number is accepted where a number is asked for.
"""

from typing import Any, Literal, NotRequired, TypedDict

LONGEST_NAME = 200  # of a study, in bytes: folders are named after studies; and of what is in it, in characters


class Trained(TypedDict):
    episodes: int
    files: dict[str, str]


class Failed(TypedDict):
    episode: int
    last_network: NotRequired[int]


class Failure(TypedDict):
    piece: str
    error: str


Evaluation = TypedDict("Evaluation", {"episode": int, "return": float | None})


class Call(TypedDict):
    """One call of `run`, for people."""

    started: str
    versions: dict[str, str | None]
    revision: str | None
    python: str
    device: str


class Manifest(TypedDict):
    calls: list[Call]


class Measurement(TypedDict):
    """What is asked for."""

    estimator: str
    num_samples: int
    num_particles: int
    epsilon: float
    epochs: int | None
    part: Literal["all", "relevant", "irrelevant"]
    memory: NotRequired[Literal["hidden", "whole"]]


class StoredPiece(TypedDict):
    """A piece in study.json."""

    kind: Literal["train", "measure", "trace", "intervene"]
    episode: NotRequired[int]
    controls: NotRequired[bool]
    calibrate: NotRequired[bool]
    added: NotRequired[bool]  # by `beliefscope measure`, to a study of `beliefscope run`
    measurement: NotRequired[Measurement]


class StoredRun(TypedDict):
    """A run in study.json."""

    id: str
    environment: str
    cell: str
    seed: int
    pieces: list[StoredPiece]


class StudyRecord(TypedDict):
    """study.json."""

    format: int
    name: str
    description: NotRequired[str]
    settings: dict[str, str]
    optimum: NotRequired[dict[str, float]]
    runs: list[StoredRun]


class Entropy(TypedDict):
    """H(b)."""

    bits: float
    flagged: bool


class Health(TypedDict):
    """Of the filter."""

    effective_sample_size: float | None
    impossible: float | None


class Bits(TypedDict):
    """An estimate."""

    bits: float
    standard_error: float


class Controls(TypedDict("_Controls", {"memory and time": Bits})):
    """What else may tell the belief."""

    shuffled: Bits
    untrained: Bits
    time: Bits
    observation: Bits
    recent: Bits


class Decoded(TypedDict):
    """What a decoder reads."""

    cross_entropy: float
    kl: float
    total_variation: float
    baseline_cross_entropy: float
    baseline_kl: float
    baseline_total_variation: float


class Decoders(TypedDict):
    """Both."""

    linear: Decoded
    MLP: Decoded


class KnownPoint(TypedDict):
    """What is read of known information."""

    truth: float
    bits: float


class Calibration(TypedDict):
    """With an environment's beliefs."""

    num_atoms: int
    in_cells: bool
    points: list[KnownPoint]


class MeasuredBits(TypedDict("_GivenTime", {"given time": NotRequired[float]})):
    """Of one part of the belief."""

    bits: float
    standard_error: float
    M: int | None
    estimator: str
    ceiling: float | None
    near_ceiling: bool
    curve: list[float | None]
    interval: NotRequired[tuple[float | None, float | None]]
    entropy: Entropy | None
    health: Health
    controls: NotRequired[Controls]
    decoded: NotRequired[Decoders | None]
    calibration: NotRequired[Calibration]
    warnings: NotRequired[list[str]]


Ratio = tuple[float, float, float] | None  # value, low, high


class Reading(TypedDict):
    """The share that decoders read."""

    available: float
    linear: Ratio
    mlp: Ratio
    best: Ratio


class Shares(TypedDict):
    """Sufficiency on one set of histories."""

    given_time: Reading
    plain: Reading
    time_alone: Ratio
    warnings: list[str]


class ControlShares(TypedDict):
    """Of what else may tell the state."""

    shuffled: Shares
    untrained: Shares
    observation: Shares
    recent: Shares


class AtomsFound(TypedDict):
    """What a classifier of the beliefs proves."""

    bits: float
    standard_error: float
    num_atoms: int
    num_judged: int
    warnings: list[str]


class MeasuredShares(TypedDict):
    """Of one part of the belief."""

    M: int | None
    own: Shares
    last: Shares
    entropy: Entropy | None
    health: Health
    controls: NotRequired[ControlShares]
    atoms: AtomsFound | None


Exact = TypedDict("Exact", {"entropy": float, "σ = 0.1": float, "σ = 0.01": float, "σ = 0.001": float})
_ABOUT = {"run": str, "episode": int, "estimator": str, "epsilon": float, "return": float}
PARTS = ("belief", "relevant", "irrelevant")
BitsRecord = TypedDict(
    "BitsRecord", _ABOUT | {"exact": NotRequired[Exact]} | dict.fromkeys(PARTS, NotRequired[MeasuredBits])
)  # pyright: ignore
SharesRecord = TypedDict(
    "SharesRecord", _ABOUT | {"exact": NotRequired[Exact]} | dict.fromkeys(PARTS, NotRequired[MeasuredShares])
)  # pyright: ignore


class Swap(TypedDict):
    """One kind of replaced memory."""

    kind: str
    rank: int | None
    dose: float | None
    follow: Ratio
    keep: Ratio
    to_donor: Ratio
    to_own: Ratio
    loss: Ratio


class EqualSwap(TypedDict):
    """Swaps at equal belief."""

    changed: Ratio
    values: Ratio
    loss: Ratio


class Erasure(TypedDict):
    """One part of the belief erased."""

    part: str
    rank: int
    width: int
    returns: float
    loss: Ratio
    random_loss: Ratio
    # Earlier records have what a linear decoder reads instead: `readable`, `left` and `random_left`.
    sufficiency: NotRequired[Ratio]
    sufficiency_loss: NotRequired[Ratio]
    random_sufficiency_loss: NotRequired[Ratio]


class InterventionsRecord(TypedDict):
    """What interventions on the memory did at one checkpoint."""

    run: str
    episode: int
    verdict: str
    readable: Ratio
    available: float
    swaps: list[Swap]
    equal: EqualSwap | None
    steering: list[Swap]
    erasures: list[Erasure]


class SpecRecord(TypedDict):
    """spec.json."""

    learner: dict[str, Any]
    pomdp: dict[str, Any]
    seed: int


class MazeSpec(TypedDict):
    """What drawings read of a T-Maze."""

    length: int


class HikeSpec(TypedDict):
    """What drawings read of a Mountain Hike."""

    varying: bool
    goal_radius: float


class IrrelevantSpec(TypedDict):
    """A POMDP with irrelevant variables beside it."""

    pomdp: dict[str, Any]
    dimensions: int


class TableSpec(TypedDict):
    """What drawings read of any other POMDP."""

    state_names: NotRequired[list[str] | None]
    action_names: NotRequired[list[str] | None]
    observation_names: NotRequired[list[str] | None]
