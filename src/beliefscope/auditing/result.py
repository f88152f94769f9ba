"""`Audit`: all that an audit found, for people, as a table, and on disk without pickle.

Records become JSON and come back by the types that their fields are annotated with.
"""

import dataclasses
import html
import math
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
import polars

from beliefscope.information import (
    BestBoundEstimate,
    Calibration,
    Decoding,
    DiscreteEntropy,
    Ratio,
    StepShare,
    Sufficiency,
)
from beliefscope.interventions import Score, Use
from beliefscope.store import load_arrays, made_with, read_record, save_arrays, write_atomic, write_record

SCHEMA = 1
_RECORD, _TRACE, _PAGE = "audit.json", "trace{}.npz", "report.html"


class Returns(NamedTuple):
    """Discounted returns of the audited episodes beside the most that any agent can expect."""

    mean: float
    standard_error: float
    maximal: float | None
    exact: bool | None  # else `maximal` is a bound that no agent reaches for sure


class Checkpoint(NamedTuple):
    """One agent of several along training."""

    at: float  # episodes, steps, or whatever the checkpoints are numbered by
    mean_return: float
    own: Ratio | None  # sufficiency given the time on its own histories
    last: Ratio | None  # on those of the last checkpoint, which it reads without acting


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What the memory holds of the belief, or of one part of it where it has parts."""

    sufficiency: Sufficiency
    parts: dict[str, Sufficiency]  # of each part of the memory alone, where it has several
    controls: dict[str, Sufficiency]  # observation, recent, shuffled, and untrained where a twin was given
    by_step: tuple[StepShare, ...]
    bits: BestBoundEstimate | None  # with its shuffled control
    calibration: Calibration | None
    entropy: DiscreteEntropy | None  # H(b)
    decoders: dict[str, Decoding]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Audit(Measured):
    """How much of the belief an agent's memory holds, with all that helps to read that number.

    Where the POMDP has irrelevant variables, the inherited numbers are about the relevant part of the belief.
    """

    agent: str
    environment: str
    pomdp: dict[str, Any]  # its description
    filter: str
    num_samples: int  # N, one step of each of so many episodes
    memory: tuple[str, ...]  # the parts that `sufficiency` and `bits` are about
    returns: Returns | None  # None where a log has no rewards
    sees_actions: bool | None  # does the memory depend on the actions that the agent is told of?
    impossible: float  # the share of pairs after an observation that the POMDP makes impossible
    checkpoints: tuple[Checkpoint, ...] = ()
    warnings: tuple[str, ...] = ()
    irrelevant: Measured | None = None  # the same of the irrelevant variables, where there are some
    use: Use | None = None  # what interventions did, where they were asked for and the memory can be set
    use_before: Use | None = None  # to the untrained twin, or without one to the first checkpoint
    traces: dict[str, dict[str, np.ndarray]] = dataclasses.field(default_factory=dict)  # for the viewer, by agent

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.agent} in {self.environment}, N = {self.num_samples}",
                *map(_line, self._rows()),
                *(f"  warning: {warning}" for warning in self.warnings),
            ]
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr style='text-align:left'><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>"
            for name, text in self._rows()
        )
        notes = "".join(f"<p>{html.escape(warning)}</p>" for warning in self.warnings)
        title = html.escape(f"{self.agent} in {self.environment}, N = {self.num_samples}")
        return f"<table><caption>{title}</caption>{rows}</table>{notes}"

    def table(self) -> polars.DataFrame:
        """A row for each number: which part of the belief, quantity, of what, step or checkpoint, value, interval."""
        schema = {
            "part": polars.String,
            "quantity": polars.String,
            "of": polars.String,
            "at": polars.Float64,
            "value": polars.Float64,
            "low": polars.Float64,
            "high": polars.Float64,
        }
        return polars.DataFrame(list(_numbers(self)), schema, orient="row")

    def save(self, folder: str | Path) -> Path:
        """Write `audit.json` and the traces into the folder, which is made if it is not there."""
        folder = Path(folder)
        fields = {name.name: getattr(self, name.name) for name in dataclasses.fields(self) if name.name != "traces"}
        about = {"schema": SCHEMA, "made_with": made_with(), "traces": list(self.traces)}
        for place, arrays in enumerate(self.traces.values()):
            save_arrays(folder / _TRACE.format(place), arrays)
        write_record(folder / _RECORD, about | {name: to_record(value) for name, value in fields.items()})
        return folder / _RECORD

    @classmethod
    def load(cls, folder: str | Path) -> "Audit":
        """What `save` wrote. Nothing is unpickled."""
        folder = Path(folder)
        record = read_record(folder / _RECORD)
        traces = {name: load_arrays(folder / _TRACE.format(place)) for place, name in enumerate(record["traces"])}
        hints = {field.name: field.type for field in dataclasses.fields(cls) if field.name != "traces"}
        known = {name: from_record(hint, record[name]) for name, hint in hints.items() if name in record}
        return cls(**known, traces=traces)

    def report(self, folder: str | Path) -> Path:
        """`save`, and beside it `report.html`: a page that needs no network, with the belief viewer."""
        from beliefscope.report.page import audit_page

        self.save(folder)
        page = Path(folder) / _PAGE
        record = {
            "title": f"{self.agent} in {self.environment}",
            "num_samples": self.num_samples,
            "environment": self.environment,
            "rows": self._rows(),
            "warnings": list(self.warnings),
            "by_step": [(step.time, step.share, step.available, step.number) for step in self.by_step],
            "checkpoints": [tuple(each) for each in self.checkpoints],
            "calibration": self._calibration_points(),
            "use": [(name, str(use).splitlines(), use.as_dict()) for name, use in self.uses()],
        }
        write_atomic(page, audit_page(record, pomdp=self.pomdp, traces=self.traces).encode())
        return page

    def uses(self) -> list[tuple[str, Use]]:
        """What interventions did, by whose memory it was."""
        found = (("agent", self.use), ("before training", self.use_before))
        return [(name, use) for name, use in found if use is not None]

    def _calibration_points(self) -> list[tuple[float, float]]:
        return [] if self.calibration is None else [(point.truth, point.read.bits) for point in self.calibration.points]

    def _rows(self) -> list[tuple[str, str]]:
        """All numbers for people: what they are, and what they say."""
        rows = [("return", _return(self.returns))] if self.returns else []
        if self.irrelevant is None:
            rows += _rows_of(self)
        else:
            rows += [("of the relevant belief", ""), *_rows_of(self)]
            rows += [("of the irrelevant belief", ""), *_rows_of(self.irrelevant)]
        rows.append(("saw its own actions", {True: "yes", False: "no", None: "not known"}[self.sees_actions]))
        rows += [
            (
                f"checkpoint {each.at:g}",
                f"return {each.mean_return:.3f}, sufficiency {_ratio(each.own)} on its own "
                f"histories, {_ratio(each.last)} on the last one's",
            )
            for each in self.checkpoints
        ]
        rows += [row for name, use in self.uses() for row in _rows_of_use(name, use)]
        return rows


CONTROLS = {
    "observation": "control: last observation",
    "recent": "control: last 8 steps",
    "shuffled": "control: shuffled",
    "untrained": "control: untrained twin, same histories",
}


def _rows_of(found: Measured) -> list[tuple[str, str]]:
    given, plain, alone = found.sufficiency.given_time, found.sufficiency.plain, found.sufficiency.time_alone
    rows = [] if given is None else [("sufficiency, given the time", _share(given.best, given.available))]
    rows.append(("sufficiency, plain", _share(plain.best, plain.available)))
    rows += [(f"  of {name} alone", _headline(part)) for name, part in found.parts.items()]
    rows.append(("  time alone (of plain)", _ratio(alone)))
    rows += [(f"  {CONTROLS.get(name, name)}", _headline(control)) for name, control in found.controls.items()]
    shares = [(step.share.value, step.time) for step in found.by_step if step.share is not None]
    if shares:
        (first, start), (last, end), (least, there) = shares[0], shares[-1], min(shares)
        where = f"{first:.0%} at step {start}, {last:.0%} at step {end}, least {least:.0%} at step {there}"
        rows.append(("sufficiency at each step", where))
    if found.bits is not None:
        rows.append(("bits, I(h; b)", str(found.bits)))
    if found.calibration is not None and found.bits is not None:
        rows.append(("  calibration in place", f"the estimator {found.calibration.sentence(found.bits.bits)}"))
    if found.entropy is not None:
        doubt = " (too low: too many distinct beliefs to count)" if found.entropy.flagged else ""
        rows.append(("H(b)", f"{found.entropy.bits:.2f} bits, {found.entropy.distinct} distinct beliefs{doubt}"))
    rows += [
        (f"{name} decoder", f"KL {decoded.kl:.3f} bits, without the memory {decoded.baseline_kl:.3f}")
        for name, decoded in found.decoders.items()
    ]
    return rows


def _rows_of_use(name: str, use: Use) -> list[tuple[str, str]]:
    """The verdict and what it rests on; the page and `str(audit.use)` have all of it."""
    rows = [
        (f"is it used? {name}", use.verdict),
        ("  linear decoder, beyond t and o_t", _score(use.readable)),
    ]
    top = max((swap.rank for swap in use.swaps if swap.rank is not None), default=None)
    told = (("whole memory", "whole", None), ("belief directions", "belief", top), ("random directions", "random", top))
    for words, kind, rank in told:
        swap = use.swap(kind, rank)
        if swap is not None:
            rows.append((f"  decides as the donor: {'' if rank is None else f'{rank} '}{words}", _score(swap.follow)))
    return rows


def _score(found: Score | None) -> str:
    return "–" if found is None else str(Ratio(*found))


def _line(row: tuple[str, str]) -> str:
    return f"  {row[0]:<44} {row[1]}"


def _ratio(found: Ratio | None) -> str:
    return "–" if found is None else str(found)


def _share(found: Ratio | None, available: float) -> str:
    return f"no share of {available:.2f} bits" if found is None else f"{found} of {available:.2f} bits"


def _headline(found: Sufficiency) -> str:
    reading = found.given_time or found.plain
    return _share(reading.best, reading.available)


def _return(found: Returns) -> str:
    most = "" if found.maximal is None else f", the most is {'' if found.exact else 'at most '}{found.maximal:.3f}"
    return f"{found.mean:.3f} ± {found.standard_error:.3f}{most}"


def _numbers(audit: Audit) -> Iterator[tuple]:
    """The rows of the table; parts of the belief are called as in the table of a study."""
    first = "belief" if audit.irrelevant is None else "relevant"
    if audit.returns is not None:
        mean, error, most = audit.returns[:3]
        yield None, "return", "agent", None, mean, mean - 2 * error, mean + 2 * error
        yield None, "return", "maximal", None, most, None, None
    yield from ((first, *row) for row in _numbers_of(audit))
    if audit.irrelevant is not None:
        yield from (("irrelevant", *row) for row in _numbers_of(audit.irrelevant))
    for each in audit.checkpoints:
        yield None, "return", "checkpoint", each.at, each.mean_return, None, None
        yield first, *_shared("sufficiency given time", "checkpoint, own histories", each.own, each.at)
        yield first, *_shared("sufficiency given time", "checkpoint, last histories", each.last, each.at)
    for name, use in audit.uses():
        yield from _numbers_of_use(name, use)


def _numbers_of(found: Measured) -> Iterator[tuple]:
    for name, each in {"memory": found.sufficiency, **found.parts, **found.controls}.items():
        if each.given_time is not None:
            yield _shared("sufficiency given time", name, each.given_time.best)
        yield _shared("sufficiency plain", name, each.plain.best)
    yield _shared("sufficiency plain", "time", found.sufficiency.time_alone)
    for step in found.by_step:
        yield _shared("sufficiency at step", "memory", step.share, float(step.time))
    if found.bits is not None:
        yield "bits", "memory", None, found.bits.bits, *(found.bits.interval or (None, None))
        if found.bits.shuffled is not None:
            yield "bits", "shuffled", None, found.bits.shuffled.bits, None, None
    for point in found.calibration.points if found.calibration else ():
        yield "bits read of known information", "calibration", point.truth, point.read.bits, None, None
    if found.entropy is not None:
        yield "H(b)", "belief", None, found.entropy.bits, None, None
    for name, decoded in found.decoders.items():
        yield "KL(b, decoded)", name, None, decoded.kl, None, None


def _numbers_of_use(name: str, use: Use) -> Iterator[tuple]:
    """Every score of the interventions; `at` is the rank or the dose."""
    from beliefscope.report.use import scores_of

    for (kind, rank, dose, score), found in scores_of(use.as_dict()):
        yield "belief", f"use: {score}", f"{name}, {kind}", rank if dose is None else dose, *found


def _shared(quantity: str, of: str, found: Ratio | None, at: float | None = None) -> tuple:
    return (quantity, of, at, *(found or (None, None, None)))


def to_record(value: Any) -> Any:
    """Named tuples and dataclasses become dictionaries, tuples lists, and what is not finite text."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        return [to_record(each) for each in value.tolist()]
    if dataclasses.is_dataclass(value):
        return {field.name: to_record(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: to_record(getattr(value, name)) for name in value._fields}  # pyright: ignore
    if isinstance(value, dict):
        return {str(name): to_record(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_record(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no record")


def from_record(hint: Any, record: Any) -> Any:
    """The value that `to_record` was given, of the annotated type; entries that a class does not know are left out."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or record is None:
        return record
    if origin in (Union, types.UnionType):
        return from_record(next(each for each in inner if each is not type(None)), record)
    if origin is dict:
        return {name: from_record(inner[1], each) for name, each in record.items()}
    if origin is tuple:
        kinds = [inner[0]] * len(record) if inner[1:] == (...,) else inner
        return tuple(from_record(kind, each) for kind, each in zip(kinds, record, strict=True))
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        kinds = get_type_hints(hint)
        return hint(**{name: from_record(kinds[name], each) for name, each in record.items() if name in kinds})
    if hint is float:
        return float(record)
    if hint in (int, str, bool):
        return hint(record)
    return np.asarray(record, float)  # an array
