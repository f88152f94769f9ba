"""Made-up studies: results that rise as in the paper, their traces, and folders as beliefscope stores them."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars

from beliefscope import StudyFolder, read_study
from beliefscope.paper import CELLS, DRQN
from beliefscope.report.viewer import StoredTrace
from beliefscope.results import Results
from beliefscope.results.curves import Instrument, Returns, panels
from beliefscope.results.table import COLUMNS, make_table
from beliefscope.store import save_arrays, write_atomic, write_lines, write_record
from beliefscope.store.pieces import Piece, Run

MAZE, HIKE = "T-Maze, L = 50", "Mountain Hike"
MINE = Instrument("mine", 200, 20_000, None)
PARTICLES = Instrument("mine", 200, 20_000, 1000)
LEVELS = {MAZE: (-4.8, 1.4567), HIKE: (-37.0, -19.0)}  # the return before training and at best
LEARNER = {name: printed for name, (_, printed, _) in DRQN.items()}

TOML = """
cells = ["GRU", "BRC"]
seeds = [0, 1]
[[environments]]
pomdp = "t-maze"
length = 3
[training]
num_episodes = 20
checkpoint_period = 10
hidden_size = 8
[measurement]
estimators = ["mine"]
num_samples = 2000
epochs = 2
checkpoints = "all"
controls = "last"
"""
SCORES = [f"{of}{name}" for of in ("", "baseline_") for name in ("cross_entropy", "kl", "total_variation")]
NAMES = ("shuffled", "untrained", "time", "observation", "recent", "memory and time")


def row(**given: Any) -> dict[str, Any]:
    """Of a study's table, the rest of which was not measured."""
    usual = {"estimator": "mine", "epochs": 200, "N": 20_000, "epsilon": 0.0, "part": "belief", "memory": "hidden"}
    about = {"environment": MAZE, "cell": "GRU", "seed": 0, "run": "run", "episode": 0}
    assert set(given) <= set(COLUMNS)
    return dict.fromkeys(COLUMNS) | about | usual | given


def as_table(rows: list[dict[str, Any]]) -> polars.DataFrame:
    return make_table(rows)


def rise(rng, count, speed):
    """From 0 to nearly 1, by learning of some speed."""
    x = np.linspace(0, 1, count)
    return np.clip(1 - np.exp(-speed * x) + rng.normal(0, 0.03, count) * np.exp(-2 * x), 0, 1)


def made_up(environments, *, cells=CELLS, seeds=4, checkpoints=51, sizes=(), epsilons=(0.0,)) -> Results:
    """Curves that rise as in the paper; `sizes` adds environments with as many irrelevant variables."""
    rng = np.random.default_rng(0)
    runs, rows, returns, optimum, specs = [], [], {}, {}, {}
    names = [*environments, *(f"{name} + {size} irrelevant" for name in environments for size in sizes)]
    for name in names:
        hikes = "Hike" in name
        low, high = LEVELS[HIKE if hikes else MAZE]
        episode, evaluations = np.arange(checkpoints) * 100, np.arange(10 * checkpoints - 9) * 10
        parts = ("belief",) if "+" not in name else ("relevant", "irrelevant")
        found = {(part, epsilon): [] for part in parts for epsilon in epsilons}
        for cell_number, cell in enumerate(cells):
            for seed in range(seeds):
                speed = 4 + 2 * cell_number + rng.uniform(0, 3)
                run = made_run(name, cell, seed, int(episode[-1]))
                values = low + (high - low) * rise(rng, len(evaluations), speed)
                runs.append(run)
                returns.setdefault((name, cell), []).append(Returns(run.id, seed, evaluations, values))
                specs[run.id] = {"pomdp": made_pomdp(name), "learner": LEARNER, "seed": seed}
                for (part, epsilon), these in found.items():
                    learned = rise(rng, checkpoints, 0.8 * speed)
                    about = {"environment": name, "cell": cell, "seed": seed, "run": run.id}
                    about |= {"part": part, "epsilon": epsilon}
                    about["M"] = PARTICLES.M if hikes and part != "irrelevant" else None
                    known = not hikes and part != "irrelevant"
                    learned = (1 - 0.5 * epsilon) * (learned if part != "irrelevant" else 1 - 0.6 * learned)
                    these += made_rows(about, episode, learned, values[::10], with_entropy=known)
        rows += [each for these in found.values() for each in these]
        if not hikes:
            optimum[name] = high
    table = as_table(rows)
    return Results(
        name="study",
        description="",
        settings={},
        calls=[],
        runs=runs,
        specs=specs,
        states={piece.name: "done" for run in runs for piece in run.pieces},
        failures=[],
        table=table,
        panels=panels(table),
        shares=panels(table, of_shares=True),
        returns={which: tuple(each) for which, each in returns.items()},
        optimum=optimum,
    )


def made_run(environment: str, cell: str, seed: int, last: int) -> Run:
    identity = hashlib.sha256(f"{environment} {cell} {seed}".encode()).hexdigest()[:16]
    label = f"{environment}, {cell}, seed {seed}"
    pieces = [Piece(kind="train", run=identity, label=label)]
    pieces += [Piece(kind="trace", run=identity, label=label, episode=episode) for episode in (0, last)]
    return Run(identity, environment, cell, seed, pieces)


def made_pomdp(environment: str) -> dict[str, Any]:
    if "Hike" in environment:
        return {"class": "MountainHike", "goal_radius": 0.1, "varying": "Varying" in environment}
    return {"class": "TMaze", "length": 100 if "100" in environment else 50}


