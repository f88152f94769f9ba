"""From what was found to a verdict: t-intervals over seeds, Holm's correction inside a claim, and its text.

A claim has parts. A part with a test holds if the stated sign was found and its two-sided p-value, after Holm's
correction over the tests of the claim, is below 0.05; other parts hold or do not, by a threshold. A claim holds if all
its parts hold, and does not if one with enough data fails. All stored numbers count. Where leaving out the checkpoints
whose fit failed changes whether a part holds, the claim shows it both ways; the verdict is that of all numbers.
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from beliefscope.claims.evidence import Evidence, Series, enough_of
from beliefscope.paper import CELLS
from beliefscope.results.correlations import Correlation
from beliefscope.results.curves import Quantity

_LEVEL = 0.95
NOT_MEASURED = "not measured"
OVER_SEEDS = "t-interval over seeds, Holm over the tests of the claim"
WELCH = "Welch's t-interval of the difference over seeds, Holm over the tests of the claim"
LEARNERS = ("GRU", "NBRC", "MGU")  # the cells that the paper does not say to fail
BOTH: tuple[tuple[str, Quantity], ...] = (("J", "return"), ("I", "bits"))

Outcome = Literal["holds", "does not hold", "not enough data"]
Sample = Sequence[float]


class Estimate(NamedTuple):
    """A mean or a difference of means with its 95 % interval, and the two-sided p-value of its being 0."""

    value: float
    low: float
    high: float
    p: float


class Part(NamedTuple):
    """One statement of a claim, and what was found."""

    name: str
    found: str
    enough: bool
    holds: bool | None = None  # None: a test decides, or nothing does
    p: float | None = None  # of a test; 1 where the sign is not the stated one


class Claim(NamedTuple):
    """What the paper says, where, the rule that decides, as text and as code, and remarks."""

    number: int
    statement: str
    where: str
    rule: str
    remark: str
    parts: Callable[[Evidence], list[Part]]


def claim(
    number: int, *, statement: str, where: str, rule: str, remark: str = ""
) -> Callable[[Callable[[Evidence], list[Part]]], Claim]:
    """Makes a claim of the function beneath it, which finds the parts of the claim in the evidence."""
    return lambda parts: Claim(number, statement, where, rule, remark, parts)


class Verdict(NamedTuple):
    """A claim, the findings for each part, and whether it holds."""

    number: int
    statement: str
    where: str
    rule: str
    numbers: dict[str, str | float]
    verdict: Outcome
    remark: str
    without_failed_fits: Mapping[str, str | float] = MappingProxyType({})  # of the parts that these decide

    @property
    def num_unknown(self) -> int:
        """Parts that were not measured."""
        return sum(found == NOT_MEASURED for found in self.numbers.values())


def mean_interval(values: Sample) -> Estimate:
    """Student's t-interval of a mean; values that are NaN are left out."""
    sample = _finite(values)
    if len(sample) < 2:
        return _lone(float(sample[0]) if len(sample) else math.nan)
    return _estimate(float(sample.mean()), float(sample.std(ddof=1)) / math.sqrt(len(sample)), len(sample) - 1)


def difference_interval(upper: Sample, lower: Sample) -> Estimate:
    """Welch's t-interval of the difference of the means of two samples."""
    one, other = _finite(upper), _finite(lower)
    if not len(one) or not len(other):
        return _lone(math.nan)
    value = float(one.mean() - other.mean())
    if min(len(one), len(other)) < 2:
        return _lone(value)
    a, b = (float(sample.var(ddof=1)) / len(sample) for sample in (one, other))
    spread = a**2 / (len(one) - 1) + b**2 / (len(other) - 1)
    freedom = (a + b) ** 2 / spread if spread > 0 else math.inf
    return _estimate(value, math.sqrt(a + b), freedom)


def correlation_interval(found: Correlation) -> Estimate:
    """A correlation, with the p-value that belongs to its interval: t on Fisher's z."""
    if not math.isfinite(found.low + found.high):
        return _lone(found.value)
    z, low, high = (math.atanh(min(max(each, -1 + 1e-12), 1 - 1e-12)) for each in (found.value, found.low, found.high))
    freedom = found.num_runs - 1
    error = (high - low) / 2 / float(stats.t.ppf((1 + _LEVEL) / 2, freedom))
    return Estimate(found.value, found.low, found.high, _estimate(z, error, freedom).p)


