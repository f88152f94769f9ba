"""Faults for an hour: small studies are killed, starved of disk, damaged and lied to about the time, then finished.

python tests/study/fault_suite.py --minutes 60    (`make faults`); or --rounds N, and --seed for other faults

Each round is one study. Between its faults it is started again, and at the end it has to be whole: all pieces done,
its table that of a study without faults, and no file lost that was whole before a fault which did not touch it.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does
from hypothesis import given, settings
from hypothesis import strategies as st
from study.tiny import TOML, beliefscope, definition, run

from beliefscope.study import StudyFolder, read_study
from beliefscope.study.folder import count_states

FAULTS = Path(__file__).parent / "faults"
WRITTEN = ("study.json", "manifest.json", "spec.json", "metrics.jsonl", "resume.eqx", "20.eqx", "trained.json", "")
ODD = ["", "x = ", "-1", "1e999", "[]", "{}", "''", "'../..'", "nan", "true", "9" * 30, "\0", "'\\u0000'", "é", "# "]


class Suite:
    """What was done to studies, and how they took it."""

    def __init__(self, seed: int, place: Path):
        self._draw, self._place = random.Random(seed), place
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        self._truth = self._finished(place / "truth")

    def round(self, number: int) -> None:
        """One study, with one to four faults."""
        folder = self._place / f"round-{number}" / "out"
        folder.parent.mkdir()
        for fault in self._draw.choices(list(self._faults()), k=self._draw.randint(1, 4)):
            whole = _results(folder)
            touched = self._faults()[fault](folder)
            self.counts["faults"] += 1
            self._count_lost(folder, {file: bytes for file, bytes in whole.items() if file != touched}, fault)
        self.counts["studies"] += 1
        if self._finished(folder.parent) != self._truth:
            self._complain("differing", f"round {number}: its table is another one")
        self._bad_definitions()

    def summary(self) -> str:
        lost, differing = self.counts["lost"], self.counts["differing"]
        done = f"{self.counts['faults']} faults injected, {self.counts['studies']} studies completed"
        return f"{done}, {lost} results lost, {differing} results differing, {self.counts['rude']} rude answers"

    def _faults(self) -> dict[str, Callable[[Path], Path | None]]:
        return {"kill": self._kill, "disk": self._disk, "clock": self._clock, "damage": self._damage}

    def _finished(self, folder: Path) -> str:
        """Without faults, to the end."""
        folder.mkdir(exist_ok=True)
        status, _, err = run("run", definition(folder), "--out", folder / "out", "--workers", 1)
        stored = StudyFolder(folder / "out")
        if status or count_states(stored.states()) != "4 done":
            self._complain("lost", f"{folder.name} did not end well: {err[-300:]}")
            return ""
        return stored.csv()

    def _kill(self, folder: Path) -> None:
        """With two workers, so that several things are under way."""
        with beliefscope("run", definition(folder.parent), "--out", folder, "--workers", 2) as process:
            time.sleep(self._draw.uniform(1, 12))
            process.kill()
        time.sleep(0.2)  # for the kernel to end the workers, too

    def _disk(self, folder: Path) -> None:
        kind = self._draw.choice(["ENOSPC", "EROFS", "EIO", "short", "delay"])
        self._run_with(f"{kind}:{self._draw.randint(0, 3)}:{self._draw.choice(WRITTEN)}", folder)

    def _clock(self, folder: Path) -> None:
        self._run_with(f"clock:{self._draw.randint(0, 20)}:", folder)

    def _run_with(self, fault: str, folder: Path) -> None:
        """Any end is a good one but a traceback."""
        before = dict(os.environ)
        os.environ |= {"FAULT": fault, "PYTHONPATH": os.pathsep.join([str(FAULTS), before.get("PYTHONPATH", "")])}
        try:
            status, _, err = run("run", definition(folder.parent), "--out", folder, "--workers", 1)
        finally:
            os.environ.clear()
            os.environ |= before
        if "Traceback" in err or status not in (0, 1, 2):
            self._complain("rude", f"{fault}: exit status {status}: {err[-300:]}")

    def _damage(self, folder: Path) -> Path | None:
        """Flip a bit of a file, cut it, or take it away; spec.json is left alone, since it is what a run is."""
        files = sorted(file for file in folder.rglob("*.*") if file.is_file() and file.name != "spec.json")
        if not files:
            return None
        file = self._draw.choice(files)
        content = bytearray(file.read_bytes())
        how = self._draw.choice(["flip", "cut", "remove"])
        if how == "remove":
            file.unlink()
        elif how == "cut" or not content:
            file.write_bytes(content[: len(content) // 2])
        else:
            content[self._draw.randrange(len(content))] ^= 1 << self._draw.randrange(8)
            file.write_bytes(content)
        return file

    def _count_lost(self, folder: Path, whole: dict[Path, bytes], fault: str) -> None:
        now = _results(folder)
        for file in whole.keys() - now.keys():
            if not list(folder.glob(f"quarantine/*/{file.name}")):
                self._complain("lost", f"{file} after {fault}")

    def _bad_definitions(self) -> None:
        """Read for no more than a sentence each."""
        counts = self.counts

        @settings(max_examples=20, deadline=None, database=None)
        @given(st.integers(0, len(TOML)), st.integers(0, 30), st.sampled_from(ODD) | st.text(max_size=8))
        def read(start: int, length: int, odd: str) -> None:
            text = TOML[:start] + odd + TOML[start + length :]
            counts["faults"] += 1
            file = self._place / "odd.toml"
            file.write_text(text, "utf-8", errors="ignore")
            try:
                read_study(str(file))
            except (ValueError, OSError):
                return
            except Exception as error:
                self._complain("rude", f"{type(error).__name__} for the definition {text!r}")

        read()

    def _complain(self, kind: str, sentence: str) -> None:
        self.counts[kind] += 1
        self.complaints.append(sentence)
        print(f"{kind}: {sentence}", flush=True)


def _results(folder: Path) -> dict[Path, bytes]:
    """What is finished: trainings and measurements."""
    files = [*folder.glob("runs/*/trained.json"), *folder.glob("runs/*/measure/*.json")]
    return {file: file.read_bytes() for file in files}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        suite = Suite(options.seed, Path(place))
        for number in range(options.rounds):
            suite.round(number)
            print(f"round {number}: {suite.summary()}", flush=True)
            if time.monotonic() - start > 60 * options.minutes:
                break
    print(suite.summary())
    return 1 if suite.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
