"""Logged observations as a POMDP gives them, whether they were written so or as the vectors that networks read."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, PyTree

from beliefscope.errors import require
from beliefscope.pomdp import NO_OBSERVATION, POMDP, Irrelevant, Parts

_NEAR = 1e-3  # how far a written code may be from the POMDP's own


def shape_of_observations(pomdp: POMDP) -> PyTree:
    """One observation as shapes and types alone."""

    def first(key):
        return pomdp.sample_observation(key, pomdp.sample_initial(key))

    return jax.eval_shape(first, jax.random.key(0))


def observation_form(pomdp: POMDP) -> str:
    """The shapes and kinds of one observation, for people."""
    leaves = jax.tree.leaves(shape_of_observations(pomdp))
    return ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves)


def as_the_pomdp_gives_them(pomdp: POMDP, given: PyTree, counted: Bool[np.ndarray, "n time"], rule: str) -> PyTree:
    """Observations [N, T, …] from such, or from codes [N, T, observation_size]; the shapes tell which.

    Only the steps that are `counted` are looked at, and the others become observations of the first step.
    """
    form = shape_of_observations(pomdp)
    name = "each part of the observations"
    if jax.tree.structure(given) == jax.tree.structure(form) and jax.tree.leaves(form):
        arrays = jax.tree.map(lambda leaf: array_of_numbers(name, leaf), given)
    else:
        arrays = array_of_numbers(name, given)
    steps = counted.shape
    raw = [(*steps, *leaf.shape) for leaf in jax.tree.leaves(form)]
    shapes = [array.shape for array in jax.tree.leaves(arrays)]
    code = (*steps, pomdp.observation_size)
    is_raw = shapes == raw and jax.tree.structure(arrays) == jax.tree.structure(form)
    require(
        is_raw or shapes == [code],
        rule=f"{rule}; observations here are {' and '.join(map(str, raw))}, or encoded {code}",
        received=f"observations of shapes {shapes}",
        advice="pass what the POMDP gives, or what encode_observation makes of it, padded to one T",
    )
    arrays = jax.tree.map(lambda array: _without_padding(array, counted), arrays)
    seen = arrays if is_raw else _decoded(pomdp, arrays)
    return _checked(pomdp, seen, None if is_raw else arrays)


def array_of_numbers(name: str, given: Any) -> np.ndarray:
    """An array of real numbers, or one sentence."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        array = np.asarray(None)
    require(
        array.dtype.kind in "buif",
        rule=f"{name} is one array of numbers, which NumPy can read",
        received=f"{type(given).__name__} of rows that differ in length, or of something else",
        advice="pad episodes to one T and say in lengths how long each was; pass tensor.detach().cpu() of PyTorch",
    )
    return array


def _without_padding(array: np.ndarray, counted: Bool[np.ndarray, "n time"]) -> np.ndarray:
    return np.where(counted.reshape(*counted.shape, *[1] * (array.ndim - 2)), array, array[:, :1])


def _decoded(pomdp: POMDP, codes: Float[np.ndarray, "n time size"]) -> PyTree:
    """What has these codes, where that can be told."""
    if isinstance(pomdp, Irrelevant):
        size = pomdp.pomdp.observation_size
        return Parts(_decoded(pomdp.pomdp, codes[..., :size]), jnp.asarray(codes[..., size:]))
    forms, structure = jax.tree.flatten(shape_of_observations(pomdp))
    found = _of_one_array(pomdp, codes, forms[0]) if len(forms) == 1 else None
    if found is not None:
        return jax.tree.unflatten(structure, [found])
    raise ValueError(
        f"encoded observations are decoded where they are one-hot or the observation itself, but those of "
        f"{type(pomdp).__name__} are neither; pass the observations as the POMDP gives them."
    )


