"""What makes an estimate doubtful, as a few words each: stored with the number and shown wherever it is shown.

The estimators ask for the warnings of one fit. `doubts` holds the numbers of one stored part of a record against each
other: an estimate above H(b), or below what a decoder proves. Records from before there were warnings get theirs when
they are read, by `stored_warnings`.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

NEAR = 0.5  # bits below its ceiling, from where on a number is a lower bound at best
NOT_CONVERGED = "not converged"
FAILED = "failed fit"
_RISE = 0.02  # bits between the last tenth of the epochs and the tenth before
_APART = 1.0  # bits between held-out and fresh pairs; at full scale 98 % of the fits of MINE have less
_SHARE = 0.5  # of the mean of e^T that one shuffled pair may have
_NOISE = 0.1  # bits: a difference of two estimates is below 0 by so much by chance


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


def doubts(found: dict[str, Any], proven: float | None = None) -> tuple[str, ...]:
    """Of one part of a record; `proven` are bits that another measurement proves."""
    entropy = found["entropy"] if found.get("entropy") else {"bits": None, "flagged": True}
    most = None if entropy["flagged"] else entropy["bits"]
    bounds = [bits for bits in (proven, _decoded_bits(found)) if bits is not None]
    # A baseline that is not perfect may make more of it than H(b).
    at_least = min(max(bounds), np.inf if most is None else most) if bounds else None
    warnings = entropy_warning(found["bits"], found["standard_error"], most)
    warnings += bound_warning(found["bits"], found["standard_error"], at_least)
    both = found.get("controls", {}).get("memory and time")
    if both is not None and entropy_warning(both["bits"], both["standard_error"], most):
        warnings += (f"I(t; b) + I(h; b | t) = {both['bits']:.2f} bits exceeds H(b) = {most:.2f}",)
    if found.get("given time", 0.0) < -_NOISE:
        warnings += (f"I(h; b | t) = {found['given time']:.2f} bits is negative: an estimate is too low",)
    return warnings


def stored_warnings(found: dict[str, Any], proven: float | None) -> tuple[str, ...]:
    """All that stands in one part of a stored record, or follows from it."""
    if "warnings" in found:
        written = tuple(found["warnings"])
        return written + tuple(each for each in doubts(found, proven) if each not in written)
    curve = np.array([np.nan if bits is None else bits for bits in found["curve"]])
    fitted = fit_warnings(found["bits"], curve) if found["estimator"].startswith("MINE") else ()
    return fitted + ceiling_warning(found["bits"], found["ceiling"]) + doubts(found, proven)


def _decoded_bits(found: dict[str, Any]) -> float | None:
    """I(h; b) ≥ I(h; s) ≥ what a decoder's cross entropy falls below that of the mean belief."""
    if not found.get("decoded"):
        return None
    return max(probe["baseline_cross_entropy"] - probe["cross_entropy"] for probe in found["decoded"].values())
