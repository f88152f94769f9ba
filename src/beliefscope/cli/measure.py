"""`beliefscope measure`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import tyro

from beliefscope.agent.run_folder import RunFolder
from beliefscope.agent.stored_spec import read_spec
from beliefscope.errors import require
from beliefscope.information import Ratio
from beliefscope.measurement import MeasurementSpec, measure
from beliefscope.measurement.doubts import stored_warnings
from beliefscope.measurement.measurement_spec import asked_estimator


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasurementOptions(MeasurementSpec):
    """How memory and belief are compared; the defaults are the paper's."""

    def __post_init__(self):
        """Checked by `build_spec`, where an error can be told."""

    def build_spec(self) -> MeasurementSpec:
        spec = MeasurementSpec(**dataclasses.asdict(self))
        return dataclasses.replace(spec, estimator=asked_estimator(spec.estimator))  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class MeasureCommand:
    """Measure how much of the belief the memory of a trained run holds, checkpoint by checkpoint.

    The defaults are the paper's: MINE on 10,000 pairs, particle sets of 1,000. Measured checkpoints are kept in
    RUN/measure, and the same command goes on with the others. The first, middle and last also get the controls.
    beliefscope measure runs/first/runs/0123456789abcdef
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(name="run", metavar="RUN")]
    """The folder of a trained run, DIR/runs/<id>."""
    measurement: MeasurementOptions
    episodes: tuple[int, ...] = ()
    """Only the networks after so many episodes; by default all that are stored."""
    file: Path | None = None
    """The .pomdp file, if the run was trained on one."""

    def run(self) -> int:
        asked, spec = self.measurement.build_spec(), read_spec(self.run_folder, file=self.file)
        folder = self.run_folder.resolve().parent.parent
        require(
            RunFolder(folder, spec).path == self.run_folder.resolve(),
            rule=f"the folder of this run is named runs/{spec.id}",
            received=str(self.run_folder),
            advice="give it back its name",
        )
        for record in measure(RunFolder(folder, spec), asked, episodes=self.episodes or None):
            print(_line(record))
        return 0


def _line(record: dict[str, Any]) -> str:
    """One checkpoint: its return, then of each part of the belief what was measured, and what makes it doubtful."""
    say = _share if record["estimator"] == "sufficiency" else _bits
    parts = [f"{name} {say(record[name])}" for name in ("belief", "relevant", "irrelevant") if name in record]
    return f"episode {record['episode']}: return {record['return']:.4f}, {'; '.join(parts)}"


def _bits(found: dict[str, Any]) -> str:
    """What was shared, of how much, and what time alone shares."""
    entropy = found["entropy"]
    of = f" of {entropy['bits']:.2f}" if entropy is not None and not entropy["flagged"] else ""
    time = f", time alone {found['controls']['time']['bits']:.2f}" if "controls" in found else ""
    given = f", given time {found['given time']:.2f}" if "controls" in found else ""
    warnings = "".join(f" (warning: {warning})" for warning in stored_warnings(found, None))
    return f"{found['bits']:.2f} ± {found['standard_error']:.2f}{of} bits{time}{given}{warnings}"


def _share(found: dict[str, Any]) -> str:
    """Sufficiency on the policy's own histories and on the last policy's, and what the atoms bound proves."""

    def ratio(measured: dict[str, Any]) -> str:
        given = measured["given_time"]
        return str(Ratio(*given["best"])) if given["best"] else f"no share of {given['available']:.2f} bits"

    atoms = f", at least {found['atoms']['bits']:.2f} bits of I(h; b)" if found["atoms"] else ""
    warnings = "".join(f" (warning: {warning})" for warning in found["own"]["warnings"])
    return f"sufficiency {ratio(found['own'])}, on the last policy's histories {ratio(found['last'])}{atoms}{warnings}"
