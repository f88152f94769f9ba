"""What the estimators say of data whose information is known: every estimator, every case, N = 10,000, 5 seeds.

    python benchmarks/calibration.py measure docs/calibration.json     goes on with what is not there yet
    python benchmarks/calibration.py page docs/calibration.json        prints the page docs/calibration.md

Hours on two cores, minutes on a GPU. `--estimators` and `--cases` take parts of names, `--frozen` adds the cases that
are kept for a last look. Sets of 1000 particles are measured on a GPU only.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import jax
import numpy as np

from beliefscope.information import (
    KSG,
    MINE,
    NWJ,
    SMILE,
    Estimate,
    Estimator,
    Gaussian,
    InfoNCE,
    KnownCase,
    NeuralEstimator,
    Trusted,
    known_cases,
)
from beliefscope.storage import write_atomic

N = 10_000
SEEDS = 5
ESTIMATORS = {
    "trusted": Trusted(),
    "MINE": MINE(),
    "MINE, code": MINE("code"),
    "MINE, printed": MINE("printed"),
    "NWJ": NWJ(),
    "SMILE": SMILE(),
    "InfoNCE": InfoNCE(),
    "KSG": KSG(),
    "Gaussian": Gaussian(),
}
CLOSED_FORMS = ("KSG", "Gaussian")  # no critic is fitted, so that no GPU is needed


def measure(case: KnownCase, name: str) -> dict:
    """Five seeds of one estimator on one case."""
    estimator, start = ESTIMATORS[name], time.perf_counter()
    # Who needs fresh pairs draws N more: the estimate stands on N pairs in any case.
    rows = 2 * N if isinstance(estimator, NeuralEstimator) and not estimator.printed else N
    keys = [jax.random.split(jax.random.key(seed)) for seed in range(SEEDS)]
    sample = jax.jit(case.sample, static_argnums=1)
    samples = [tuple(map(np.asarray, sample(key_data, rows))) for key_data, _ in keys]
    if not all(np.isfinite(part).all() for pair in samples for part in pair):
        raise SystemExit(f"{case.name}: the samples drawn on {jax.devices()[0].device_kind} are not finite.")
    try:
        with warnings.catch_warnings(action="ignore"):  # of the printed variant
            found = estimate([key_fit for _, key_fit in keys], samples, estimator)
    except ValueError as error:
        return {"case": case.name, "estimator": name, "truth": case.bits, "refused": str(error)}
    bits = [one.bits for one in found]
    return {
        "case": case.name,
        "frozen": case.frozen,
        "estimator": name,
        "truth": case.bits,
        "truth_error": case.standard_error,
        "bits": bits,
        "mean": float(np.mean(bits)),
        "deviation": float(np.std(bits, ddof=1)),
        "standard_error": float(np.mean([one.standard_error for one in found])),
        "N": found[0].num_samples,
        "M": found[0].num_particles,
        "device": jax.devices()[0].device_kind,
        "seconds": round((time.perf_counter() - start) / SEEDS, 1),
    }


def estimate(keys: list, samples: list, estimator: Estimator) -> list[Estimate]:
    if isinstance(estimator, NeuralEstimator):
        return estimator.estimate_each(keys, *zip(*samples, strict=True))
    return [estimator.estimate(key, *pair) for key, pair in zip(keys, samples, strict=True)]


def run(options: argparse.Namespace) -> None:
    done = json.loads(options.file.read_text()) if options.file.exists() else []
    there = {(row["case"], row["estimator"]) for row in done}
    for name in ESTIMATORS:
        for case in known_cases().values():
            asked = options.estimators in ("", name) and options.cases in case.name
            large = "1000 particles" in case.name and name not in CLOSED_FORMS and jax.default_backend() == "cpu"
            if not asked or large or (case.name, name) in there or (case.frozen and not options.frozen):
                continue
            done.append(measure(case, name))
            write_atomic(options.file, (json.dumps(done, indent=1) + "\n").encode())
            print(describe(done[-1]), flush=True)


def describe(row: dict) -> str:
    if "refused" in row:
        return f"{row['estimator']}: {row['case']}: refused"
    return f"{row['estimator']}: {row['case']}: truth {row['truth']:.2f}, {row['mean']:.3f} ± {row['deviation']:.3f}"


def bar(row: dict) -> float | None:
    """How far from the truth the mean may lie; None where nothing was asked."""
    truth, case, name = row["truth"], row["case"], row["estimator"]
    if name == "trusted":
        if truth == 0:
            return 0.05
        if case == "code of 202 symbols":
            return 0.4
        if case.startswith("set"):
            return 0.1 * truth
        return max(0.25, 0.07 * truth) if truth <= 6 else 0.25
    if name == "Gaussian" and case.startswith("Gaussian") and case.endswith("bits"):
        return 0.1
    if name == "KSG" and case.startswith(("Gaussian, d = 1,", "Gaussian, d = 2,")) and truth <= 4:
        return 0.1
    return None


def page(options: argparse.Namespace) -> None:
    rows = json.loads(options.file.read_text())
    names = [name for name in ESTIMATORS if any(row["estimator"] == name for row in rows)]
    print(HEAD)
    print("| case | truth | " + " | ".join(names) + " |")
    print("|---|---|" + "---|" * len(names))
    for case in known_cases().values():
        cells = [cell(row) for name in names for row in [find(rows, case.name, name)]]
        print(f"| {case.name}{' (frozen)' if case.frozen else ''} | {case.bits:.2f} | " + " | ".join(cells) + " |")
    missed = [row for row in rows if "mean" in row and (limit := bar(row)) is not None and off(row) > limit]
    print("\n## Bars\n")
    print(f"{sum(bar(row) is not None and 'mean' in row for row in rows)} numbers have a bar; {len(missed)} miss it.")
    for row in missed:
        print(f"- {describe(row)}: off by {off(row):.2f}, the bar is {bar(row):.2f}.")
    print("\n## Seconds for one estimate\n")
    for name in names:
        for device in sorted({row["device"] for row in rows if row["estimator"] == name and "device" in row}):
            seconds = [row["seconds"] for row in rows if row["estimator"] == name and row.get("device") == device]
            print(f"- {name}, {device}: {min(seconds):g} to {max(seconds):g}, compilation included and shared by five.")


def find(rows: list[dict], case: str, name: str) -> dict | None:
    return next((row for row in rows if row["case"] == case and row["estimator"] == name), None)


def off(row: dict) -> float:
    return abs(row["mean"] - row["truth"])


def cell(row: dict | None) -> str:
    if row is None:
        return "–"
    if "refused" in row:
        return "refused"
    limit = bar(row)
    text = f"{row['mean']:.2f} ± {row['deviation']:.2f}"
    return f"**{text}**" if limit is not None and off(row) > limit else text


HEAD = """# Calibration

