"""Files that outlive a crash: written whole or not at all, each with its checksum, by one process at a time."""

from beliefscope.storage.arrays import load_arrays, load_tree, save_arrays, save_tree
from beliefscope.storage.atomic import clear_unfinished, write_atomic
from beliefscope.storage.damaged import Damaged
from beliefscope.storage.lock import Busy, lock
from beliefscope.storage.sealed import read_lines, read_record, write_lines, write_record

__all__ = [
    "Busy",
    "Damaged",
    "clear_unfinished",
    "load_arrays",
    "load_tree",
    "lock",
    "read_lines",
    "read_record",
    "save_arrays",
    "save_tree",
    "write_atomic",
    "write_lines",
    "write_record",
]
