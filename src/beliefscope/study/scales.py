"""The three sizes of a study: a look, a first answer, the paper's. A scale fills in what a study's file leaves out."""

from typing import Literal, NamedTuple

ScaleName = Literal["quick", "small", "full"]


class Scale(NamedTuple):
    """How long to train, how many agents, and how finely to measure."""

    num_episodes: int
    checkpoint_period: int
    seeds: tuple[int, ...]
    num_samples: int
    num_particles: int
    epochs: int | None  # of MINE; None is the estimator's own: 200 for 'text', 100 for 'code'
    controls: str  # which checkpoints get them: seven fits there in place of one


SCALES: dict[str, Scale] = {
    "quick": Scale(300, 100, (0, 1), 2_000, 64, 50, "last"),
    "small": Scale(2_000, 200, (0, 1, 2, 3), 5_000, 128, 100, "first-middle-last"),
    "full": Scale(5_000, 100, (0, 1, 2, 3), 10_000, 1_000, None, "first-middle-last"),
}