def holm(p_values: Sample) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def two_means(values: Float[np.ndarray, " points"]) -> float:
    """The threshold between the two groups of least squared distance to their means: the upper one lies above it; NaN
    if all values are equal."""
    ordered = np.sort(values)
    cuts = np.flatnonzero(np.diff(ordered) > 0) + 1
    if not len(cuts):
        return math.nan
    total = np.cumsum(ordered)
    below, above = total[cuts - 1] / cuts, (total[-1] - total[cuts - 1]) / (len(ordered) - cuts)
    between = cuts * (len(ordered) - cuts) * (above - below) ** 2
    cut = int(cuts[np.argmax(between)])
    return float((ordered[cut - 1] + ordered[cut]) / 2)


def ashman_d(one: Float[np.ndarray, " one"], other: Float[np.ndarray, " other"]) -> float:
    """Ashman's D = √2 |μ₁ − μ₂| / √(σ₁² + σ₂²): above 2, two groups are apart."""
    if not len(one) or not len(other):
        return math.nan
    spread = math.sqrt(float(one.var() + other.var()))
    distance = math.sqrt(2) * abs(float(one.mean() - other.mean()))
    return distance / spread if spread > 0 else math.inf if distance > 0 else math.nan


def tested(name: str, found: Estimate, *, sign: Literal[1, -1], enough: bool) -> Part:
    """A part that says that something is above (1) or below (−1) zero."""
    if math.isnan(found.value):
        return missing(name)
    right = sign * found.value > 0
    return Part(name, shown(found), enough and not math.isnan(found.p), p=found.p if right else 1.0)


def settled(name: str, found: str, *, holds: bool, enough: bool) -> Part:
    """A part that a threshold decides."""
    return Part(name, found, enough, holds=holds)


def recorded(name: str, found: str) -> Part:
    """A number that is shown and decides nothing."""
    return Part(name, found, enough=True)


def missing(name: str) -> Part:
    """A part without data."""
    return Part(name, NOT_MEASURED, enough=False, holds=False)


def without_verdict(found: Mapping[str, Estimate]) -> list[Part]:
    """Numbers without a verdict, where there are any."""
    return [recorded(name, shown(each)) for name, each in found.items() if not math.isnan(each.value)]


def shown(found: Estimate) -> str:
    """The value and, where there is one, its interval."""
    interval = "" if math.isnan(found.low) else f" [{found.low:.4g}, {found.high:.4g}]"
    return f"{found.value:.4g}{interval}"


def compared(
    series: Mapping[str, Series], upper: str, lower: str, of: tuple[str, Quantity], *, environment: str
) -> Part:
    """Is the final value of one cell above that of another?"""
    symbol, what = of
    found = difference_interval(series[upper].finals(what), series[lower].finals(what))
    enough = series[upper].enough and series[lower].enough
    return tested(f"{environment}: final {symbol}, {upper} − {lower}", found, sign=1, enough=enough)


def lstm_lowest(series: Mapping[str, Series], name: str) -> Part:
    """Is LSTM's mean final information the lowest?"""
    means = {cell: mean_interval(each.finals("bits")).value for cell, each in series.items()}
    known = {cell: value for cell, value in means.items() if not math.isnan(value)}
    if not known:
        return missing(name)
    found = ", ".join(f"{cell} {value:.4g}" for cell, value in known.items())
    holds = len(known) == len(CELLS) and all(known["LSTM"] < value for cell, value in known.items() if cell != "LSTM")
    return settled(name, found, holds=holds, enough=enough_of(series))


def judge(claim: Claim, evidence: Evidence) -> Verdict:
    """The verdict on a claim; where failed fits decide a part of it, with and without them."""
    (verdict, outcomes), (other, without) = _judged(claim, evidence), _judged(claim, evidence.without_failed_fits())
    changed = [name for name in outcomes if without[name] != outcomes[name]]
    if not changed:
        return verdict
    remark = f"{verdict.remark} Without the checkpoints whose fit failed: {other.verdict}."
    return verdict._replace(remark=remark, without_failed_fits={name: other.numbers[name] for name in changed})


