"""Maps a function over a leading axis inside one program: in turn on CPU, where that is faster, in parallel on GPU."""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jaxtyping import PyTree


def on_each(function: Callable[..., Any], *arguments: PyTree) -> PyTree:
    """`function` of each row of the arguments; on CPU the result of a row does not depend on the others."""
    if jax.default_backend() == "cpu":
        return lax.map(lambda row: function(*row), arguments)
    return jax.vmap(function)(*arguments)
