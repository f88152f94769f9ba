"""Faults without end: a small study is killed, stopped, starved of disk, damaged, forged and lied to about the time.

python tests/study/fault_suite.py --minutes 60    (`make faults`); or --faults N, and --seed for other faults

Each fault begins with a study of which some pieces are done. Then the study is completed: all pieces have to be done
and its table has to be, byte for byte, that of a study without faults. No result that was whole and that the fault did
not touch may be lost. Tracebacks and commands that do not end are counted.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))  # as pytest does
os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": "1"}
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(TESTS.parent / ".pytest_cache" / "xla"))
from study.fault_kinds import ON_FILES, mutate, swap  # noqa: E402
from study.fault_processes import LONGEST, Answer, Host, Study  # noqa: E402
from study.tiny import TOML, definition  # noqa: E402

WRITTEN = ("study.json", "manifest.json", "spec.json", "metrics.jsonl", "resume.eqx", "20.eqx", "trained.json", "", "")
LOOKS = (["status"], ["status", "--check"], ["export"], ["claims"])
REPORTS = 0.1  # of the folders are looked at by `report` too, which is slow
WEIGHTS = {
    "group killed": 100,
    "killed as it writes": 60,
    "worker killed": 20,
    "stopped": 30,
    "two processes": 20,
    "disk": 200,
    "clock": 60,
    "table": 40,
    "training mixed up": 60,
}


class Suite:
    """What was done to studies, and how they took it."""

    def __init__(self, seed: int, place: Path):
        self._draw, self._place = random.Random(seed), place
        self.counts: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self._host = Host()
        self._definition = definition(place, TOML.replace("traces = false", "traces = true"))
        self._whole, self._number = place / "whole", 0
        first = self._host.ask(self._command(self._whole), folder=self._whole)
        if first is None or first.status:
            raise SystemExit(f"the study without faults did not end: {first}")
        self._truth, self._all_done = first.table, first.states

    def fault(self) -> None:
        """One fault, and the completion of its study."""
        kinds = {**WEIGHTS, **dict.fromkeys(ON_FILES, 60)}
        (kind,) = self._draw.choices(list(kinds), weights=list(kinds.values()))
        self._number += 1
        folder = self._begun(self._place / str(self._number))
        whole = _results(folder)
        touched = self._inject(kind, folder)
        self.counts["faults"] += 1
        self.kinds[kind] += 1
        self._count_lost(folder, whole, touched, kind)
        self._complete(folder, kind)
        shutil.rmtree(folder)

    def summary(self) -> str:
        names = ("completed", "lost", "differing", "tracebacks", "hangs")
        return ", ".join([f"{self.counts['faults']} faults", *(f"{self.counts[name]} {name}" for name in names)])

    @property
    def is_clean(self) -> bool:
        return self.counts["completed"] == self.counts["faults"] and not any(
            self.counts[name] for name in ("lost", "differing", "tracebacks", "hangs")
        )

    def close(self) -> None:
        self._host.close()

    def _inject(self, kind: str, folder: Path) -> Path | None:
        """The file that was touched, where the fault is that."""
        faults: dict[str, Callable[[Path], Path | None]] = {
            "group killed": self._kill_group,
            "killed as it writes": self._kill_at_write,
            "worker killed": self._kill_worker,
            "stopped": self._stop,
            "two processes": self._two,
            "disk": self._disk,
            "clock": self._clock,
            "table": self._table,
            "training mixed up": self._mix_up,
        }
        if kind in faults:
            return faults[kind](folder)
        files = sorted(file for file in folder.rglob("*.*") if file.is_file())
        file = self._draw.choice(files)
        ON_FILES[kind](self._draw, file)
        self._look(folder)
        return file

    def _begun(self, folder: Path) -> Path:
        """A study of which some pieces are done, some trainings not finished, or nothing; never all."""
        shutil.copytree(self._whole, folder)
        if self._draw.random() < 0.01:
            shutil.rmtree(folder / "runs")
        while _results(folder).keys() == _results(self._whole, folder).keys():
            self._take_away(folder)
        return folder

    def _take_away(self, folder: Path) -> None:
        for run in sorted(folder.glob("runs/*")):
            for file in (*run.glob("measure/*"), *run.glob("traces/*")):  # a trace compiles its program each time
                if self._draw.random() < (0.3 if file.suffix == ".json" else 0.02):
                    file.unlink()
            if self._draw.random() < 0.3:
                (run / "trained.json").unlink()
                if self._draw.random() < 0.5:
                    (run / "resume.eqx").unlink()

    def _complete(self, folder: Path, kind: str) -> None:
        answer = self._ask(self._command(folder), folder, folder=folder)
        if answer is None:
            return
        if answer.status or answer.states != self._all_done:
            self._complain("not completed", f"{kind}: {answer.states}: {answer.out[-300:]} {answer.err[-600:]}", folder)
            return
        self.counts["completed"] += 1
        if answer.table != self._truth:
            self._complain("differing", f"{kind}: {answer.out[-600:]}", folder)

    def _command(self, folder: Path) -> list[object]:
        return ["run", self._definition, "--out", folder, "--workers", 1]

    def _ask(
        self, arguments: list[object], kept: Path, *, folder: Path | None = None, fault: str = ""
    ) -> Answer | None:
        """A command of the host; a traceback, and no answer, are counted."""
        answer = self._host.ask(arguments, folder=folder, fault=fault)
        if answer is None:
            self._complain("hangs", f"{arguments} {fault}", kept)
        elif "Traceback" in answer.err + answer.out or answer.status not in (0, 1, 2):
            self._complain("tracebacks", f"{arguments} {fault}: {answer.err[-1500:]}", kept)
        return answer

    def _look(self, folder: Path) -> None:
        for command in self._draw.sample(LOOKS, 2):
            self._ask([*command, folder], folder)
        if self._draw.random() < REPORTS:
            self._ask(["report", folder, "--out", folder.with_name("report")], folder)

    def _started(self, folder: Path, *, workers: int = 2, fault: str = "") -> Study:
        return Study([*self._command(folder)[:-1], workers], folder.with_name("log"), fault)

    def _kill_group(self, folder: Path) -> None:
        study = self._started(folder)
        study.wait(self._draw.uniform(0, 5))
        study.kill()

    def _kill_at_write(self, folder: Path) -> None:
        """In the midst of a write; a study that writes less ends by itself, or is killed after a while."""
        study = self._started(folder, fault=f"kill:{self._draw.randint(0, 3)}:{self._draw.choice(WRITTEN)}")
        study.wait(5)
        study.kill()

    def _kill_worker(self, folder: Path) -> None:
        study = self._started(folder)
        for _ in range(self._draw.randint(1, 2)):
            study.wait(self._draw.uniform(1, 4))
            study.kill_worker(folder)
        self._ended(study, folder)

    def _stop(self, folder: Path) -> None:
        study = self._started(folder)
        for _ in range(self._draw.randint(1, 3)):
            study.wait(self._draw.uniform(0, 2))
            study.signal(signal.SIGSTOP)
            time.sleep(0.2)
            self._ask(["status", folder], folder)
            study.signal(signal.SIGCONT)
        study.kill()

    def _two(self, folder: Path) -> None:
        """Two processes at once: the other one has to end well, too, unless it is killed."""
        study = self._started(folder, workers=1)
        study.wait(self._draw.uniform(0, 3))
        answer = self._ask(self._command(folder), folder)
        if answer is not None and answer.status:
            self._complain("not completed", f"beside another process: {answer.err}", folder)
        study.kill() if self._draw.random() < 0.5 else self._ended(study, folder)

    def _ended(self, study: Study, folder: Path) -> None:
        status, said = study.wait(LONGEST), study.log.read_text()
        study.kill() if status is None else None
        if status is None:
            self._complain("hangs", said[-300:], folder)
        elif status or "Traceback" in said:
            self._complain("tracebacks", f"exit status {status}: {said[-1500:]}", folder)

    def _disk(self, folder: Path) -> None:
        kind = self._draw.choice(["ENOSPC", "EROFS", "EIO", "short"])
        fault = f"{kind}:{self._draw.randint(0, 5)}:{self._draw.choice(WRITTEN)}"
        self._ask(self._command(folder), folder, fault=fault)

    def _clock(self, folder: Path) -> None:
        """Files from any time, and a process for which it is any time."""
        for file in folder.rglob("*"):
            seconds = self._draw.choice([0, 1, 1e9, 4e9, 1e11])
            os.utime(file, (seconds, seconds))
        self._ask(self._command(folder), folder, fault=f"clock:{self._draw.randint(0, 99)}:")

    def _table(self, folder: Path) -> None:
        """An exported table that was altered: an answer, whichever."""
        file = folder / "table.csv"
        content = self._truth.encode()
        for _ in range(self._draw.randint(1, 3)):
            content = mutate(self._draw, content)
        file.write_bytes(content)
        for command in ("claims", "export"):
            self._ask([command, file], folder)

    def _mix_up(self, folder: Path) -> Path:
        """An unfinished training, one of whose files is another run's, or another checkpoint's."""
        whole = self._draw.choice(sorted(self._whole.glob("runs/*")))
        run = folder / "runs" / whole.name
        shutil.copytree(whole, run, dirs_exist_ok=True)
        (run / "trained.json").unlink()
        names = ("metrics.jsonl", "metrics.jsonl", "resume.eqx", "params/0.eqx", "params/20.eqx")
        swap(self._draw, run / self._draw.choice(names))
        self._look(folder)
        return run / "trained.json"

    def _count_lost(self, folder: Path, whole: dict[Path, bytes], touched: Path | None, kind: str) -> None:
        for file, content in whole.items():
            here = [file, *folder.glob(f"quarantine/**/{file.name}")]
            if file != touched and not any(each.is_file() and each.read_bytes() == content for each in here):
                self._complain("lost", f"{file} after {kind}", folder)

    def _complain(self, kind: str, sentence: str, folder: Path) -> None:
        self.counts[kind] += 1
        print(f"{kind} (fault {self._number}): {sentence}", flush=True)


def _results(folder: Path, called: Path | None = None) -> dict[Path, bytes]:
    """What is finished: trainings, measurements and traces; as if the folder were `called` so."""
    patterns = ("runs/*/trained.json", "runs/*/measure/*.json", "runs/*/traces/*.npz")
    files = [file for pattern in patterns for file in folder.glob(pattern)]
    return {(called or folder) / file.relative_to(folder): file.read_bytes() for file in files}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--faults", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    memory = Path("/dev/shm")  # a disk that others use takes seconds to flush
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        suite = Suite(options.seed, Path(place))
        start = time.monotonic()
        while suite.counts["faults"] < options.faults and time.monotonic() - start < 60 * options.minutes:
            suite.fault()
            if suite.counts["faults"] % 50 == 0:
                print(f"{time.monotonic() - start:.0f} s: {suite.summary()}", flush=True)
        suite.close()
    print(", ".join(f"{number} {kind}" for kind, number in sorted(suite.kinds.items())))
    print(suite.summary())
    return 0 if suite.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
