"""What a GPU takes for the work of a study at full scale. Prints tables; asserts nothing.

    python benchmarks/gpu.py kernel              bits of sets by the fused kernels and by XLA, 100 seeds
    python benchmarks/gpu.py checkpoint          the parts of a Mountain Hike's checkpoint, in one process
    python benchmarks/gpu.py best-bound          the best bound where beliefs recur and where they do not, by step;
        [--rows N]                               of fewer pairs than 10,000, to see that everything runs
    python benchmarks/gpu.py study NAME DIR      a study at full scale, as `beliefscope run` does it,
        [--only TEXT ...] [--seconds S]          stopped after S seconds; the same command goes on with it

It needs nothing but what training needs, so that it runs on machines without the command line's packages.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SEEDS, ROWS, EPOCHS = 100, 4000, 200
CASE = "set of 100 particles, 2 bits"


def bits_of_sets(*, fused: bool) -> list[float]:
    import jax

    from beliefscope.information import set_kernel
    from beliefscope.information.bounds import DonskerVaradhan
    from beliefscope.information.known_cases import known_cases
    from beliefscope.information.neural import FitSettings, NeuralEstimator

    if not fused:
        set_kernel.fits = lambda *sizes: False
    estimator = NeuralEstimator(DonskerVaradhan(), FitSettings(epochs=EPOCHS))
    keys = [jax.random.split(jax.random.key(seed)) for seed in range(SEEDS)]
    xs, ys = zip(*(known_cases()[CASE].sample(data, ROWS) for data, _ in keys), strict=True)
    found = []
    for start in range(0, SEEDS, 20):
        some = slice(start, start + 20)
        found += estimator.estimate_each([fit for _, fit in keys[some]], list(xs[some]), list(ys[some]))
    return [one.bits for one in found]


def kernel() -> None:
    """Each program in a process of its own, since compiled ones are kept."""
    import numpy as np

    print(f"{CASE}, {ROWS} rows, {EPOCHS} epochs, {SEEDS} seeds: bits", flush=True)
    bits = {}
    for name, fused in (("kernels", True), ("XLA, float32", False)):
        command = [sys.executable, __file__, "bits-of-sets", *(["--fused"] if fused else [])]
        start = time.perf_counter()
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        bits[name] = np.array(json.loads(answer.stdout.splitlines()[-1]))
        error = bits[name].std(ddof=1) / SEEDS**0.5
        taken = time.perf_counter() - start
        print(f"  {name:<14}{bits[name].mean():>8.4f} ± {error:.4f}   {taken:.0f} s", flush=True)
    fast, exact = bits.values()
    joint = (fast.var(ddof=1) / SEEDS + exact.var(ddof=1) / SEEDS) ** 0.5
    paired = (fast - exact).std(ddof=1) / SEEDS**0.5
    print(f"  difference {fast.mean() - exact.mean():+.4f}, joint error {joint:.4f}, of pairs {paired:.4f}", flush=True)


def checkpoint() -> None:
    import jax
    import numpy as np

    from beliefscope.agent import QNetwork
    from beliefscope.agent.cells import GRU
    from beliefscope.belief import filter_of_paper
    from beliefscope.information import MINE, decode, sufficiency
    from beliefscope.information.probe import binned, coarser
    from beliefscope.measurement import sample as sampling
    from beliefscope.measurement import sample_pairs
    from beliefscope.pomdp import MountainHike

    hike = MountainHike()
    sizes = {"observation_size": hike.observation_size, "num_actions": hike.num_actions}
    agent = QNetwork(jax.random.key(0), GRU, **sizes, hidden_size=32, num_layers=2)
    filter = filter_of_paper(hike, num_particles=1000)

    def sample(seed: int, number: int):
        return jax.block_until_ready(sample_pairs(jax.random.key(seed), agent, hike, filter, num_samples=number))

    print("A Mountain Hike's checkpoint, one process: seconds, first call and least of three others", flush=True)
    for group in (500, 125, 50):
        sampling._GROUP_ON_GPU = group
        jax.clear_caches()
        show(f"20,000 pairs, groups of {group}", lambda: sample(1, 20_000))
    many, few = sample(1, 20_000), sample(2, 10_000)
    particles, memory, times = (np.asarray(each) for each in (few.belief, few.memory, few.time))
    show("particles from the GPU", lambda: np.asarray(jax.block_until_ready(sample(2, 10_000).belief)))
    show("10,000 pairs", lambda: sample(2, 10_000))
    show("MINE, 200 epochs", lambda: MINE("text").estimate(jax.random.key(0), many.memory, many.belief))
    show("sufficiency of one set of histories", lambda: sufficiency(memory, particles, times, key=jax.random.key(0)))
    show("of that, particles in cells", lambda: coarser(binned(particles)))
    show("decoder, linear", lambda: decode(jax.random.key(0), many.memory, many.belief, probe="linear"))
    show("decoder, MLP", lambda: decode(jax.random.key(0), many.memory, many.belief, probe="MLP"))


MEMORY, BELIEF = 64, 106  # two GRU layers of 32 units, the states of a T-Maze of L = 50


def best_bound(rows: int) -> None:
    import jax
    import numpy as np

    from beliefscope.information import BestBound

    draw = np.random.default_rng(0)
    atoms = draw.integers(0, BELIEF, size=rows)
    x, y = (draw.normal(size=(rows, size)).astype(np.float32) for size in (MEMORY, BELIEF))
    y[:, :2] += x[:, :2]
    codes = draw.normal(size=(BELIEF, MEMORY))[atoms] + 0.7 * draw.normal(size=(rows, MEMORY))
    cases = {
        "beliefs that recur": (codes.astype(np.float32), np.eye(BELIEF, dtype=np.float32)[atoms]),
        "beliefs that do not": (x, y),
    }
    print(f"The best bound of {rows} pairs of {MEMORY} and {BELIEF} columns on {jax.devices()[0].device_kind}: seconds")
    for name, pair in cases.items():
        print(f"{name}: first call, and least of three others", flush=True)
        show("whole", lambda pair=pair: BestBound().estimate(jax.random.key(0), *pair))
        for step, seconds in least(lambda pair=pair: steps_of_best_bound(*pair)).items():
            print(f"    {step:<44}{seconds:>8.3f}", flush=True)


def steps_of_best_bound(x, y) -> dict[str, float]:
    """The seconds of each step, in a call that waits for the device after each, so that nothing overlaps."""
    import jax
    import jax.numpy as jnp

    from beliefscope.information import BestBound

    began, names, times = time.perf_counter(), ["columns, ranks, directions"], []

    def watch(step: str) -> None:
        jax.block_until_ready(jnp.zeros(()) + 1)  # a device does one thing after the other
        times.append(time.perf_counter() - began)
        names.append(step)

    BestBound().estimate(jax.random.key(0), x, y, watch=watch)
    ends = [*times, time.perf_counter() - began]
    return {name: end - start for name, start, end in zip(names, [0, *times], ends, strict=True)}


def least(program: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Of three calls."""
    found = [program() for _ in range(3)]
    return {name: min(each[name] for each in found) for name in found[0]}


