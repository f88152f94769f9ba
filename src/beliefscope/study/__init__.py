"""Studies: many runs and their measurements, declared once, run by one command, resumed after anything."""

from beliefscope.study.definition import read_study, shipped_studies
from beliefscope.study.folder import StudyFolder
from beliefscope.study.piece import Piece
from beliefscope.study.run import run_study
from beliefscope.study.run_spec import Measurement, RunSpec
from beliefscope.study.study import Study

__all__ = [
    "Measurement",
    "Piece",
    "RunSpec",
    "Study",
    "StudyFolder",
    "read_study",
    "run_study",
    "shipped_studies",
]
