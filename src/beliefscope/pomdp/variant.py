"""The two readings of the paper: `text`, as printed, and `code`, as the authors' public code has it."""

from typing import Literal, get_args

from beliefscope.errors import require

Variant = Literal["text", "code"]


def check_variant(variant: str) -> None:
    """Refuse anything but the two variants."""
    require(
        variant in get_args(Variant),
        rule="a variant of the paper is 'text' or 'code'",
        received=variant,
        advice="choose 'text' for the paper as printed",
    )