def _of_one_array(pomdp: POMDP, codes: Float[np.ndarray, "n time size"], form: Any) -> np.ndarray | None:
    """Observations that are one array of this form, where that can be told."""
    if form.shape and math.prod(form.shape) == codes.shape[-1]:
        return codes.reshape(*codes.shape[:-1], *form.shape)
    if form.shape == () and jnp.issubdtype(form.dtype, jnp.integer):
        numbers = np.arange(NO_OBSERVATION, codes.shape[-1])
        known = np.asarray(jax.vmap(pomdp.encode_observation)(jnp.asarray(numbers)), np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # NaN, infinity and huge numbers are refused later
            apart = (known**2).sum(axis=1) - codes @ (2 * known.T)  # squared distances, less what all have in common
        return numbers[np.argmin(apart, axis=-1)]
    return codes[..., 0] if form.shape == () and codes.shape[-1] == 1 else None


def _checked(pomdp: POMDP, seen: PyTree, codes: np.ndarray | None) -> PyTree:
    """Of the POMDP's types; refuse codes that no observation has, and numbers that are no observation."""
    kinds = [leaf.dtype for leaf in jax.tree.leaves(shape_of_observations(pomdp))]
    for array, kind in zip(jax.tree.leaves(seen), kinds, strict=True):
        wrong = np.argwhere(~_is_whole(array, kind) if jnp.issubdtype(kind, jnp.integer) else array != array)
        require(
            len(wrong) == 0,
            rule=f"an observation of {type(pomdp).__name__} is {observation_form(pomdp)}",
            received=f"{array[tuple(wrong[0])]} {_place(wrong[0])}" if len(wrong) else "",
            advice="pass what the POMDP gives, or one-hot codes of it",
        )
    seen = jax.tree.map(
        lambda array, kind: array.astype(kind), seen, jax.tree.unflatten(jax.tree.structure(seen), kinds)
    )
    if codes is None:
        _check_range(pomdp, seen)
        return seen
    again = np.asarray(jax.vmap(jax.vmap(pomdp.encode_observation))(jax.tree.map(jnp.asarray, seen)))
    wrong = np.argwhere(~(np.abs(again - codes) <= _NEAR).all(axis=-1))
    require(
        len(wrong) == 0,
        rule=f"an encoded observation is what encode_observation of {type(pomdp).__name__} makes of an observation",
        received=f"{codes[tuple(wrong[0])].tolist()} {_place(wrong[0])}" if len(wrong) else "",
        advice="pass one-hot codes, or observations as the POMDP gives them",
    )
    return seen


def _is_whole(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Where it holds whole numbers that an integer of this kind can be."""
    numbers, limits = array.astype(np.float64), np.iinfo(kind)
    return (numbers == np.round(numbers)) & (numbers >= limits.min) & (numbers <= limits.max)


def _check_range(pomdp: POMDP, seen: PyTree) -> None:
    """Where observations are numbers with one-hot codes, as many numbers as codes; -1 is to have seen nothing yet."""
    inner, numbers = (pomdp.pomdp, seen.relevant) if isinstance(pomdp, Irrelevant) else (pomdp, seen)
    size = inner.observation_size
    if np.ndim(numbers) != 2 or not np.issubdtype(np.asarray(numbers).dtype, np.integer):
        return
    if not np.array_equal(jax.vmap(inner.encode_observation)(jnp.arange(size)), np.eye(size)):
        return
    least = np.full(np.shape(numbers), 0)
    least[:, 0] = NO_OBSERVATION
    wrong = np.argwhere((numbers < least) | (numbers >= size))
    require(
        len(wrong) == 0,
        rule=f"an observation of {type(inner).__name__} is an integer from 0 to {size - 1}",
        received=f"{numbers[tuple(wrong[0])]} {_place(wrong[0])}" if len(wrong) else "",
        advice="count observations from 0, and let lengths leave out padding",
    )


def _place(index: np.ndarray) -> str:
    return f"in episode {index[0]} at step {index[1]}"
