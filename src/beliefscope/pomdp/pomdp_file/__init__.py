"""Cassandra's `.pomdp` files: a reader, a writer, and a few classics."""

from beliefscope.pomdp.pomdp_file.read import CLASSICS, HORIZON, classic, parse_pomdp, read_pomdp
from beliefscope.pomdp.pomdp_file.scan import PomdpFileError
from beliefscope.pomdp.pomdp_file.write import format_pomdp, write_pomdp

__all__ = [
    "CLASSICS",
    "HORIZON",
    "PomdpFileError",
    "classic",
    "format_pomdp",
    "parse_pomdp",
    "read_pomdp",
    "write_pomdp",
]
