"""How long measuring takes: MINE beside PyTorch, many fits in one program, pairs. Prints tables; asserts nothing.

    python benchmarks/information.py              the three parts below: ten minutes on two cores
    python benchmarks/information.py fit          one MINE fit against PyTorch's (pip install torch==2.13.0)
    python benchmarks/information.py batch        16 fits in one program against 16 single ones
    python benchmarks/information.py pairs        10,000 pairs of memory and belief, compilation apart
    python benchmarks/information.py gpu          fits of vectors, one and twenty at a time, and pairs on a GPU
    python benchmarks/information.py sets         fits of sets of particles, one and twenty at a time, on a GPU
    python benchmarks/information.py sufficiency  sufficiency and the atoms bound beside a fit of MINE, on any device
    python benchmarks/information.py memory       the peak memory of one best bound, 64 and 1,000 columns; run it alone
    python benchmarks/information.py --tiny ...   the same with sizes at which the numbers mean nothing

A fit is all of `estimate`: checks, epochs, the choice among them, fresh pairs, bootstrap. Alternatives take turns,
round after round; ratios are medians over the rounds. Compilation is what the first call takes beyond the others.
"""

import argparse
import platform
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from beliefscope.agent import QNetwork
from beliefscope.agent.cells import GRU
from beliefscope.belief import ExactFilter, Filter, filter_of_paper
from beliefscope.information import AtomsBound, BestBound, sufficiency
from beliefscope.information.bounds import DonskerVaradhan
from beliefscope.information.neural import FitSettings, NeuralEstimator
from beliefscope.measurement import sample_pairs
from beliefscope.pomdp import POMDP, MountainHike, TMaze

MEMORY, BELIEF = 64, 106  # two GRU layers of 32 units, the states of a T-Maze of L = 50


class Sizes(NamedTuple):
    """The sizes of the paper, fewer epochs where alternatives take turns."""

    rows: int = 20_000  # half of them to judge on
    particles: int = 1000
    pairs: int = 10_000
    fits: int = 16
    fits_on_gpu: int = 20
    epochs: int = 200
    epochs_in_turn: int = 20
    epochs_in_batch: int = 5
    rounds: int = 5


TINY = Sizes(2600, particles=5, pairs=10, fits=2, fits_on_gpu=2, epochs=2, epochs_in_turn=1, epochs_in_batch=1)


def mine(epochs: int) -> NeuralEstimator:
    """`MINE()` with other epochs."""
    return NeuralEstimator(DonskerVaradhan(), FitSettings(epochs=epochs))