def _judged(claim: Claim, evidence: Evidence) -> tuple[Verdict, dict[str, Outcome | None]]:
    """From all parts of the claim, and what was found of each."""
    evidence = evidence.afresh()
    parts, remark = claim.parts(evidence), " ".join(filter(None, [claim.remark, *evidence.remarks]))
    with_test = [part for part in parts if part.enough and part.p is not None]
    adjusted = dict(zip([part.name for part in with_test], holm([part.p or 0.0 for part in with_test]), strict=True))
    outcomes: dict[str, Outcome | None] = {part.name: _outcome(part, adjusted.get(part.name)) for part in parts}
    decided = [outcome for outcome in outcomes.values() if outcome is not None]
    numbers: dict[str, str | float] = {part.name: _number(part, outcomes[part.name], adjusted) for part in parts}
    verdict: Outcome = "not enough data"
    if "does not hold" in decided:
        verdict = "does not hold"
    elif decided and set(decided) == {"holds"}:
        verdict = "holds"
    counted = f"{decided.count('holds')} of {len(decided)} parts hold, {decided.count('does not hold')} do not."
    remark = " ".join(filter(None, [counted, remark]))
    return Verdict(*claim[:4], numbers=numbers, verdict=verdict, remark=remark), outcomes


def known_numbers(verdict: Verdict) -> list[tuple[str, str]]:
    """The findings for each part that was measured; of parts that failed fits decide, also without these."""
    found = [(name, str(each)) for name, each in verdict.numbers.items() if each != NOT_MEASURED]
    return found + [(f"without failed fits, {name}", str(each)) for name, each in verdict.without_failed_fits.items()]


def as_text(verdicts: Sequence[Verdict]) -> str:
    """The ledger for a terminal; parts that were not measured are counted, not listed."""
    return "\n\n".join(map(_as_text, verdicts)) + "\n"


def _as_text(verdict: Verdict) -> str:
    lines = _wrapped(f"{verdict.number}. {verdict.statement} ({verdict.where})", first="", others="   ")
    lines += _wrapped(f"Rule: {verdict.rule}", first="   ", others="   ")
    lines += [f"   - {name}: {found}" for name, found in known_numbers(verdict)]
    if verdict.num_unknown:
        lines.append(f"   - {NOT_MEASURED}: {verdict.num_unknown} of {len(verdict.numbers)} parts")
    return "\n".join(lines + _wrapped(f"=> {verdict.verdict}. {verdict.remark}", first="   ", others="      "))


def _wrapped(text: str, *, first: str, others: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def _outcome(part: Part, adjusted: float | None) -> Outcome | None:
    """None for what is only recorded."""
    if part.holds is None and part.p is None:
        return None
    if not part.enough:
        return "not enough data"
    holds = adjusted < 1 - _LEVEL if adjusted is not None else part.holds
    return "holds" if holds else "does not hold"


def _number(part: Part, outcome: Outcome | None, adjusted: dict[str, float]) -> str:
    if outcome is None or part.found == NOT_MEASURED:
        return part.found
    p = f", p = {adjusted[part.name]:.2g} (Holm)" if part.name in adjusted else ""
    return f"{part.found}{p}: {outcome}"


def _estimate(value: float, error: float, freedom: int | float) -> Estimate:
    # Seeds that are equal but for rounding leave no doubt.
    if error <= 1e-12 * max(1.0, abs(value)):
        return Estimate(value, value, value, 0.0 if abs(value) > 1e-9 else 1.0)
    reach = float(stats.t.ppf((1 + _LEVEL) / 2, freedom)) * error
    return Estimate(value, value - reach, value + reach, 2 * float(stats.t.sf(abs(value) / error, freedom)))


def _lone(value: float) -> Estimate:
    return Estimate(value, math.nan, math.nan, math.nan)


def _finite(values: Sample) -> Float[np.ndarray, " kept"]:
    sample = np.asarray(values, float)
    return sample[np.isfinite(sample)]
