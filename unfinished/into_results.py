"""Puts what `measure.sh` has packed into `results/`: `python unfinished/into_results.py RECORDS.tgz`.

It stops unless all pieces are there, and writes the tables, ledgers, coefficients, figures, manifests and networks of
the Mountain Hike and of `paper/generalisation`, the records of `beyond/best-bound`, and `results/paper`. Then
docs/results.md and the README are to be written by hand.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from beliefscope.claims import as_text, ledger
from beliefscope.report import write_report
from beliefscope.results import as_csv, read_table
from beliefscope.results.correlations import correlated, correlations_csv
from beliefscope.results.curves import panels
from beliefscope.store.files import read_record, write_record
from beliefscope.store.study_folder import StudyFolder

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
ENDS = ("0.eqx", "5000.eqx")


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


def pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:xz" if archive.suffix == ".txz" else "w:gz") as packed:
        for each in sorted(folder.iterdir()):
            packed.add(each, each.name)


def check(folder: Path) -> None:
    stored = StudyFolder(folder)
    left = {name: state for name, state in stored.states().items() if state != "done"}
    if left:
        sys.exit(f"{folder.name}: {len(left)} of {len(stored.pieces)} pieces are not done")
    for piece in stored.pieces:
        stored.check(piece)
    print(f"{folder.name}: all {len(stored.pieces)} pieces are there, and whole")


def write_tables(paths: list[Path], out: Path) -> None:
    table = read_table(paths)
    (out / "table.csv").write_text(as_csv(table), "utf-8")
    found = panels(table)
    (out / "claims.txt").write_text(as_text(ledger(found)), "utf-8")
    greedy = (panel for panel in found if (panel.memory, panel.epsilon) == ("hidden", 0.0))
    rows = [row for panel in greedy for row in correlated(panel)]
    (out / "correlations.csv").write_text(correlations_csv(rows), "utf-8")
    print(f"{out.name}: {len(table)} rows")


def add_figures(folder: Path, out: Path, pattern: str) -> None:
    write_report(folder, out=folder / "report")
    for figure in (folder / "report" / "figures").glob(pattern):
        if figure.suffix in (".svg", ".png"):
            shutil.copy(figure, out / "figures" / figure.name)


def add_manifest(folder: Path, out: Path) -> None:
    earlier, later = (read_record(each / "manifest.json")["calls"] for each in (out, folder))
    write_record(out / "manifest.json", {"calls": [*earlier, *later]})


def mountain_hike(folder: Path, work: Path) -> list[str]:
    """The names of the runs whose networks were measured."""
    out = RESULTS / "paper-mountain-hike"
    write_tables([folder], out)
    add_figures(folder, out, "*")
    add_manifest(folder, out)
    ends = unpack(out / "ends.tgz", work / "ends")
    runs = sorted(params.parent.name for params in folder.glob("runs/*/params"))
    for run in runs:
        for end in ENDS:
            shutil.copy(folder / "runs" / run / "params" / end, ends / "runs" / run / "params" / end)
    pack(ends, out / "ends.tgz")
    return runs


def generalisation(folders: list[Path]) -> None:
    out = RESULTS / "paper-generalisation"
    write_tables([out / "table.csv", *folders], out)
    for folder in folders:
        add_figures(folder, out, "epsilon-*")
        add_manifest(folder, out)


def best_bound(runs: list[str], trained: Path, work: Path) -> None:
    out = RESULTS / "beyond-best-bound"
    folder = unpack(out / "records.txz", work / "best-bound")
    for run in runs:
        shutil.rmtree(folder / "runs" / run)
        (folder / "runs" / run).mkdir()
        for name in ("metrics.jsonl", "spec.json", "trained.json"):
            shutil.copy(trained / "runs" / run / name, folder / "runs" / run / name)
    unpack(HERE / "best-bound.txz", folder)
    check(folder)
    (out / "table.csv").write_text(as_csv(read_table([folder])), "utf-8")
    pack(folder, out / "records.txz")


def main(records: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        measured = work / "measured"
        unpack(HERE / "networks.tar.xz", measured)
        unpack(records, measured)
        hike, *others = (measured / name for name in ("hike", "hike-epsilon", "varying-epsilon"))
        for folder in (hike, *others):
            check(folder)
        best_bound(mountain_hike(hike, work), hike, work)
        generalisation(others)
    for program in ("join", "beside_mine", "errors_in_common"):
        print(f"\n{program}.py")
        subprocess.run([sys.executable, RESULTS / f"{program}.py"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
