"""`Audit`: all that an audit found, for people, as a table, and on disk without pickle."""

import dataclasses
import html
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars

from beliefscope.auditing.codec import from_record, to_record
from beliefscope.information import Calibration, Decoding, DiscreteEntropy, Estimate, Ratio, StepShare, Sufficiency
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
class Audit:
    """How much of the belief an agent's memory holds, with all that helps to read that number."""

    agent: str
    environment: str
    pomdp: dict[str, Any]  # its description
    filter: str
    num_samples: int  # N, one step of each of so many episodes
    memory: tuple[str, ...]  # the parts that `sufficiency` and `bits` are about
    returns: Returns | None  # None where a log has no rewards
    sufficiency: Sufficiency
    parts: dict[str, Sufficiency]  # of each part of the memory alone, where it has several
    controls: dict[str, Sufficiency]  # observation, recent, shuffled, and untrained where a twin was given
    by_step: tuple[StepShare, ...]
    bits: Estimate | None  # with its shuffled control
    calibration: Calibration | None
    entropy: DiscreteEntropy | None  # H(b)
    decoders: dict[str, Decoding]
    sees_actions: bool | None  # does the memory depend on the actions that the agent is told of?
    impossible: float  # the share of pairs after an observation that the POMDP makes impossible
    checkpoints: tuple[Checkpoint, ...] = ()
    warnings: tuple[str, ...] = ()
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
        """A row for each number: quantity, of what, step or checkpoint, value, and its interval."""
        schema = {
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
        return cls(**{name: from_record(hint, record[name]) for name, hint in hints.items()}, traces=traces)

    def report(self, folder: str | Path) -> Path:
        """`save`, and beside it `report.html`: a page that needs no network, with the belief viewer."""
        from beliefscope.report.audit_page import audit_page

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
        }
        write_atomic(page, audit_page(record, pomdp=self.pomdp, traces=self.traces).encode())
        return page

    def _calibration_points(self) -> list[tuple[float, float]]:
        return [] if self.calibration is None else [(point.truth, point.read.bits) for point in self.calibration.points]

    def _rows(self) -> list[tuple[str, str]]:
        """All numbers for people: what they are, and what they say."""
        given, plain = self.sufficiency.given_time, self.sufficiency.plain
        rows = [("return", _return(self.returns))] if self.returns else []
        if given is not None:
            rows.append(("sufficiency, given the time", _share(given.best, given.available)))
        rows.append(("sufficiency, plain", _share(plain.best, plain.available)))
        rows += [(f"  of {name} alone", _headline(found)) for name, found in self.parts.items()]
        rows.append(
            (
                "  time alone (of plain)",
                "–" if self.sufficiency.time_alone is None else str(self.sufficiency.time_alone),
            )
        )
        rows += [(f"  {CONTROLS.get(name, name)}", _headline(found)) for name, found in self.controls.items()]
        shares = [step.share.value for step in self.by_step if step.share is not None]
        if shares:
            steps = [step.time for step in self.by_step if step.share is not None]
            least = int(np.argmin(shares))
            rows.append(
                (
                    "sufficiency at each step",
                    f"{shares[0]:.0%} at step {steps[0]}, {shares[-1]:.0%} at step {steps[-1]}, "
                    f"least {shares[least]:.0%} at step {steps[least]}",
                )
            )
        if self.bits is not None:
            rows.append(("bits, I(h; b)", str(self.bits)))
        if self.calibration is not None and self.bits is not None:
            rows.append(("  calibration in place", f"the estimator {self.calibration.sentence(self.bits.bits)}"))
        if self.entropy is not None:
            doubt = " (too low: too many distinct beliefs to count)" if self.entropy.flagged else ""
            rows.append(("H(b)", f"{self.entropy.bits:.2f} bits, {self.entropy.distinct} distinct beliefs{doubt}"))
        rows += [
            (f"{name} decoder", f"KL {found.kl:.3f} bits, without the memory {found.baseline_kl:.3f}")
            for name, found in self.decoders.items()
        ]
        seen = {True: "yes", False: "no", None: "not known"}[self.sees_actions]
        rows.append(("saw its own actions", seen))
        rows += [
            (
                f"checkpoint {each.at:g}",
                f"return {each.mean_return:.3f}, sufficiency {_ratio(each.own)} on its own "
                f"histories, {_ratio(each.last)} on the last one's",
            )
            for each in self.checkpoints
        ]
        return rows


CONTROLS = {
    "observation": "control: last observation",
    "recent": "control: last 8 steps",
    "shuffled": "control: shuffled",
    "untrained": "control: untrained twin, same histories",
}


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


def _numbers(audit: Audit) -> Any:
    """The rows of the table."""

    def ratio(quantity: str, of: str, found: Ratio | None, at: float | None = None) -> tuple:
        return (quantity, of, at, *(found or (None, None, None)))

    if audit.returns is not None:
        mean, error, most = audit.returns[:3]
        yield "return", "agent", None, mean, mean - 2 * error, mean + 2 * error
        yield "return", "maximal", None, most, None, None
    whole = {"memory": audit.sufficiency, **audit.parts, **audit.controls}
    for name, found in whole.items():
        if found.given_time is not None:
            yield ratio("sufficiency given time", name, found.given_time.best)
        yield ratio("sufficiency plain", name, found.plain.best)
    yield ratio("sufficiency plain", "time", audit.sufficiency.time_alone)
    for step in audit.by_step:
        yield ratio("sufficiency at step", "memory", step.share, float(step.time))
    if audit.bits is not None:
        yield "bits", "memory", None, audit.bits.bits, *(audit.bits.interval or (None, None))
        if audit.bits.shuffled is not None:
            yield "bits", "shuffled", None, audit.bits.shuffled.bits, None, None
    for point in audit.calibration.points if audit.calibration else ():
        yield "bits read of known information", "calibration", point.truth, point.read.bits, None, None
    if audit.entropy is not None:
        yield "H(b)", "belief", None, audit.entropy.bits, None, None
    for name, found in audit.decoders.items():
        yield "KL(b, decoded)", name, None, found.kl, None, None
    for each in audit.checkpoints:
        yield "return", "checkpoint", each.at, each.mean_return, None, None
        yield ratio("sufficiency given time", "checkpoint, own histories", each.own, each.at)
        yield ratio("sufficiency given time", "checkpoint, last histories", each.last, each.at)