What each estimator says of data whose information is known: the mean over five seeds ± their standard deviation, in
bits, from N = 10,000 pairs (the neural estimators but `trusted` train on 10,000 more). `benchmarks/calibration.py`
measured it, and wrote this page from `docs/calibration.json`.

A mean that differs from the truth by more than the deviation is biased, and no number of seeds will mend it:

- **trusted** is `Trusted()`, which `mutual_information` uses. Biased downwards, by a few hundredths of a bit in most
  cases and by more the higher the dimension and the information.
- **MINE** is the paper's estimator with weights chosen on held-out pairs and bits on fresh pairs; **MINE, code** has
  100 epochs instead of 200. Biased downwards where the information or the dimension is high. Its bits come from a
  single shuffle, whence its scatter.
- **MINE, printed** is the algorithm as printed: bits of the last weights on the pairs that trained them. Biased
  upwards where a critic can learn the pairs by heart; it is here as a warning.
- **NWJ**, **SMILE**, **InfoNCE**: the paper's critic with other bounds. NWJ is a lower bound, of large variance; SMILE
  is no bound; InfoNCE cannot exceed log2 128 = 7 bits.
- **KSG** is biased downwards beyond two dimensions or four bits, and refuses data with ties. **Gaussian** is exact for
  Gaussian data and sees only what covariances show of other data.

Three cases are frozen: no setting was chosen after a look at them. Where a bar was set and is missed, the number is
bold.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--estimators", default="", help="one estimator by name; all by default")
    parser.add_argument("--cases", default="", help="only cases whose names contain this")
    parser.add_argument("--frozen", action="store_true", help="also the frozen cases")
    options = parser.parse_args()
    run(options) if options.action == "measure" else page(options)


if __name__ == "__main__":
    main()
