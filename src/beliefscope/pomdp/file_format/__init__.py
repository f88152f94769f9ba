"""Cassandra's `.pomdp` files: a reader, a writer, and a few classics."""

from beliefscope.pomdp.file_format.classics import CLASSICS, classic
from beliefscope.pomdp.file_format.errors import PomdpFileError
from beliefscope.pomdp.file_format.reader import parse_pomdp, read_pomdp
from beliefscope.pomdp.file_format.writer import format_pomdp, write_pomdp

__all__ = ["CLASSICS", "PomdpFileError", "classic", "format_pomdp", "parse_pomdp", "read_pomdp", "write_pomdp"]
