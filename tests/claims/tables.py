"""Made-up tables for the claims: curves that rise, fall or scatter as a test needs them."""

import zlib

import numpy as np
from scipy import stats

from beliefscope.claims import CLAIMS
from beliefscope.claims.evidence import Evidence
from beliefscope.claims.several_environments import EPSILONS
from beliefscope.claims.verdict import judge
from beliefscope.paper import CELLS, ENVIRONMENTS, HIKE, LONG, MAZE, STOCHASTIC, VARYING
from beliefscope.results.curves import panels
from beliefscope.results.table import make_table

FULL = np.arange(0, 5001, 100)
QUICK = np.arange(0, 301, 100)
OPTIMUM = {STOCHASTIC: 1.0}
BEST = {MAZE: 4 * 0.98**50, LONG: 4 * 0.98**100, STOCHASTIC: 1.0, HIKE: -20.0, VARYING: -20.0}
SKILL = {"LSTM": 0.4, "GRU": 0.7, "BRC": 0.9, "NBRC": 1.0, "MGU": 0.8}  # how good a cell becomes


def rise(start, end, *, steps=25):
    """A curve over training as a function of the episode: from start to end over the first half, then flat."""
    return lambda episodes: start + (end - start) * np.minimum(1, episodes / (100 * steps))


def rows_of(environment, cell, returns, bits, *, seeds=4, episodes=FULL, noise=0.001, **others):
    """The rows of one series: curves (functions of the episode, or numbers) with small noise."""
    rng = np.random.default_rng(zlib.crc32(repr((environment, cell, sorted(others.items()))).encode()))
    rows = []
    for seed in range(seeds):
        curves = []
        for curve in (returns, bits):
            values = np.asarray(curve(episodes) if callable(curve) else np.full(len(episodes), curve), float)
            curves.append(values + noise * rng.normal() + noise * rng.normal(size=len(episodes)))
        for episode, value, information in zip(episodes, *curves, strict=True):
            rows.append(
                {
                    "environment": environment,
                    "cell": cell,
                    "seed": seed,
                    "episode": int(episode),
                    "epsilon": 0.0,
                    "estimator": "mine",
                    "epochs": 200,
                    "part": "belief",
                    "memory": "hidden",
                    "N": 20_000,
                    "M": 1000 if "Hike" in environment and others.get("part") != "irrelevant" else None,
                    "return": float(value),
                    "bits": float(information),
                    "entropy": 7.0,
                    "entropy_flagged": False,
                    "run": f"{environment} {cell} {seed}",
                    **others,
                }
            )
    return rows


def table(rows):
    return panels(make_table(rows))


def verdict(number, rows, optimum=OPTIMUM):
    claim = CLAIMS[number - 1]
    assert claim.number == number
    return judge(claim, Evidence(table(rows), optimum))


def curves(environments, *, best=1.0, bits=5.5, skill=SKILL, **others):
    """Each cell rises to its skill's share of the best return and of the bits."""
    rows = []
    for environment in environments:
        top = BEST[environment] if BEST[environment] > 0 else 1.0
        for cell, level in skill.items():
            level = level * best
            rows += rows_of(environment, cell, rise(0.0, top * level), rise(1.0, bits * level), **others)
    return rows


def without(rows, **given):
    return [row for row in rows if any(row[name] != value for name, value in given.items())]


def maze_with(bits, *, environments=(MAZE, LONG, STOCHASTIC), **others):
    """Every cell becomes optimal, with that many bits in each environment."""
    rows = []
    for environment, most in zip(environments, bits, strict=True):
        for cell in CELLS:
            rows += rows_of(environment, cell, rise(0, BEST[environment] + 0.003), rise(1, most), **others)
    return rows


def hike(low=-40.0, high=-20.0, *, rich=3.0, poor=1.5, **others):
    """The return jumps from low to high in the middle of the training."""

    def jump(a, b):
        return lambda episodes: np.where(episodes < 0.5 * episodes[-1], a, b)

    return [row for cell in CELLS for row in rows_of(HIKE, cell, jump(low, high), jump(poor, rich), **others)]


def varying(better=("GRU", "NBRC", "MGU"), *, curve=None, **others):
    rows = []
    for cell in CELLS:
        end, bits = (-20.0, 4.6) if cell in better else (-60.0, 3.0)
        rows += rows_of(VARYING, cell, curve or rise(-100.0, end), rise(2.2, bits), **others)
    return rows


def irrelevant(*, change=None, **others):
    """All that the tenth claim says; `change` alters (environment, cell, d) → dictionary of curves."""
    rows = []
    for base in (MAZE, HIKE):
        start, top, low = (0.0, BEST[MAZE], 0.5) if base == MAZE else (-60.0, -20.0, -20.0)
        for size in (1, 4):
            for cell in CELLS:
                fails = base == MAZE and size == 4 and cell in ("LSTM", "BRC")
                still = base == MAZE and cell == "BRC"
                lowest = 1.05 if cell == "LSTM" and base == MAZE and size == 4 else 3.0
                of = {
                    "returns": rise(start, low if fails else top, steps=10 * size if not fails else 40),
                    "relevant": (lambda e: 1.2 + 0 * e) if still and size == 4 else rise(1.0, lowest, steps=50),
                    "irrelevant": (lambda e, d=size: 4.0 * d + 0 * e)
                    if still
                    else rise(4.0 * size, 4.0 * size - 0.9, steps=50),
                }
                of |= (change or (lambda *_: {}))(base, cell, size)
                for part in ("relevant", "irrelevant"):
                    name = f"{base} + {size} irrelevant"
                    rows += rows_of(name, cell, of["returns"], of[part], part=part, **others)
    return rows


def generalising(*, sign=-1, end=4.0, **others):
    rows = []
    for environment in ENVIRONMENTS:
        for epsilon in EPSILONS:
            bits = rise(1.0, end + sign * epsilon)
            rows += rows_of(environment, "GRU", rise(0, 1), bits, epsilon=epsilon, **others)
    return rows


def claim_6(mgu=1.0, gru=0.5, brc=0.8, **others):
    return curves([LONG], skill={"LSTM": 0.4, "GRU": gru, "BRC": brc, "NBRC": 0.95, "MGU": mgu}, **others)


def opposed(environment):
    """Cells of higher return have less information."""
    rows = []
    for cell, level in SKILL.items():
        rows += rows_of(environment, cell, rise(0, level), rise(1, 6 - 2 * level))
    return rows


def heavy_tailed(episodes):
    """Returns around −20 of one group with heavy tails, rising."""
    return -20 + stats.t(2).ppf((np.arange(len(episodes)) + 0.5) / len(episodes))


def falling(environment):
    """Return rises, information falls."""
    return [row for cell in CELLS for row in rows_of(environment, cell, rise(0, 1), rise(5, 1))]
