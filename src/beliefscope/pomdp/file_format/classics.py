"""Well-known small POMDPs that come with the package as `.pomdp` files."""

from importlib import resources

from beliefscope.errors import require
from beliefscope.pomdp.file_format.reader import parse_pomdp
from beliefscope.pomdp.file_format.scanner import either
from beliefscope.pomdp.tabular import TabularPOMDP

_HORIZONS = {"tiger": 50, "crying-baby": 50, "cheese-maze": 100}
CLASSICS = tuple(_HORIZONS)


def classic(name: str, *, horizon: int | None = None) -> TabularPOMDP:
    """One of `CLASSICS`, with a horizon that suits it unless another is given."""
    require(
        name in CLASSICS,
        rule="a classic POMDP goes by its name",
        received=name,
        advice=f"use {either(*map(repr, CLASSICS))}",
    )
    return parse_pomdp(
        classic_text(name), horizon=_HORIZONS[name] if horizon is None else horizon, name=f"{name}.pomdp"
    )


def classic_text(name: str) -> str:
    """The file of one of `CLASSICS`."""
    return resources.files("beliefscope.pomdp").joinpath("files", f"{name}.pomdp").read_text(encoding="utf-8")
