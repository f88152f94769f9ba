"""The numbers of the Mountain Hike and of other ε in docs/results.md that stand in no table or ledger:
`python results/mountain_hikes.py` prints them.
"""

import numpy as np
import polars
from errors_in_common import LATER
from join import tables
from polars import col
from scipy import stats

from beliefscope.paper import CELLS
from beliefscope.results import read_table

HIKE, VARYING = "Mountain Hike", "Varying Mountain Hike"
SEEDS = (0, 1, 2, 3)  # of the studies' own runs; four more GRUs were measured under every ε
COLUMNS = ("return", "bits", "control_untrained", "control_time", "control_recent", "given_time")
SHARES = ("sufficiency", "sufficiency_untrained")


def hidden(table: polars.DataFrame, environment: str) -> polars.DataFrame:
    """The rows of h, by MINE or of sufficiency."""
    return table.filter(col("environment") == environment, col("memory") == "hidden")


def of_start(rows: polars.DataFrame) -> None:
    print("Pearson and Spearman over all cells, from an episode on:")
    for first in (0, 1000, 2000):
        bits, returns = rows.filter(col("episode") >= first).select("bits", "return")
        print(f"  {first}: {stats.pearsonr(bits, returns)[0]:.2f}, {stats.spearmanr(bits, returns)[0]:.2f}")


def at_end(own: polars.DataFrame, bits: polars.DataFrame) -> None:
    """A checkpoint of sufficiency is a row of its own."""
    print(f"At episode 5,000, means over seeds: {', '.join((*COLUMNS, *SHARES))}; bits of the last ten checkpoints")
    for cell in CELLS:
        last = own.filter(col("cell") == cell, col("episode") == 5000)
        means = last.group_by("seed").agg(col(*COLUMNS, *SHARES).drop_nulls().first()).mean()
        numbers = [f"{means[name].item():.2f}" for name in COLUMNS] + [f"{means[name].item():.0%}" for name in SHARES]
        ten = bits.filter(col("cell") == cell, col("episode") > 4000)["bits"].mean()
        print(f"  {cell}: {', '.join(numbers)}; {ten:.2f}")


def last_against_those_before(bits: polars.DataFrame) -> None:
    """Of the runs with an error in common, and of the others."""
    print("Bits at episode 5,000 above the mean from 4,100 to 4,900:")
    later = [(cell, seed) for cell, seeds in LATER[HIKE].items() for seed in seeds]
    gaps: dict[bool, list[float]] = {False: [], True: []}
    for name, run in bits.filter(col("episode") > 4000).sort("episode").group_by("cell", "seed"):
        *before, last = run["bits"]
        gaps[name in later].append(last - np.mean(before))
    print(
        *(
            f"  {len(found)} {name} runs: {np.mean(found):.2f}"
            for name, found in zip(("earlier", "later"), gaps.values(), strict=True)
        ),
        sep="\n",
    )


def under_every_epsilon(rows: polars.DataFrame, environment: str) -> None:
    """At the checkpoints, and of the seeds, that were measured under all of them."""
    rows = rows.filter(col("cell") == "GRU")
    places = rows.group_by("seed", "episode").agg(col("epsilon").n_unique() == 6).filter("epsilon")
    rows = rows.join(places, on=("seed", "episode"), how="semi")
    print(f"{environment}, bits of the GRU at episode 0 and after 4,000, and its return under ε at 5,000:")
    for epsilon in sorted(set(rows["epsilon"])):
        here = rows.filter(col("epsilon") == epsilon)
        start, end = (here.filter(each)["bits"].mean() for each in (col("episode") == 0, col("episode") > 4000))
        earned = here.filter(col("episode") == 5000)["sampled_return"].mean()
        print(f"  {epsilon:g}: {start:.2f}, {end:.2f}; {earned:.0f}")


def main() -> None:
    table = read_table(tables())
    rows = hidden(table, HIKE)
    own = rows.filter(col("seed").is_in(SEEDS), col("epsilon") == 0)
    bits = own.filter(col("estimator") == "mine")
    of_start(bits)
    at_end(own, bits)
    last_against_those_before(bits)
    for environment in (HIKE, VARYING):
        every = table.filter(col("environment") == environment, col("estimator") == "mine", col("epsilon") == 0)
        every = every.filter(col("seed").is_in(SEEDS))
        counts = [every["warnings"].str.contains(warning).sum() for warning in ("not converged", "failed fit")]
        print(f"{environment}, of {len(every)} fits of MINE: {counts[0]} not converged, {counts[1]} failed")
        under_every_epsilon(hidden(table, environment).filter(col("estimator") == "mine"), environment)


if __name__ == "__main__":
    main()
