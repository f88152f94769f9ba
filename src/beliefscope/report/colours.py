"""One colour for each cell, the same in every figure; apart for colour-blind eyes, and legible on light and dark."""

_COLOURS = {"LSTM": "#d55e00", "GRU": "#2f7fc1", "BRC": "#009e73", "NBRC": "#b8860b", "MGU": "#b0559b"}
_OTHERS = ("#5b6ee1", "#7f7f7f", "#8c564b", "#17808c", "#c0392b")


def colour(cell: str, others: list[str]) -> str:
    """Of a cell; cells that the paper does not have take turns, in the order of `others`, the cells of the study."""
    if cell in _COLOURS:
        return _COLOURS[cell]
    unknown = [name for name in others if name not in _COLOURS]
    return _OTHERS[unknown.index(cell) % len(_OTHERS)]