def made_rows(about, episodes, learned, returns, *, with_entropy: bool) -> list[dict[str, Any]]:
    """A row for each checkpoint; controls and decoders stand at the first, the middle and the last."""
    controlled = {0, len(episodes) // 2, len(episodes) - 1}
    rows = []
    for place, (episode, share, found) in enumerate(zip(episodes, learned, returns, strict=True)):
        bits = 6.5 * float(share)
        entropy = {"entropy": 1 + 5.67 * float(share), "entropy_flagged": False} if with_entropy else {}
        controls = {f"control_{name.replace(' ', '_')}": bits / 2 for name in NAMES} if place in controlled else {}
        more = {"given_time": bits / 3, "MLP_kl": 1 - bits / 7, "linear_kl": 2 - bits / 7} if controls else {}
        measured = {"episode": int(episode), "return": float(found), "bits": bits}
        rows.append(row(**about, **measured, **entropy, **controls, **more))
    return rows


def made_traces(results: Results) -> list[StoredTrace]:
    """Of the first, the middle and the last checkpoint of each cell's first seed, as large as the paper's."""
    rng = np.random.default_rng(0)
    found = []
    for run in (each for each in results.runs if each.seed == 0):
        last = run.pieces[-1].episode
        assert last is not None
        pomdp = results.specs[run.id]["pomdp"]
        found += [
            StoredTrace(run.environment, run.cell, 0, episode, pomdp, made_arrays(rng, pomdp))
            for episode in (0, last // 2, last)
        ]
    return found


def made_arrays(rng, pomdp: dict[str, Any], *, steps: int = 80, memory: int = 64) -> dict[str, np.ndarray]:
    """Two episodes of a trace, of nonsense."""
    shape, maze = (2, steps), pomdp["class"] == "TMaze"
    size = 2 * (pomdp["length"] + 3) if maze else 50
    arrays = {
        "lengths": np.array([steps, steps - 2], np.int32),
        "actions": rng.integers(0, 4, shape).astype(np.int16),
        "rewards": rng.normal(size=shape).astype(np.float32),
        "values": rng.normal(size=(*shape, 4)).astype(np.float32),
        "observations": rng.normal(size=(*shape, 4 if maze else 1)).astype(np.float32),
        "states": rng.integers(0, 4, (*shape, 1 if maze else 3)).astype(np.float32),
        "memory": rng.uniform(-1, 1, (*shape, memory)).astype(np.float16),
        "decoded": rng.dirichlet(np.full(size, 0.5), shape).astype(np.float16),
    }
    if maze:
        return arrays | {"belief": rng.dirichlet(np.full(size, 0.1), shape).astype(np.float16)}
    width = 6 if pomdp["varying"] else 2
    particles = rng.uniform(-1, 1, (*shape, 200, width)).astype(np.float16)
    return arrays | {"belief": particles, "decoded_cells": rng.uniform(-1, 1, (size, width)).astype(np.float32)}


def stored_study(folder: Path, text: str = TOML) -> StudyFolder:
    """A study's folder of which nothing is done yet."""
    file = folder / "made-up.toml"
    file.write_text(text)
    stored, study = StudyFolder(folder / "out"), read_study(str(file))
    stored.prepare(study.describe())
    for spec, run in zip(study.runs, stored.runs, strict=True):
        write_atomic(stored.files.run(run.id).spec, spec.training.canonical_json().encode())
    return stored


def train(stored: StudyFolder, run: Run, *, finished: bool = True) -> list[dict[str, Any]]:
    """Store evaluations that rise, and return them."""
    files = stored.files.run(run.id)
    lines = [{"episode": episode, "return": 0.1 * episode + run.seed} for episode in (0, 10, 20)]
    write_lines(files.metrics, lines)
    if finished:
        digest = hashlib.sha256(files.metrics.read_bytes()).hexdigest()
        write_record(files.trained, {"episodes": 20, "files": {"metrics.jsonl": digest}})
    return lines


def finish(stored: StudyFolder, run: Run) -> None:
    """Store all that a run is to have."""
    rng = np.random.default_rng(run.seed)
    train(stored, run)
    for piece in run.pieces[1:]:
        if piece.kind == "trace":
            save_arrays(piece.result(stored.path), made_arrays(rng, {"class": "TMaze", "length": 3}, steps=6, memory=8))
        else:
            write_record(piece.result(stored.path), made_record(piece, run))


def made_record(piece: Piece, run: Run) -> dict[str, Any]:
    assert piece.measurement is not None
    assert piece.episode is not None
    bits = 0.05 * piece.episode + 0.1 * run.seed
    found = {"bits": bits, "standard_error": 0.1, "N": 2000, "M": None, "ceiling": 11.0, "near_ceiling": False}
    found |= {"warnings": [], "estimator": "MINE", "curve": [bits]}
    rest = {"entropy": {"bits": 1.5, "flagged": False}, "health": {"effective_sample_size": None, "impossible": 0.0}}
    if piece.controls:
        scores = dict.fromkeys(SCORES, bits)
        rest |= {
            "controls": {name: {"bits": bits / 2, "standard_error": 0.1} for name in NAMES},
            "given time": bits / 3,
        }
        rest |= {"decoded": {"linear": scores, "MLP": scores}}
    about = {**piece.measurement.describe(), "run": run.id, "episode": piece.episode}
    return {**about, "return": math.pi, "belief": {**found, **rest}}


def fail(stored: StudyFolder, piece: Piece, why: str) -> None:
    write_record(piece.failure(stored.path), {"piece": piece.title, "error": why})


def diverge(stored: StudyFolder, run: Run, why: str) -> None:
    write_record(stored.files.run(run.id).failed, {"episode": 10, "reason": why})
