"""How fast episodes are stepped and beliefs are updated. Prints tables and the ratios that matter; asserts nothing.

    python benchmarks/pomdp.py            everything, about two minutes on two cores
    python benchmarks/pomdp.py --quick    fewer sizes

Every alternative of a table is timed in turn, round after round, and the best round counts, so that a busy machine
disturbs all of them alike. Compilation is not counted.
"""

import argparse
import platform
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from beliefscope.belief import ExactFilter, Filter, ParticleFilter
from beliefscope.pomdp import POMDP, MountainHike, TMaze, rollout

ROUNDS = 7
STEPS = 100
LEFT = 2


class AlwaysLeft(eqx.Module):
    """Never reaches the end of a T-Maze, so that every episode has the same length."""

    def init_memory(self) -> tuple[()]:
        return ()

    def act(self, key, memory, previous_action, observation):
        return (), jnp.asarray(LEFT)


def best_seconds(programs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best of some interleaved rounds of each program."""
    best = dict.fromkeys(programs, float("inf"))
    for program in programs.values():
        jax.block_until_ready(program())
    for _ in range(ROUNDS):
        for name, program in programs.items():
            start = time.perf_counter()
            jax.block_until_ready(program())
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def stepping(pomdp: POMDP, episodes: int) -> Callable[[], object]:
    """Episodes of `pomdp.horizon` steps each."""
    return lambda: rollout(jax.random.key(0), pomdp, AlwaysLeft(), num_episodes=episodes)


def filtering(filter: Filter, first: jax.Array, later: jax.Array, episodes: int) -> Callable[[], object]:
    """STEPS updates of as many beliefs as there are episodes; only the last ones come back."""

    @jax.jit
    def run(key: jax.Array):
        keys = jax.random.split(key, (STEPS + 1, episodes))
        beliefs = jax.vmap(lambda k: filter.init(k, first))(keys[0])

        def step(beliefs, keys):
            return jax.vmap(lambda k, belief: filter.update(k, belief, jnp.asarray(0), later))(keys, beliefs), None

        return jax.lax.scan(step, beliefs, keys[1:])[0]

    return lambda: run(jax.random.key(0))


def table(title: str, unit: str, counts: dict[str, int], seconds: dict[str, float]) -> None:
    """Rows of `count` things done in `seconds`."""
    print(f"\n{title}")
    for name, count in counts.items():
        rate = count / seconds[name] / 1e6
        print(f"  {name:<34}{rate:>10.2f} million {unit}/s{seconds[name] * 1e3:>12.2f} ms")


def environment_steps(lengths: list[int], batches: list[int]) -> None:
    mazes = {
        f"L = {length}, {n:>5} episodes": (TMaze(length, 0.3, horizon=200), n) for length in lengths for n in batches
    }
    hike = MountainHike(varying=True, horizon=200)
    hikes = {f"Varying Mountain Hike, {n:>5} episodes": (hike, n) for n in batches}
    cases = {**mazes, **hikes}
    seconds = best_seconds({name: stepping(pomdp, n) for name, (pomdp, n) in cases.items()})
    table("Environment steps", "steps", {name: 200 * n for name, (_, n) in cases.items()}, seconds)
    for label in (f"L = {lengths[0]}", f"L = {lengths[-1]}", "Varying Mountain Hike"):
        ratio = seconds[f"{label}, {batches[-1]:>5} episodes"] / seconds[f"{label}, {1:>5} episodes"]
        print(f"  {label}: {batches[-1]} episodes cost {ratio:.1f} times one")
    name = "{}, " + f"{batches[-1]:>5} episodes"
    ratio = seconds[name.format(f"L = {lengths[-1]}")] / seconds[name.format(f"L = {lengths[0]}")]
    print(f"  L = {lengths[-1]} costs {ratio:.2f} times L = {lengths[0]}")


def exact_updates(lengths: list[int], batches: list[int]) -> None:
    cases = {f"L = {length}, {n:>5} episodes": (length, n) for length in lengths for n in batches}
    corridor = jnp.asarray(2)
    programs = {
        name: filtering(ExactFilter(TMaze(length, 0.3)), jnp.asarray(0), corridor, n)
        for name, (length, n) in cases.items()
    }
    seconds = best_seconds(programs)
    table("Exact belief updates", "updates", {name: STEPS * n for name, (_, n) in cases.items()}, seconds)
    for length in lengths:
        one, many = (seconds[f"L = {length}, {n:>5} episodes"] for n in (1, batches[-1]))
        print(f"  L = {length}: {batches[-1]} episodes cost {many / one:.1f} times one")
    short, long = (seconds[f"L = {length}, {batches[-1]:>5} episodes"] for length in (lengths[0], lengths[-1]))
    print(f"  L = {lengths[-1]} costs {long / short:.2f} times L = {lengths[0]}")


def particle_updates(sizes: list[int], batches: list[int]) -> None:
    hike, seen = MountainHike(varying=True), jnp.array([-0.9])
    cases = {
        f"{scheme}, M = {m:>5}, {n:>4} episodes": (ParticleFilter(hike, num_particles=m, resampling=scheme), n)
        for scheme in ("systematic", "multinomial")
        for m in sizes
        for n in batches
    }
    seconds = best_seconds({name: filtering(filter, seen, seen, n) for name, (filter, n) in cases.items()})
    counts = {name: STEPS * n * filter.num_particles for name, (filter, n) in cases.items()}
    table("Particle-filter updates, Varying Mountain Hike", "particle-steps", counts, seconds)
    few, many = (f"systematic, M = {m:>5}, {batches[-1]:>4} episodes" for m in (sizes[0], sizes[-1]))
    print(f"  systematic: M = {sizes[-1]} costs {seconds[many] / seconds[few]:.1f} times M = {sizes[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    quick = parser.parse_args().quick
    device = jax.devices()[0]
    print(f"JAX {jax.__version__}, Python {platform.python_version()}, {device.platform}: {device.device_kind}")
    environment_steps([50, 400], [1, 1024] if quick else [1, 32, 1024])
    exact_updates([50, 400] if quick else [50, 100, 200, 400], [1, 1024] if quick else [1, 32, 1024])
    particle_updates([100, 1000] if quick else [100, 1000, 4000], [64] if quick else [1, 16, 64])


if __name__ == "__main__":
    main()
