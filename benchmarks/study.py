"""How long studies take: one worker against two, and the listing of many pieces. Prints tables; asserts nothing.

python benchmarks/study.py workers    the same study with one worker and with two, compiled programs kept
python benchmarks/study.py pieces     10,000 finished pieces: status and table
"""

import argparse
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from beliefscope import StudyFolder, read_study, run_study
from beliefscope.store import write_atomic, write_lines, write_record
from beliefscope.store.study_folder import count_states

WORKERS = """
cells = ["GRU", "BRC"]
seeds = [0, 1, 2, 3]
traces = false
[[environments]]
pomdp = "t-maze"
length = 20
[training]
num_episodes = 1000
checkpoint_period = 500
[measurement]
estimators = ["mine"]
num_samples = 2000
epochs = 200
controls = "none"
"""
PIECES = """
cells = ["GRU"]
seeds = [{seeds}]
traces = false
[[environments]]
pomdp = "t-maze"
length = 3
[training]
num_episodes = 990
checkpoint_period = 10
"""
# Of the size of a real one.
FOUND = {"bits": 1.5, "standard_error": 0.1, "N": 10_000, "M": None, "ceiling": 13.3, "near_ceiling": False}
REST = {"curve": [1.2345] * 200, "entropy": {"bits": 6.67, "distinct": 102, "flagged": False}}
HEALTH = {"effective_sample_size": None, "impossible": 0.0}
RECORD = {"epsilon": 0.0, "estimator": "text", "return": 0.5, "belief": {**FOUND, **REST, "health": HEALTH}}


def seconds_of(program) -> float:
    start = time.perf_counter()
    program()
    return time.perf_counter() - start


def defined(folder: Path, text: str):
    file = folder / "benchmark.toml"
    file.write_text(text)
    return read_study(file)


def workers(folder: Path) -> None:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder / "xla")
    study = defined(folder, WORKERS)
    taken = {}
    for name, number in (("2 workers, nothing compiled", 2), ("1 worker", 1), ("2 workers", 2)):
        taken[name] = seconds_of(lambda number=number: run_study(study, folder / "out", workers=number))
        print(f"{name:<30}{taken[name]:>8.1f} s", flush=True)
        shutil.rmtree(folder / "out")
    print(f"{'throughput of 2, of 1':<30}{taken['1 worker'] / taken['2 workers']:>8.2f}")


def pieces(folder: Path) -> None:
    seeds = ", ".join(map(str, range(100)))
    stored = StudyFolder(folder / "out")
    study = defined(folder, PIECES.format(seeds=seeds))
    stored.prepare(study.describe())
    for spec, run in zip(study.runs, stored.runs, strict=True):
        at = stored.path / "runs" / run.id
        write_lines(at / "metrics.jsonl", [{"episode": episode, "return": 0.1} for episode in range(0, 1000, 10)])
        write_atomic(at / "spec.json", spec.training.canonical_json().encode())
        digest = hashlib.sha256((at / "metrics.jsonl").read_bytes()).hexdigest()
        write_record(at / "trained.json", {"files": {"metrics.jsonl": digest}})
        for piece in run.pieces[1:]:
            assert piece.measurement is not None
            about = {**piece.measurement.describe(), "run": run.id, "episode": piece.episode}
            write_record(piece.result(stored.path), {**RECORD, **about})
    again = StudyFolder(folder / "out")
    print(f"status {seconds_of(lambda: print(count_states(again.states()))):.2f} s")
    print(f"table  {seconds_of(again.csv):.2f} s")
    print(f"check  {seconds_of(again.set_aside_damaged):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"workers": workers, "pieces": pieces}
    parser.add_argument("part", choices=list(parts))
    with tempfile.TemporaryDirectory() as folder:
        parts[parser.parse_args().part](Path(folder))


if __name__ == "__main__":
    main()
