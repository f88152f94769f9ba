"""What makes an estimate doubtful, as a few words each: stored with the number and shown wherever it is shown."""

import numpy as np
from jaxtyping import Float

from beliefscope.information.interface import NEAR

NOT_CONVERGED = "not converged"
FAILED = "failed fit"
_RISE = 0.02  # bits between the last tenth of the epochs and the tenth before
_APART = 1.0  # bits between held-out and fresh pairs; at full scale 98 % of the fits of MINE have less
_SHARE = 0.5  # of the mean of e^T that one shuffled pair may have


def fit_warnings(bits: float, curve: Float[np.ndarray, " epochs"]) -> tuple[str, ...]:
    """Of a fit that was chosen on held-out pairs, `curve` through its epochs, and reads `bits` on fresh ones."""
    found = []
    known = np.asarray(curve, np.float64)
    known = known[np.isfinite(known)]
    if len(known) == 0:
        return ()
    tenth = max(1, len(known) // 10)
    last, before = known[-tenth:], known[-2 * tenth : -tenth]
    noise = np.sqrt((last.var() + before.var()) / tenth) if len(before) == tenth else np.inf
    rise = last.mean() - before.mean() if len(before) else 0.0
    if rise > _RISE and rise > 2 * noise:
        found.append(f"{NOT_CONVERGED}: the held-out bits still rose by {rise:.2f} in the last tenth of the epochs")
    if known.max() - bits > _APART:
        found.append(f"{FAILED}: {known.max():.2f} bits on held-out pairs, {bits:.2f} on fresh ones")
    return tuple(found)


def dominated(product: Float[np.ndarray, "shuffles n"]) -> tuple[str, ...]:
    """Does one shuffled pair make up most of the mean of e^T?"""
    share = float(np.exp(product.max() - np.logaddexp.reduce(product.astype(np.float64).ravel())))
    return (f"{FAILED}: one shuffled pair has {share:.0%} of the mean of e^T",) if share > _SHARE else ()


def ceiling_warning(bits: float, ceiling: float | None) -> tuple[str, ...]:
    """`ceiling` are the most bits that a method can report, None where there is no such limit."""
    if ceiling is None or bits <= ceiling - NEAR:
        return ()
    return (f"near the ceiling of {ceiling:.1f} bits: a lower bound at best",)


def entropy_warning(bits: float, standard_error: float, entropy: float | None) -> tuple[str, ...]:
    """`entropy` is H(b), None where it is not known."""
    if entropy is None or not bits - 3 * standard_error > entropy:
        return ()
    return (f"above H(b) = {entropy:.2f} bits, which it cannot be",)


def bound_warning(bits: float, standard_error: float, proven: float | None) -> tuple[str, ...]:
    """`proven` are the bits that a decoder proves, None where none was fitted."""
    if proven is None or not bits + 3 * standard_error < proven - 0.1:
        return ()
    return (f"below a decoder's bound: at least {proven:.2f} bits are there",)
