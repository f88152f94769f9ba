"""The parts of a belief by name, as records have them, and what is written of a part besides its information."""

from typing import Any

import numpy as np

from beliefscope.belief import Health
from beliefscope.belief.product import ByPart
from beliefscope.errors import require
from beliefscope.information import discrete_entropy


def parts(belief: Any) -> dict[str, Any]:
    """Beliefs, features or health: `belief`, or `relevant` and `irrelevant` of a product."""
    if isinstance(belief, ByPart):
        return {"relevant": belief.relevant, "irrelevant": belief.irrelevant}
    return {"belief": belief}


def asked_parts(part: str, belief: Any) -> dict[str, Any]:
    """Those that a measurement asks for."""
    found = parts(belief)
    require(
        part == "all" or part in found,
        rule=f"the belief here has the parts {sorted(found)}",
        received=part,
        advice="ask for part 'all'",
    )
    return found if part == "all" else {part: found[part]}


def written_health(health: Health) -> dict[str, Any]:
    """How far the beliefs can be trusted: their mean effective number of particles, the share after the impossible."""
    sizes = np.asarray(health.effective_sample_size, np.float64)
    return {
        "effective_sample_size": float(sizes.mean()) if np.isfinite(sizes).all() else None,  # nothing was sampled
        "impossible": float(np.mean(np.asarray(health.impossible))),
    }


def written_entropy(belief: Any) -> dict[str, Any] | None:
    """H(b) by counting; None where beliefs are sets, whose entropy no counting gives."""
    return discrete_entropy(belief)._asdict() if np.ndim(belief) == 2 else None
