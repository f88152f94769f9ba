"""What an estimator of mutual information is: `estimate(key, x, y)` gives an `Estimate` in bits.

x is a batch of vectors [N, dx]; y is a batch of vectors [N, dy] or, for the estimators that read them, a batch of sets
[N, M, dy]. The samples are taken as independent of each other. The key is used by estimators that sample and ignored
by the others.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from beliefscope.warning_signs import NEAR


def _no_curve() -> Float[np.ndarray, " steps"]:
    return np.zeros(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A number of bits and how it was measured: numbers with another N, M or estimator cannot be compared."""

    bits: float
    standard_error: float  # of the sampling error alone, not of the method's bias; nan where it is not known
    num_samples: int  # N, the pairs given
    num_particles: int | None  # M, where y is a batch of sets
    estimator: str  # "KSG, k = 3"
    ceiling: float | None = None  # the most bits the method can report from these samples, where there is such a limit
    curve: Float[np.ndarray, " steps"] = field(default_factory=_no_curve)  # bits during a fit; empty where none is made

    interval: tuple[float, float] | None = (
        None  # where the truth lies, as far as known cases tell (docs/calibration.md)
    )

    warnings: tuple[str, ...] = ()  # what makes the number doubtful, a few words each

    shuffled: "Estimate | None" = None  # the control, where one was made: the same samples with their pairs broken up

    def __str__(self) -> str:
        marks = [self.estimator, f"N = {self.num_samples}"]
        marks += [f"M = {self.num_particles}"] if self.num_particles is not None else []
        control = f"; shuffled {self.shuffled.bits:z.2f}" if self.shuffled is not None else ""
        doubts = "".join(f"; warning: {warning}" for warning in self.warnings)
        held = "" if self.interval is None else " in [{:z.2f}, {:z.2f}]".format(*self.interval)
        return f"{self.bits:z.2f} ± {self.standard_error:.2f} bits{held} ({', '.join(marks)}){control}{doubts}"

    @property
    def near_ceiling(self) -> bool:
        """Is the number within half a bit of the method's largest possible report? Then it is at best a lower bound."""
        return self.ceiling is not None and self.bits > self.ceiling - NEAR


@runtime_checkable
class Estimator(Protocol):
    """Anything that measures the mutual information of paired samples."""

    def estimate(self, key: PRNGKeyArray, x: Any, y: Any) -> Estimate:
        """The information between x [N, dx] and y [N, dy] or [N, M, dy]: any arrays that NumPy can read."""
        ...


def no_information(num_samples: int, num_particles: int | None, estimator: str, ceiling: float | None) -> Estimate:
    """Zero bits, exactly: one of the two never varies."""
    return Estimate(
        bits=0.0,
        standard_error=0.0,
        num_samples=num_samples,
        num_particles=num_particles,
        estimator=estimator,
        ceiling=ceiling,
    )
