"""Training as a whole: what is stored, what a resumed run is worth, who fails alone."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope.agent import DRQN, RunFolder, TrainingSpec, train
from beliefscope.cli import main
from beliefscope.pomdp import TMaze
from beliefscope.store import Busy, Damaged, lock, save_tree, write_atomic

LEARNER = DRQN(hidden_size=8, buffer_capacity=64, num_episodes=20, checkpoint_period=10, evaluation_episodes=5)
SPECS = [TrainingSpec(pomdp=TMaze(3), learner=LEARNER, seed=seed) for seed in (0, 7)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> list[RunFolder]:
    """Two agents, trained without interruption."""
    return train(SPECS, tmp_path_factory.mktemp("whole"))


def stored(run: RunFolder) -> dict[str, bytes]:
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("*") if file.is_file()}


def train_broken_off(folder, monkeypatch, name: str, replacement) -> None:
    """Train with a part replaced by one that breaks training off."""
    with monkeypatch.context() as patch:
        patch.setattr(name, replacement)
        with pytest.raises(KeyboardInterrupt):
            train(SPECS, folder)


def test_every_file_of_the_layout_is_there_and_says_what_it_should(finished):
    for run in finished:
        assert set(stored(run)) == {
            "spec.json",
            "metrics.jsonl",
            "resume.eqx",
            "trained.json",
            "params/0.eqx",
            "params/10.eqx",
            "params/20.eqx",
        }
        assert run.path.name == run.spec.id
        assert json.loads((run.path / "spec.json").read_text())["seed"] == run.spec.seed
        lines = run.metrics()
        assert [line["episode"] for line in lines] == [0, 10, 20]
        assert lines[0]["loss"] is None
        assert all(-10 < line["return"] <= 4 and 1 <= line["length"] <= 9 for line in lines)
        assert lines[1]["loss"] > 0
    manifest = json.loads((finished[0].folder / "manifest.json").read_text())
    assert set(manifest["calls"][0]) == {"started", "versions", "revision", "python", "platform", "device"}


def test_the_last_stored_network_is_the_one_that_would_go_on(finished):
    for run in finished:
        episode, agent = run.resume() or pytest.fail("nothing stored")
        assert episode == 20
        for a, b in zip(jax.tree.leaves(run.network(20)), jax.tree.leaves(agent.network), strict=True):
            np.testing.assert_array_equal(a, b)
        assert not np.array_equal(run.network(0).weights, run.network(20).weights)


def test_seeds_differ_in_parameters_episodes_and_evaluations(finished):
    first, second = ((run.resume() or pytest.fail("nothing stored"))[1] for run in finished)
    assert not np.array_equal(finished[0].network(0).weights, finished[1].network(0).weights)
    assert not np.array_equal(first.replay.actions, second.replay.actions)
    assert finished[0].metrics() != finished[1].metrics()


def test_an_agent_is_bit_identical_alone_and_in_a_batch(finished, tmp_path):
    (alone,) = train(SPECS[1:], tmp_path)
    assert stored(alone) == stored(finished[1])


@pytest.mark.parametrize("saves", [1, 2, 3, 5])
def test_a_run_broken_off_at_any_save_ends_bit_identical(saves, finished, tmp_path, monkeypatch):
    """After an odd number of saves one agent is a chunk ahead of the other."""
    save, calls = RunFolder.save, []

    def break_off(run, agent, episode, metrics):
        if len(calls) == saves:
            raise KeyboardInterrupt
        calls.append(episode)
        save(run, agent, episode, metrics)

    train_broken_off(tmp_path, monkeypatch, "beliefscope.agent.run_folder.RunFolder.save", break_off)
    for run, whole in zip(train(SPECS, tmp_path), finished, strict=True):
        assert stored(run) == stored(whole)


def test_a_run_broken_off_between_its_files_ends_bit_identical(finished, tmp_path, monkeypatch):
    """The metrics and a network of the chunk are there, the state is not: the state counts."""

    def break_off(path: Path, content: bytes) -> None:
        if path.name == "resume.eqx" and (path.parent / "params" / "10.eqx").exists():
            raise KeyboardInterrupt
        write_atomic(path, content)

    train_broken_off(tmp_path, monkeypatch, "beliefscope.store.files.write_atomic", break_off)
    assert RunFolder(tmp_path, SPECS[0]).metrics()[-1]["episode"] == 10
    for run, whole in zip(train(SPECS, tmp_path), finished, strict=True):
        assert stored(run) == stored(whole)


def test_a_finished_run_is_not_trained_again(finished):
    before = [{file: file.stat().st_mtime_ns for file in run.path.rglob("*")} for run in finished]
    train(SPECS, finished[0].folder)
    assert before == [{file: file.stat().st_mtime_ns for file in run.path.rglob("*")} for run in finished]


def test_a_diverged_agent_is_recorded_as_failed_with_its_episode_and_the_others_go_on(finished, tmp_path, monkeypatch):
    save = RunFolder.save

    def poison(run, agent, episode, metrics):
        save(run, agent, episode, metrics)
        if run.spec.seed == 0 and episode == 10:
            broken = agent._replace(network=jax.tree.map(lambda leaf: leaf * np.nan, agent.network))
            save_tree(run.path / "resume.eqx", (jnp.asarray(10), broken))
        if run.spec.seed == 7 and episode == 10:
            raise KeyboardInterrupt

    train_broken_off(tmp_path, monkeypatch, "beliefscope.agent.run_folder.RunFolder.save", poison)
    failed, healthy = train(SPECS, tmp_path)
    assert failed.failed() == 11
    assert [line["episode"] for line in failed.metrics()] == [0, 10]
    assert healthy.failed() is None
    assert stored(healthy) == stored(finished[1])
    again = stored(failed)
    train(SPECS, tmp_path)
    assert stored(failed) == again


def test_the_command_line_trains_the_same_agents(finished, tmp_path, capsys):
    flags = "--hidden-size 8 --buffer-capacity 64 --num-episodes 20 --checkpoint-period 10 --evaluation-episodes 5"
    command = f"train t-maze --length 3 {flags} --seeds 0 7 --out {tmp_path}".split()
    assert main(command) == 0
    assert "seed 7: return" in capsys.readouterr().out
    for run in finished:
        assert stored(RunFolder(tmp_path, run.spec)) == stored(run)
    assert main([*command, "--gradient-steps", "3"]) == 2
    assert "learner.gradient_steps 3 (there: 10)'; choose another folder" in capsys.readouterr().err


def test_a_damaged_line_of_metrics_is_not_read(finished, tmp_path):
    run = RunFolder(tmp_path, SPECS[0])
    lines = (finished[0].path / "metrics.jsonl").read_bytes()
    write_atomic(run.path / "metrics.jsonl", lines.replace(b'"length": ', b'"length": 1'))
    with pytest.raises(Damaged, match=r"metrics.jsonl is damaged: .* checksum does not match"):
        run.metrics()


def test_a_network_that_was_not_stored_is_refused_with_the_list_of_those_that_were(finished):
    with pytest.raises(ValueError, match=r"every 10 .*checkpoint_period.*but got 15; choose among \[0, 10, 20\]"):
        finished[0].network(15)


def test_another_description_in_the_runs_folder_is_refused(tmp_path):
    run = RunFolder(tmp_path, SPECS[0])
    write_atomic(run.path / "spec.json", b"{}\n")
    with pytest.raises(ValueError, match="restore the file, or delete it"):
        train(SPECS[:1], tmp_path)


def test_a_run_that_another_process_trains_is_refused(tmp_path):
    with lock(tmp_path / "locks" / f"train-{SPECS[0].id}"), pytest.raises(Busy, match="wait for it, or stop it"):
        train(SPECS[:1], tmp_path)


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ([], "at least one TrainingSpec"),
        ([SPECS[0], SPECS[0]], "each run is given once"),
        ([SPECS[0], dataclasses.replace(SPECS[1], seed=0)], "each run is given once"),
    ],
    ids=["none", "the same twice", "the same seed twice"],
)
def test_wrong_lists_of_runs_are_refused(specs, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        train(specs, tmp_path)
    assert not list(tmp_path.iterdir())
