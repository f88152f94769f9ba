"""`beliefscope measure`."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from beliefscope.agent.run_folder import RunFolder
from beliefscope.agent.stored_spec import read_spec
from beliefscope.errors import require
from beliefscope.information import Ratio
from beliefscope.measurement import measure
from beliefscope.pomdp import label_of
from beliefscope.store import MeasurementSpec, RunFiles, StudyFiles, StudyFolder, is_file
from beliefscope.store.measurement_spec import asked_estimator
from beliefscope.store.pieces import run_label
from beliefscope.warning_signs import stored_warnings

_SHOWN = 12  # checkpoints that are written out


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
    DIR/runs/<id>/measure, and the same command goes on with the others. The first, middle and last also get the
    controls. `beliefscope report DIR` shows them all.
    beliefscope measure runs/first
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """The folder of trained runs, or that of one of them, DIR/runs/<id>."""
    measurement: MeasurementOptions
    episodes: tuple[int, ...] = ()
    """Only the networks after so many episodes; by default all that are stored."""
    file: Path | None = None
    """The .pomdp file of a run that an older version trained on one and that has none stored with it."""

    def run(self) -> int:
        asked = self.measurement.build_spec()
        runs = sorted((self._run(path) for path in self._paths()), key=lambda run: run.spec.seed)
        for run in runs:
            print(_about(run), flush=True)
            for record in measure(run, asked, episodes=self.episodes or None):
                print(_line(record), flush=True)
        print(f"to look at it: {shlex.join(['beliefscope', 'report', str(_study_of(self.folder))])}")
        return 0

    def _paths(self) -> list[Path]:
        """The folders of the runs."""
        if is_file(RunFiles(self.folder).spec):
            return [self.folder]
        return [files.folder for files in StudyFiles(self.folder).runs()] or [self.folder]

    def _run(self, path: Path) -> RunFolder:
        spec = read_spec(path, file=self.file)
        run = RunFolder(_study_of(path.resolve()), spec)
        require(
            run.path == path.resolve(),
            rule=f"the folder of this run is named runs/{spec.id}",
            received=str(path),
            advice="give it back its name",
        )
        return run


def _study_of(path: Path) -> Path:
    """The folder of the study in which a run lies, or the one that was given."""
    return path.resolve().parent.parent if is_file(RunFiles(path).spec) else path


def _about(run: RunFolder) -> str:
    """Which run, and which checkpoints there are."""
    stored, due = run.checkpoints(), run.due()
    gone = sorted(set(due) - set(stored))
    state = f"; not there: {_listed(gone)}" if gone else ""
    known = StudyFolder(run.folder).runs if is_file(run.files.study.study) else []
    label = run_label(label_of(run.spec.pomdp), run.spec.learner.cell.__name__, run.spec.seed)
    name = next((each.label for each in known if each.id == run.spec.id), label)
    return f"{name} ({run.spec.id}): networks after {_listed(stored)} episodes{state}"


def _listed(episodes: Sequence[int]) -> str:
    """All of a few, the ends of many."""
    if len(episodes) <= _SHOWN:
        return ", ".join(map(str, episodes)) or "no"
    return f"{episodes[0]}, {episodes[1]}, … {episodes[-1]} ({len(episodes)} networks)"


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
