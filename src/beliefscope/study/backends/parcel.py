"""The files that travel between the study's folder and a task's: what pieces need, and what has changed since.

A parcel has contents by names relative to the folder, in an order in which they can be written one by one: a state to
resume from comes after its metrics and networks, a training's end after everything.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from beliefscope.storage import write_atomic
from beliefscope.study.piece import Piece

Parcel = dict[str, bytes]
_LAST = ("metrics.jsonl", "resume.eqx", "failed.json", "trained.json")  # in this order


def needed(pieces: Sequence[Piece], folder: Path) -> Parcel:
    """What the pieces read, as far as it is there, their results included."""
    files = [file for piece in pieces for file in (_description(piece, folder), *_inputs(piece, folder))]
    return _packed([*files, *_results(pieces, folder)], folder)


def unpack(parcel: Parcel, folder: Path) -> None:
    for name, content in parcel.items():
        write_atomic(folder / name, content)


class Changes:
    """Of the files that the pieces leave: those that are new or other than when last asked."""

    def __init__(self, pieces: Sequence[Piece], folder: Path):
        self._pieces, self._folder = pieces, folder
        self._seen: dict[Path, tuple[int, int]] = {}
        self._new()

    def take(self) -> Parcel:
        return _packed(self._new(), self._folder)

    def _new(self) -> list[Path]:
        there = {file: _version(file) for file in _results(self._pieces, self._folder)}
        new = [file for file, version in there.items() if self._seen.get(file) != version]
        self._seen = there
        return new


def _version(file: Path) -> tuple[int, int]:
    """Another one after every atomic write."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def _packed(files: Iterable[Path], folder: Path) -> Parcel:
    there = sorted({file for file in files if file.is_file()}, key=lambda file: (_rank(file), file))
    return {str(file.relative_to(folder)): file.read_bytes() for file in there}


def _rank(file: Path) -> int:
    return _LAST.index(file.name) if file.name in _LAST else -1


def _description(piece: Piece, folder: Path) -> Path:
    return folder / "runs" / piece.run / "spec.json"


def _inputs(piece: Piece, folder: Path) -> list[Path]:
    """The networks: that of the checkpoint, and for controls the first."""
    episodes = [] if piece.episode is None else [piece.episode, *([0] if piece.controls else [])]
    return [folder / "runs" / piece.run / "params" / f"{episode}.eqx" for episode in episodes]


def _results(pieces: Sequence[Piece], folder: Path) -> Iterator[Path]:
    """Those that are there."""
    for piece in pieces:
        run = folder / "runs" / piece.run
        left = [*run.glob("params/[0-9]*.eqx"), *(run / name for name in _LAST)] if piece.kind == "train" else []
        yield from (file for file in (*left, piece.result(folder)) if file.is_file())
