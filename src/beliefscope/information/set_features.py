"""Sets of particles as vectors: means over the particles of fixed functions, whatever the particles' order.

The functions are the coordinates, their products in pairs, and sines and cosines along random directions at several
scales. Enough such means determine a distribution (a kernel mean embedding by random features: Rahimi, Recht, 2007;
Smola et al., 2007), and they are computed once, before any fit.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

_SCALES = (0.5, 1.0, 2.0, 4.0)  # of the frequencies, for coordinates of unit deviation
_DIRECTIONS = 16  # at each scale
_CHUNK = 500  # sets at a time, which bounds the memory


def set_features(sets: Float[np.ndarray, "n m d"], reference: Float[np.ndarray, "k m d"]) -> Float[np.ndarray, "n f"]:
    """One vector for each set, its coordinates in units of the reference's deviation."""
    particles = reference.reshape(-1, reference.shape[-1])
    # In double precision: NumPy adds up ten million rows one by one, and in single precision the sum comes to a halt.
    mean, deviation = particles.mean(axis=0, dtype=np.float64), particles.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return np.asarray(_features(jnp.asarray(sets, jnp.float32), *(jnp.asarray(a, jnp.float32) for a in (mean, scale))))


@jax.jit
def _features(sets: Float[Array, "n m d"], mean: Float[Array, " d"], scale: Float[Array, " d"]) -> Float[Array, "n f"]:
    size = sets.shape[-1]
    directions = np.random.default_rng(0).normal(size=(size, len(_SCALES), _DIRECTIONS))
    frequencies = jnp.asarray(directions * np.asarray(_SCALES)[:, None], jnp.float32).reshape(size, -1)

    def features(particles: Float[Array, "m d"]) -> Float[Array, " f"]:
        z = (particles - mean) * scale
        waves = z @ frequencies
        products = (z.T @ z / len(z))[jnp.triu_indices(size)]
        return jnp.concatenate(
            [jnp.mean(z, axis=0), products, *(jnp.mean(f(waves), axis=0) for f in (jnp.sin, jnp.cos))]
        )

    return lax.map(features, sets, batch_size=min(_CHUNK, len(sets)))
