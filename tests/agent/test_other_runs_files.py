"""Whole files of another run in an unfinished training: they are found, and the training begins again."""

import shutil

import jax.numpy as jnp
import pytest

from beliefscope.agent import DRQN, RunFolder, TrainingSpec, train
from beliefscope.pomdp import TMaze
from beliefscope.store import Damaged, save_tree
from beliefscope.store.pieces import Piece
from beliefscope.study.spec import RunSpec
from beliefscope.study.workers.execute import execute

LEARNER = DRQN(hidden_size=4, num_layers=1, buffer_capacity=64, num_episodes=20, checkpoint_period=10)
SPECS = [TrainingSpec(pomdp=TMaze(2), learner=LEARNER, seed=seed) for seed in (0, 1)]
FILES = ("metrics.jsonl", "params/0.eqx", "params/10.eqx", "params/20.eqx")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[RunFolder]:
    """Two agents, trained without interruption."""
    return train(SPECS, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def unfinished(whole, tmp_path) -> RunFolder:
    """The first of them, killed just before it recorded that it had ended."""
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    run = RunFolder(tmp_path, SPECS[0])
    run.files.trained.unlink()
    return run


def files_of(run: RunFolder) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_of_another_run_is_found_and_the_training_begins_again(name, whole, unfinished):
    shutil.copyfile(whole[1].path / name, unfinished.path / name)
    with pytest.raises(Damaged, match=rf"{name} is damaged: it is not the one that resume\.eqx goes on from"):
        train(SPECS[:1], unfinished.folder)
    runs = [RunSpec(training=spec, environment="maze") for spec in SPECS]
    execute([Piece(kind="train", run=SPECS[0].id, label="")], {run.id: run for run in runs}, unfinished.folder)
    assert files_of(unfinished) == files_of(whole[0])
    aside = unfinished.files.study.aside(f"train-{SPECS[0].id}", 0) / name
    assert aside.read_bytes() == (whole[1].path / name).read_bytes()


def test_a_state_of_an_older_version_has_no_digests_and_is_gone_on_from(whole, unfinished):
    episode, agent = unfinished.resume() or pytest.fail("nothing stored")
    save_tree(unfinished.files.resume, (jnp.asarray(episode), agent), of=unfinished.spec.id)
    older = unfinished.files.resume.read_bytes()
    train(SPECS[:1], unfinished.folder)
    assert files_of(unfinished) == files_of(whole[0]) | {"resume.eqx": older}


def test_what_was_written_after_the_state_may_be_anything(whole, unfinished, monkeypatch):
    """A process that is killed between its files leaves metrics and networks of which the state knows nothing."""
    saved = {name: (unfinished.path / name).read_bytes() for name in FILES}
    shutil.rmtree(unfinished.path)
    save = RunFolder.save_state

    def until_ten(run: RunFolder, agent, episode: int) -> None:
        if episode == 20:
            raise KeyboardInterrupt
        save(run, agent, episode)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_state", until_ten)
        with pytest.raises(KeyboardInterrupt):
            train(SPECS[:1], unfinished.folder)
    assert {name: (unfinished.path / name).read_bytes() for name in FILES} == saved
    unfinished.files.network(20).write_bytes(b"x")
    train(SPECS[:1], unfinished.folder)
    assert files_of(unfinished) == files_of(whole[0])
