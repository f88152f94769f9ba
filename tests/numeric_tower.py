"""The check of types at run time, for which an int is a float too, as it is for Pyright (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