def dependent(seed: int, rows: int, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal x [rows, 64] and y [rows, *shape] that share some columns."""
    draw = np.random.default_rng(seed)
    x, y = (draw.normal(size=(rows, *size)).astype(np.float32) for size in ((MEMORY,), shape))
    y[..., :2] += x[:, :2].reshape(rows, *[1] * (len(shape) - 1), 2)
    return x, y


def seconds_of(program: Callable[[], object]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(program())
    return time.perf_counter() - start


def in_turn(programs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each program in each round."""
    taken = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            taken[name].append(seconds_of(program))
    return taken


def against_torch(sizes: Sizes) -> None:
    import torch  # pyright: ignore[reportMissingImports]
    import torch_mine

    x, y = dependent(0, sizes.rows, BELIEF)
    tensors = torch.as_tensor(x), torch.as_tensor(y)

    def ours(epochs: int) -> object:
        return mine(epochs).estimate(jax.random.key(0), x, y)

    def in_torch(epochs: int, threads: int) -> object:
        torch.set_num_threads(threads)
        return torch_mine.mine(*tensors, epochs=epochs)

    print(f"\nOne MINE fit, {sizes.rows} rows of {MEMORY} and {BELIEF} columns: seconds")
    heads = ("compile", "ours", "torch, 1 thread", "torch, 2 threads", "best torch/ours")
    print(" " * 24 + "".join(f"{head:>18}" for head in heads))
    in_torch(1, 2)
    for epochs, rounds in ((sizes.epochs_in_turn, sizes.rounds), (sizes.epochs, 1)):
        first = seconds_of(partial(ours, epochs))
        torches = {f"torch {threads}": partial(in_torch, epochs, threads) for threads in (1, 2)}
        taken = in_turn({"ours": partial(ours, epochs), **torches}, rounds)
        ratio = statistics.median(min(torch) / ours for ours, *torch in zip(*taken.values(), strict=True))
        middle = [statistics.median(value) for value in taken.values()]
        row = (first - middle[0], *middle, ratio)
        label = f"{epochs} epochs, {rounds} rounds"
        print(f"  {label:<22}" + "".join(f"{value:>18.2f}" for value in row), flush=True)


def fits_in_a_batch(sizes: Sizes) -> None:
    estimator, numbers = mine(sizes.epochs_in_batch), range(sizes.fits)
    xs, ys = zip(*(dependent(number, sizes.rows, BELIEF) for number in numbers), strict=True)
    keys = [jax.random.key(number) for number in numbers]
    programs = {
        "together": lambda: estimator.estimate_each(keys, xs, ys),
        "single": lambda: [estimator.estimate(*one) for one in zip(keys, xs, ys, strict=True)],
    }
    together, single = (program() for program in programs.values())
    same = [estimate.bits for estimate in together] == [estimate.bits for estimate in single]
    taken = in_turn(programs, 3)
    ratio = statistics.median(many / one for many, one in zip(*taken.values(), strict=True))
    print(f"\n{sizes.fits} MINE fits of {sizes.epochs_in_batch} epochs: seconds")
    print(f"{'in one program':>16}{'one by one':>16}{'ratio':>8}{'same bits':>12}")
    middle = (statistics.median(value) for value in taken.values())
    print("".join(f"{value:>16.2f}" for value in middle) + f"{ratio:>8.3f}{'yes' if same else 'no':>12}", flush=True)


def untrained(pomdp: POMDP) -> QNetwork:
    sizes = {"observation_size": pomdp.observation_size, "num_actions": pomdp.num_actions}
    return QNetwork(jax.random.key(0), GRU, **sizes, hidden_size=MEMORY // 2, num_layers=2)


def sampling(sizes: Sizes) -> None:
    maze, hike = TMaze(50), MountainHike()
    particles = filter_of_paper(hike, num_particles=sizes.particles)
    cases: dict[str, tuple[POMDP, Filter]] = {
        "T-Maze L = 50, exact": (maze, ExactFilter(maze)),
        f"Mountain Hike, M = {sizes.particles}": (hike, particles),
    }
    print(f"\n{sizes.pairs} pairs of untrained GRU agents (mean t of horizon / 2: episodes as long as can be): seconds")
    heads = ("compile", "run", "together", "pairs/s", "mean t", "horizon")
    print(" " * 26 + "".join(f"{head:>10}" for head in heads))
    for name, (pomdp, filter) in cases.items():
        agent, taken, mean_time = untrained(pomdp), [], 0.0
        for seed in range(2):
            start = time.perf_counter()
            key = jax.random.key(seed)
            pairs = jax.block_until_ready(sample_pairs(key, agent, pomdp, filter, num_samples=sizes.pairs))
            taken.append(time.perf_counter() - start)
            mean_time = float(np.mean(pairs.time))
        first, run = taken
        row = (first - run, run, first, sizes.pairs / run, mean_time, pomdp.horizon)
        print(f"  {name:<24}" + "".join(f"{value:>10.2f}" for value in row), flush=True)


def side_by_side(sizes: Sizes, name: str, *shape: int) -> None:
    """One fit, and many at once."""
    print(f"\nMINE fits of {sizes.epochs} epochs, {sizes.rows} rows: seconds")
    print(f"  {'':<30}" + "".join(f"{head:>10}" for head in ("compile", "run", "per fit", "of one")))
    (x, y), alone = dependent(0, sizes.rows, *shape), 0.0
    for fits in (1, sizes.fits_on_gpu):
        keys = list(jax.random.split(jax.random.key(0), fits))
        measure = partial(mine(sizes.epochs).estimate_each, keys, [x] * fits, [y] * fits)
        first, run = seconds_of(measure), seconds_of(measure)
        alone = alone or run
        row = (first - run, run, run / fits, run / alone)
        print(f"  {name + f', {fits} at once':<30}" + "".join(f"{value:>10.2f}" for value in row), flush=True)


def on_gpu(sizes: Sizes) -> None:
    side_by_side(sizes, f"vectors of {BELIEF}", BELIEF)
    sampling(sizes)


def sets_on_gpu(sizes: Sizes) -> None:
    side_by_side(sizes, f"sets of {sizes.particles}", sizes.particles, 2)


def codes(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Memories that tell the time and, two times in three, the side; beliefs that know both, one-hot; the time."""
    draw = np.random.default_rng(0)
    time, side = draw.integers(0, BELIEF // 2, size=rows), draw.integers(0, 2, size=rows)
    known = np.where(draw.random(rows) < 1 / 3, draw.integers(0, 2, size=rows), side)
    memory = draw.normal(size=(BELIEF, MEMORY))[2 * time + known] + 0.3 * draw.normal(size=(rows, MEMORY))
    return memory.astype(np.float32), np.eye(BELIEF, dtype=np.float32)[2 * time + side], time


def of_decoders(sizes: Sizes) -> None:
    memory, belief, time = codes(sizes.pairs if sizes.pairs > 1000 else 1000)
    x, y = dependent(0, sizes.rows, BELIEF)
    programs: dict[str, Callable[[], object]] = {
        "sufficiency, two families": lambda: sufficiency(memory, belief, time),
        "atoms bound": lambda: AtomsBound().estimate(jax.random.key(0), memory, belief),
        f"MINE, {sizes.epochs} epochs": lambda: mine(sizes.epochs).estimate(jax.random.key(0), x, y),
    }
    firsts = {name: seconds_of(program) for name, program in programs.items()}
    taken = in_turn(programs, sizes.rounds)
    print(f"\n{len(memory)} pairs of {MEMORY} and {BELIEF} columns, MINE on {sizes.rows}: seconds")
    print(f"  {'':<28}" + "".join(f"{head:>10}" for head in ("compile", "run", "least", "of MINE")))
    slowest = statistics.median(taken[f"MINE, {sizes.epochs} epochs"])
    for name, seconds in taken.items():
        run = statistics.median(seconds)
        row = (firsts[name] - run, run, min(seconds), run / slowest)
        print(f"  {name:<28}" + "".join(f"{value:>10.3f}" for value in row), flush=True)


def peak_memory(sizes: Sizes) -> None:
    """Of a fresh process: run this part alone."""
    draw, rows, wide = np.random.default_rng(0), max(sizes.rows, 1000), 1000 if sizes.rows >= 20_000 else 10
    x, noise = (draw.standard_normal((rows, columns), dtype=np.float32) for columns in (MEMORY, wide))
    y = x @ draw.standard_normal((MEMORY, wide), dtype=np.float32) / 8 + noise
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = seconds_of(lambda: BestBound().estimate(jax.random.key(0), x, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nbest bound, {rows} pairs of {MEMORY} and {wide} columns, the first call: {seconds:.0f} s")
    print(f"  peak {peak / 1e6:.2f} GB, of which {begun / 1e6:.2f} GB before it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"fit": against_torch, "batch": fits_in_a_batch, "pairs": sampling, "gpu": on_gpu, "sets": sets_on_gpu}
    parts |= {"sufficiency": of_decoders, "memory": peak_memory}
    parser.add_argument("part", nargs="?", choices=list(parts), help="the first three if none is named")
    parser.add_argument("--tiny", action="store_true", help="to see that everything runs")
    arguments = parser.parse_args()
    device, sizes = jax.devices()[0], TINY if arguments.tiny else Sizes()
    print(f"JAX {jax.__version__}, Python {platform.python_version()}, {device.platform}: {device.device_kind}")
    for part in [arguments.part] if arguments.part else ("fit", "batch", "pairs"):
        parts[part](sizes)


if __name__ == "__main__":
    main()
