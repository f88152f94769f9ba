"""Where results come from: the runs of one or several study folders, each run once.

Studies share runs, and a study may be done in parts, in several folders. A run that is in two folders counts once, with
the pieces of both. If both have the same piece, or have trained the run, they must agree.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from beliefscope.store.files import Damaged, Record, read_record
from beliefscope.store.layout import RunFiles, is_file
from beliefscope.store.pieces import Piece, Run
from beliefscope.store.study_folder import StudyFolder, read_measurement, read_returns, read_trained


class Source(NamedTuple):
    """A run, and where its files lie."""

    run: Run
    files: RunFiles  # of its training
    done: dict[str, Path]  # the result of each piece that is done, by its name

    @property
    def is_trained(self) -> bool:
        return is_file(self.files.trained)

    def returns(self) -> dict[int, float | None]:
        """Ĵ by episode."""
        return read_returns(self.files)

    def measurement(self, piece: Piece) -> Record:
        return read_measurement(piece, self.done[piece.name])


def sources_of(folders: Sequence[StudyFolder]) -> list[Source]:
    """Every run of the folders once, in the order of its first appearance."""
    found: dict[str, Source] = {}
    for folder in folders:
        for run in folder.runs:
            done = {piece.name: piece.result(folder.path) for piece in run.pieces if folder.is_done(piece)}
            source = Source(run, folder.files.run(run.id), done)
            found[run.id] = _united(found[run.id], source) if run.id in found else source
    return list(found.values())


def _united(first: Source, second: Source) -> Source:
    shared = (piece for piece in first.run.pieces if piece.name in first.done.keys() & second.done.keys())
    for piece in shared:
        _check_agreement(piece.title, first.done[piece.name], second.done[piece.name], piece)
    names = {piece.name for piece in first.run.pieces}
    pieces = [*first.run.pieces, *(piece for piece in second.run.pieces if piece.name not in names)]
    files = first.files if first.is_trained or not second.is_trained else second.files
    return Source(first.run._replace(pieces=pieces), files, {**second.done, **first.done})


def _check_agreement(title: str, one: Path, other: Path, piece: Piece) -> None:
    """Traces are not compared: they are drawn and not counted."""
    if piece.kind == "trace":
        return
    try:
        alike = _content(one, piece) == _content(other, piece)
    except Damaged:  # whoever reads it says so
        return
    if not alike:
        raise ValueError(
            f"folders that hold the same piece hold the same result, but {title!r} differs between {one} and {other}; "
            "leave out one of the folders."
        )


def _content(file: Path, piece: Piece) -> object:
    """The content of a record, without the versions it was made with."""
    if piece.kind == "train":
        return read_trained(file)["files"].get("metrics.jsonl")
    return {name: value for name, value in read_record(file).items() if name != "made_with"}


def all_pieces(sources: Iterable[Source]) -> list[Piece]:
    return [piece for source in sources for piece in source.run.pieces]
