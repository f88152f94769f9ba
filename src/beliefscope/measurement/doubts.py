"""What the numbers of one record say against each other: an estimate above H(b), below what a decoder proves.

A part of a record is given as it is stored, so that records written before there were warnings get theirs when read.
"""

from typing import Any

import numpy as np

from beliefscope.information.warning_signs import bound_warning, ceiling_warning, entropy_warning, fit_warnings

_NOISE = 0.1  # bits: a difference of two estimates is below 0 by so much by chance


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
