"""A description that was written can be read back, to the letter."""

import json

import pytest

from beliefscope import DRQN, NBRC, Irrelevant, MountainHike, RunFolder, TMaze, TrainingSpec, classic, write_pomdp
from beliefscope.agent.run_folder import read_spec
from beliefscope.pomdp import read_pomdp

POMDPS = {
    "T-Maze": TMaze(7, 0.3, horizon=40),
    "hike": MountainHike.of_paper("code", varying=True),
    "irrelevant": Irrelevant.of_paper(TMaze(5), 2, "text"),
    "irrelevant, code": Irrelevant.of_paper(MountainHike.of_paper("code"), 1, "code"),
}


def stored(folder, spec):
    run = RunFolder(folder, spec)
    run.open()
    return run.path


@pytest.mark.parametrize("name", POMDPS)
def test_what_was_written_is_read_back(name, tmp_path):
    spec = TrainingSpec(pomdp=POMDPS[name], learner=DRQN(cell=NBRC, hidden_size=5, learning_rate=3e-4), seed=9)
    assert read_spec(stored(tmp_path, spec)).canonical_json() == spec.canonical_json()


def test_a_pomdp_file_is_stored_with_its_run_and_checked(tmp_path):
    file, other = tmp_path / "tiger.pomdp", tmp_path / "baby.pomdp"
    write_pomdp(classic("tiger"), file)
    write_pomdp(classic("crying-baby"), other)
    path = stored(tmp_path, TrainingSpec(pomdp=read_pomdp(file, horizon=20)))
    file.unlink()
    assert read_spec(path).pomdp.horizon == 20
    with pytest.raises(ValueError, match=r"pass the right \.pomdp file by --file"):
        read_spec(path, file=other)
    kept = path / "pomdp.pomdp"
    kept.write_text(kept.read_text().replace("0.95", "0.90"))
    with pytest.raises(ValueError, match=r"pass the right \.pomdp file by --file"):
        read_spec(path)
    kept.unlink()  # as in folders of older versions
    with pytest.raises(ValueError, match=r"pass the right \.pomdp file by --file"):
        read_spec(path)
    write_pomdp(classic("tiger"), file)
    assert read_spec(path, file=file).pomdp.horizon == 20


def test_a_pomdp_file_that_is_another_one_is_written_anew_when_the_run_goes_on(tmp_path):
    run = RunFolder(tmp_path, TrainingSpec(pomdp=classic("tiger")))
    run.open()
    whole = run.files.pomdp.read_bytes()
    for other in (whole.replace(b"0.95", b"0.90"), b"", whole):
        run.files.pomdp.write_bytes(other)
        run.open()
        assert run.files.pomdp.read_bytes() == whole


def test_folders_that_hold_no_run_and_damaged_descriptions_get_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"a run is a folder with a spec\.json"):
        read_spec(tmp_path)
    path = stored(tmp_path, TrainingSpec(pomdp=TMaze(3)))
    for damage in ("{", "[]", json.dumps({"learner": {"class": "DRQN"}})):
        (path / "spec.json").write_text(damage)
        with pytest.raises(ValueError, match="restore the file or train again"):
            read_spec(path)