def show(name: str, program: Callable[[], object]) -> None:
    taken = []
    for _ in range(4):
        start = time.perf_counter()
        program()
        taken.append(time.perf_counter() - start)
    print(f"  {name:<38}{taken[0]:>8.2f}{min(taken[1:]):>8.3f}", flush=True)


def study(name: str, folder: Path, only: list[str], seconds: float) -> None:
    """What has been done is said every 20 s. The study's own process is stopped as by Ctrl-C."""
    command = [sys.executable, __file__, "run-study", name, str(folder), *(["--only", *only] if only else [])]
    start, doing = time.time(), subprocess.Popen(command, start_new_session=True)
    while doing.poll() is None and time.time() - start < seconds:
        time.sleep(min(20, max(0.1, seconds - (time.time() - start))))
        kinds = Counter(kind(file) for file in folder.glob("runs/*/*/*.json"))
        kinds["trained"] = len(list(folder.glob("runs/*/trained.json")))
        print(f"{time.time() - start:5.0f} s  {dict(kinds)}", flush=True)
    if doing.poll() is None:
        os.kill(doing.pid, signal.SIGINT)
        doing.wait(timeout=30)
    elif doing.returncode:
        sys.exit(doing.returncode)
    measured = sorted(file.stat().st_mtime for file in folder.glob("runs/*/measure/*.json"))
    measured = [when - start for when in measured if when > start]
    trained = sorted(file.stat().st_mtime - start for file in folder.glob("runs/*/trained.json"))
    print("trained after", [round(when) for when in trained if when > 0], "s")
    if measured:
        print(f"first measured after {measured[0]:.0f} s, last after {measured[-1]:.0f} s, {len(measured)} in all")


def kind(file: Path) -> str:
    if file.parent.name != "measure":
        return file.parent.name
    head = file.read_text()
    return ("sufficiency" if '"sufficiency"' in head else "bits") + (", controls" if '"controls"' in head else "")


def run_study(name: str, folder: Path, only: list[str]) -> None:
    import jax

    jax.config.update("jax_platforms", "cpu")  # this process only assigns pieces

    from beliefscope.study import read_study
    from beliefscope.study import run_study as run

    with contextlib.suppress(KeyboardInterrupt):  # the time is up
        run(read_study(name, scale="full"), folder, only=only)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("kernel", "checkpoint", "best-bound", "study", "bits-of-sets", "run-study"))
    parser.add_argument("name", nargs="?")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000, help="of best-bound")
    given = parser.parse_args()
    if given.part == "bits-of-sets":
        print(json.dumps(bits_of_sets(fused=given.fused)))
    elif given.part == "best-bound":
        best_bound(given.rows)
    elif given.part == "study":
        study(given.name, given.folder, given.only, given.seconds)
    elif given.part == "run-study":
        run_study(given.name, given.folder, given.only)
    else:
        {"kernel": kernel, "checkpoint": checkpoint}[given.part]()


if __name__ == "__main__":
    main()
