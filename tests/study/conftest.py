"""A small study, run once for all tests of a process that need a finished one."""

import pytest
from study.tiny import definition, run

from beliefscope import StudyFolder


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> StudyFolder:
    """The study, run by one worker without a break."""
    folder = tmp_path_factory.mktemp("whole")
    status, out, err = run("run", definition(folder), "--out", folder / "out", "--workers", 1)
    assert status == 0, err
    assert "4 done, of 4 pieces" in out
    return StudyFolder(folder / "out")
