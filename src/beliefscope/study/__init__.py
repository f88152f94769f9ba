"""Studies: many runs and their measurements, declared once, run by one command, resumed after anything."""

from beliefscope.store.pieces import Piece
from beliefscope.store.study_folder import StudyFolder
from beliefscope.study.definition import read_study, shipped_studies
from beliefscope.study.run import run_study
from beliefscope.study.spec import Measurement, RunSpec, Study

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
