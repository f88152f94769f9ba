"""What is on disk: how files are written and read, where they lie, what they hold. Reading them needs no JAX.

A file is written whole or not at all, carries its checksum, and is written by one process at a time.
"""

from beliefscope.store.files import (
    Busy,
    Damaged,
    Record,
    clear_unfinished,
    load_arrays,
    load_tree,
    lock,
    read_lines,
    read_record,
    save_arrays,
    save_tree,
    write_atomic,
    write_lines,
    write_record,
)
from beliefscope.store.layout import RunFiles, StudyFiles, is_file
from beliefscope.store.manifest import made_with, write_manifest
from beliefscope.store.pieces import MeasurementSpec, Piece, Run
from beliefscope.store.study_folder import StudyFolder

__all__ = [
    "Busy",
    "Damaged",
    "MeasurementSpec",
    "Piece",
    "Record",
    "Run",
    "RunFiles",
    "StudyFiles",
    "StudyFolder",
    "clear_unfinished",
    "is_file",
    "load_arrays",
    "load_tree",
    "lock",
    "made_with",
    "read_lines",
    "read_record",
    "save_arrays",
    "save_tree",
    "write_atomic",
    "write_lines",
    "write_manifest",
    "write_record",
]
