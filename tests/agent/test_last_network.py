"""The last network is stored, whatever the number of episodes; a longer training begins where a shorter one ended."""

import dataclasses
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.agent import DRQN, RunFolder, TrainingSpec, train
from beliefscope.agent.train import run_chunk
from beliefscope.cli import main
from beliefscope.pomdp import TMaze
from beliefscope.store import StudyFolder, read_record, write_record
from beliefscope.study.spec import RunSpec, checkpoints

LEARNER = DRQN(hidden_size=4, num_layers=1, buffer_capacity=64, num_episodes=30, checkpoint_period=20)
SHORT = dataclasses.replace(LEARNER, evaluation_episodes=2)
LONG = dataclasses.replace(SHORT, num_episodes=50)


def spec(learner, seed=0):
    return TrainingSpec(pomdp=TMaze(2), learner=learner, seed=seed)


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> RunFolder:
    return train([spec(SHORT)], tmp_path_factory.mktemp("short"))[0]


def files_of(run: RunFolder) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("*") if file.is_file()}


def test_the_last_network_is_stored_recorded_and_read(short):
    assert short.checkpoints() == short.due() == checkpoints(short.spec) == [0, 20, 30]
    assert short.last_checkpoint() == 30
    assert sorted(read_record(short.files.trained)["files"]) == [
        "metrics.jsonl",
        "params/0.eqx",
        "params/20.eqx",
        "params/30.eqx",
    ]
    episode, agent = short.resume() or (None, None)
    assert episode == 30
    assert agent is not None
    jax.tree.map(np.testing.assert_array_equal, short.network(30), agent.network)
    with pytest.raises(ValueError, match="or change checkpoint_period"):
        RunSpec(training=short.spec, environment="maze", traces=(10,))


def test_a_run_of_an_older_version_gets_its_last_network_from_where_it_ended(short, tmp_path):
    shutil.copytree(short.folder, tmp_path, dirs_exist_ok=True)
    run = RunFolder(tmp_path, short.spec)
    record = read_record(run.files.trained)
    del record["files"]["params/30.eqx"]
    write_record(run.files.trained, record)
    run.files.network(30).unlink()
    assert run.due() == run.checkpoints() == [0, 20]
    train([run.spec], tmp_path)
    assert files_of(run) == files_of(short)


def test_where_the_last_is_due_anyway_nothing_changes():
    assert dataclasses.replace(SHORT, num_episodes=40).checkpoints() == [0, 20, 40]
    assert dataclasses.replace(SHORT, num_episodes=10).checkpoints() == [0, 10]


def test_of_a_diverged_agent_the_last_finite_network_is_stored(tmp_path, monkeypatch):
    def breaking(work, agents):
        agents, progress = run_chunk(work, agents)
        if int(work.first) == 10:  # the chunk after episode 10
            progress = progress._replace(failed=jnp.full_like(progress.failed, 14))
        return agents, progress

    monkeypatch.setattr(sys.modules["beliefscope.agent.train"], "run_chunk", breaking)
    (run,) = train([spec(SHORT)], tmp_path)
    assert run.failed() == 14
    assert run.checkpoints() == run.due() == [0, 10]
    assert run.last_checkpoint() == 10
    assert read_record(run.files.failed)["last_network"] == 10
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.network(10)))
    assert StudyFolder(tmp_path).states() == {f"train-{run.spec.id}": "diverged"}


def test_a_longer_training_goes_on_with_the_bits_of_one_from_the_start(short, tmp_path):
    (whole,) = train([spec(LONG)], tmp_path / "whole")
    before = files_of(short)
    (longer,) = train([spec(LONG)], tmp_path / "longer", lengthen=short.folder)
    assert files_of(longer) == files_of(whole)
    assert longer.checkpoints() == [0, 20, 40, 50]
    assert files_of(short) == before
    assert longer.spec.id != short.spec.id


def test_what_cannot_be_lengthened_gets_one_sentence_and_leaves_no_trace(short, tmp_path, capsys):
    flags = (
        "--length 2 --hidden-size 4 --num-layers 1 --buffer-capacity 64 --checkpoint-period 20 --evaluation-episodes 2"
    )
    command = f"train t-maze {flags} --num-episodes 50 --seeds 0 --cell gru".split()
    assert main([*command, "--out", str(short.folder)]) == 2
    said = capsys.readouterr().err
    assert "learner.num_episodes 50 (there: 30)'; to train these agents longer, choose another folder and add" in said
    assert f"--lengthen {short.folder}" in said
    out = tmp_path / "out"
    wrong = [*command, "--lengthen", str(short.folder), "--out", str(out)]
    assert main([*wrong, "--gradient-steps", "3"]) == 2
    assert "--lengthen takes a folder with the same runs of fewer episodes" in capsys.readouterr().err
    assert not out.exists()
    archived = tmp_path / "archived"
    shutil.copytree(short.folder, archived)
    assert main(["archive", str(archived)]) == 0
    assert main([*command, "--lengthen", str(archived), "--out", str(out)]) == 2
    assert "without resume.eqx'; leave out --lengthen, which trains from the start" in capsys.readouterr().err
