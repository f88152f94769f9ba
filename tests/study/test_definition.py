"""The definition of a study is read: what its file says is done, the scale fills in the rest; a bad one is refused."""

import dataclasses
import functools
import itertools
import json
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from beliefscope import DRQN, LSTM, MeasurementSpec, TMaze, TrainingSpec, classic, write_pomdp
from beliefscope.agent.cells import CELLS
from beliefscope.study.definition import STUDY, read_study, shipped_studies
from beliefscope.study.definition_tables import KINDS, MEASUREMENT, TRAINING, ScaleName
from beliefscope.study.spec import Measurement, RunSpec, Study, merge

DOCS = Path(__file__).parents[2] / "docs" / "studies.md"
SCALES = get_args(ScaleName)
MAZE = '[[environments]]\npomdp = "t-maze"\nlength = 4\n'

read = functools.lru_cache(read_study)


def written(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_checkpoints_may_be_numbers_of_numpy(types_unchecked):
    learner = DRQN(cell=LSTM, num_episodes=20, checkpoint_period=10)
    training = TrainingSpec(pomdp=TMaze(2), learner=learner)
    episodes: tuple[Any, ...] = tuple(np.arange(0, 21, 10))
    measurement = Measurement(spec=MeasurementSpec(), episodes=episodes, controls=episodes[-1:])
    run = RunSpec(training=training, environment="maze", measurements=(measurement,), traces=episodes[:1])
    assert json.loads(json.dumps(Study(name="own", runs=(run,)).describe()))["runs"][0]["pieces"][-1]["episode"] == 0


def test_names_of_runs_depend_neither_on_the_order_of_keys_nor_on_the_name_of_the_scale(tmp_path):
    training = "[training]\nnum_episodes = 20\ncheckpoint_period = 10\nexploration_rate = 1\n"
    measurement = "[measurement]\nnum_samples = 3000\nnum_particles = 7\nepochs = 3\nepsilons = [0, 1]\n"
    measurement += "checkpoints = 'all'\ncontrols = 'all'\n"
    first = 'cells = ["GRU"]\nseeds = [3]\n' + MAZE + training + measurement
    second = (
        "[measurement]\ncheckpoints = 'all'\n"
        "controls = 'all'\nepsilons = [0.0, 1.0]\nepochs = 3\nnum_particles = 7\nnum_samples = 3000\n"
        "[training]\nexploration_rate = 1.0\ncheckpoint_period = 10\nnum_episodes = 20\n"
        '[[environments]]\nlength = 4\nstochasticity = 0\npomdp = "t-maze"\n'
    )
    second = 'seeds = [3]\ncells = ["GRU"]\n' + second
    studies = [
        read_study(written(tmp_path, text, f"{place}.toml"), scale=scale)
        for place, (text, scale) in enumerate(itertools.product((first, second), SCALES))
    ]
    assert len({tuple(piece.name for piece in study.pieces()) for study in studies}) == 1


def test_what_a_file_says_wins_and_the_scale_fills_in_the_rest(tmp_path):
    path = written(tmp_path, 'cells = ["MGU"]\n' + MAZE + "[training]\nnum_episodes = 250\n")
    for scale in SCALES:
        study = read_study(str(path), scale=scale)
        learner = study.runs[0].training.learner
        assert study.name == "mine"
        # The period gives way, so that the last network is stored.
        assert (learner.cell, learner.num_episodes, learner.checkpoint_period) == (CELLS["MGU"], 250, 50)


def test_checkpoints_and_controls_can_be_chosen(tmp_path):
    def asked(text):
        path = written(tmp_path, 'seeds = [5]\ncells = ["GRU"]\ntraces = false\n' + MAZE + "[measurement]\n" + text)
        (run,) = read_study(path, scale="small").runs
        assert run.traces == ()
        return [(each.spec.estimator, each.episodes, each.controls) for each in run.measurements]

    assert asked('checkpoints = "last"') == [("mine", (2000,), (2000,)), ("sufficiency", (2000,), (2000,))]
    mine = 'estimators = ["mine"]\n'
    assert asked(mine + 'checkpoints = "first-middle-last"\ncontrols = "none"') == [("mine", (0, 1000, 2000), ())]
    assert asked(mine + 'checkpoints = "first-last"') == [("mine", (0, 2000), (0, 2000))]
    assert asked(mine + "checkpoints = [400, 0]") == [("mine", (0, 400), (0,))]
    assert asked(mine + 'checkpoints = [400, 0]\ncontrols = "all"') == [("mine", (0, 400), (0, 400))]
    for name in ("best-bound", "trusted"):  # its older name
        both = asked(f'estimators = ["mine-authors", "{name}"]\nepochs = 7\ncheckpoints = "last"')
        assert both == [("mine-authors", (2000,), (2000,)), ("best-bound", (2000,), (2000,))]
    assert asked('estimators = ["code"]\ncheckpoints = "last"') == [
        ("mine-authors", (2000,), (2000,))
    ]  # its older name
    assert asked('estimators = ["atoms"]\ncheckpoints = "last"') == [("atoms", (2000,), ())]
    assert asked('memories = ["whole"]') == []  # a GRU carries nothing beyond h
    # The report shows those of the least ε.
    least = asked(mine + 'epsilons = [0.5, 0.1]\ncheckpoints = "last"')
    assert least == [("mine", (2000,), ()), ("mine", (2000,), (2000,))]


def test_a_file_of_ones_own_pomdp_is_found_beside_the_study(tmp_path):
    (tmp_path / "mazes").mkdir()
    write_pomdp(classic("tiger", horizon=20), tmp_path / "mazes" / "my-tiger.pomdp")
    text = 'cells = ["GRU"]\n[[environments]]\npomdp = "file"\npath = "mazes/my-tiger.pomdp"\nhorizon = 20\n'
    study = read_study(written(tmp_path, text))
    assert {run.environment for run in study.runs} == {"my-tiger"}
    assert study.runs[0].training.pomdp.horizon == 20
    assert study.runs[0].label == "my-tiger, GRU, seed 0"


def test_a_study_includes_others_and_adds_to_them(tmp_path):
    text = 'include = ["paper/tmaze-50", "other.toml"]\ncells = ["GRU"]\nseeds = [0, 7]\n[[environments]]\n'
    text += 'pomdp = "t-maze"\n[measurement]\nepsilons = [0, 0.5]\ncheckpoints = "last"\ncontrols = "none"\n'
    written(tmp_path, 'cells = ["BRC"]\nseeds = [9]\n' + MAZE, "other.toml")
    study = read_study(written(tmp_path, text))
    assert len(study.runs) == 10 + 1 + 1
    shared = next(run for run in study.runs if run.label == "T-Maze, L = 50, GRU, seed 0")
    assert [(each.spec.epsilon, each.episodes, each.controls) for each in shared.measurements] == [
        (0.0, (0, 100, 200, 300), (300,)),
        (0.5, (300,), ()),
    ]


def test_runs_that_meet_are_measured_and_traced_for_both():
    run = read("paper/tmaze-50").runs[0]
    spec = run.measurements[0].spec
    first = Measurement(spec=spec, episodes=(0, 100), controls=(100,))
    second = Measurement(spec=spec, episodes=(100, 200), controls=(200,))
    one, two = (
        type(run)(training=run.training, environment="here", measurements=(each,), traces=traces)
        for each, traces in ((first, (0,)), (second, (300,)))
    )
    (both,) = merge([one, two])
    assert both.measurements == (Measurement(spec=spec, episodes=(0, 100, 200), controls=(100, 200)),)
    assert both.traces == (0, 300)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cels = ['GRU']\n" + MAZE, "but got 'cels'; perhaps 'cells' is meant"),
        ("cells = ['GRUU']\n" + MAZE, "a cell is 'LSTM', 'GRU', 'BRC', 'NBRC' or 'MGU', but got 'GRUU'; perhaps 'GRU'"),
        ("cells = ['nbrc']\n" + MAZE, "perhaps 'NBRC' is meant"),
        ("cells = 'GRU'\n" + MAZE, "cells is a list of texts, but got 'GRU'"),
        ("cells = []\n" + MAZE, "cells lists at least one value, but got []"),
        ("seeds = [1, 1]\n" + MAZE, "seeds lists no value twice, but got [1, 1]"),
        ("seeds = [true]\n" + MAZE, "seeds is a list of whole numbers, but got [True]"),
        ("seeds = [-1]\n" + MAZE, "a seed is a whole number from 0 to 4294967295, but got -1"),
        ('name = "two\\nlines"\n' + MAZE, "a study's name is one line of printable characters, of at most 200 bytes"),
        ('name = "a\\u0000b"\n' + MAZE, "but got 'a\\x00b'; give it a shorter or plainer one"),
        (f"name = '{'é' * 101}'\n" + MAZE, "of at most 200 bytes"),
        ('description = "two\\nlines"\n' + MAZE, "a study's description is one line"),
        (
            "cells = ['GRU'\n" + MAZE,
            "a study is written in TOML, but this is not: Unclosed array (at line 2, column 1)",
        ),
        ("", "a study has [[environments]] or includes other studies"),
        ("seeds = [0]\ninclude = ['paper/tmaze-50']", "concern the study's own environments"),
        ("include = ['paper/tmaze']", "perhaps 'paper/tmaze-50' is meant"),
        ("include = ['mine.toml']", "no study includes itself, but got 'mine.toml'"),
        ("include = ['absent.toml']", "a study whose name ends in .toml is a file"),
        ("[environments]\npomdp = 't-maze'", "write [[environments]], in double brackets"),
        ("[[environments]]\nlength = 5", "an environment has a key pomdp"),
        ("[[environments]]\npomdp = 'tmaze'", "perhaps 't-maze' is meant"),
        ("[[environments]]\npomdp = 't-maze'\nlenght = 5", "but got 'lenght'; perhaps 'length' is meant"),
        ("[[environments]]\npomdp = 't-maze'\nvarying = true", "the keys of a t-maze environment are pomdp, length, "),
        ("[[environments]]\npomdp = 't-maze'\nlength = true", "length is a whole number, but got True"),
        ("[[environments]]\npomdp = 't-maze'\nlength = 5.0", "length is a whole number, but got 5.0"),
        ("[[environments]]\npomdp = 't-maze'\nlength = 0", "a T-Maze's length is a whole number of at least 1"),
        ("[[environments]]\npomdp = 't-maze'\nirrelevant = -1", "irrelevant is a whole number of at least 0"),
        ("[[environments]]\npomdp = 'file'", "has a path, relative to the study's file"),
        ("[[environments]]\npomdp = 'file'\npath = 'no.pomdp'", "no.pomdp'; nothing is there: correct the path"),
        ("[[environments]]\npomdp = 'file'\npath = '.'", "that is a folder: name a file in it"),
        (MAZE + "stochasticity = 1", "needs a stochasticity λ below 1, but got 1.0; the paper uses 0 and 0.3"),
        (MAZE + "[[environments]]\npomdp = 't-maze'\nlength = 4\nstochasticity = 0", "differ in their names"),
        ("include = ['paper/tmaze-50']\n[[environments]]\npomdp = 't-maze'\n[training]\nbatch_size = 8", "two studies"),
        (MAZE + "[training]\nlearningrate = 0.1", "perhaps 'learning_rate' is meant"),
        (MAZE + "[training]\ncell = 'GRU'", "the keys of [training] are num_layers, "),
        (MAZE + "[training]\nlearning_rate = -1", "learning_rate is a finite number of at least 0, but got -1.0"),
        (MAZE + "[training]\nlearning_rate = '1e-3'", "learning_rate is a number, but got '1e-3'"),
        (MAZE + "[training]\nnum_episodes = 7", "num_episodes is a multiple of evaluation_period, here 10, but got 7"),
        (MAZE + "[training]\nnum_episodes = 0", "num_episodes is a whole number of at least 1"),
        (MAZE + "[training]\ncheckpoint_period = 15", "checkpoint_period is a multiple of evaluation_period, here 10"),
        (MAZE + "[training]\nnum_episodes = 1000000000000", "a run of a study stores at most 10000 networks"),
        (
            MAZE + "[measurement]\nestimators = ['MINE']",
            "an estimator is 'mine', 'mine-authors', 'sufficiency', 'atoms' or 'best-bound', but got 'MINE'",
        ),
        (MAZE + "[measurement]\nestimators = ['mine', 'text']", "estimators names each of them once"),
        ("[[environments]]\npomdp = 'mountain-hike'\n[measurement]\nestimators = ['atoms']", "the atoms bound is for"),
        (MAZE + "[measurement]\nepsilons = [2]", "epsilon lies in [0, 1], but got 2.0"),
        (MAZE + "[measurement]\nepsilons = [0, 0.0]", "epsilons lists no value twice"),
        (MAZE + f"[measurement]\nnum_samples = {10**400}", "num_samples is a whole number"),
        (MAZE + "[measurement]\nnum_samples = 10", "num_samples is a whole number of at least 2000, but got 10"),
        (MAZE + "[measurement]\npart = 'relevant'", "only an environment with irrelevant variables"),
        (MAZE + "[measurement]\npart = 'some'", "part is 'all', 'relevant' or 'irrelevant', but got 'some'"),
        (MAZE + "[measurement]\ncheckpoints = 'first'", "checkpoints, unless a list of episodes, is 'all', "),
        (
            MAZE + "[measurement]\ncheckpoints = [0, 5]",
            "every 100 episodes and at its end, and only these are measured and traced, but got [5]",
        ),
        (MAZE + "[measurement]\ncontrols = 'no'", "'first-middle-last', 'last', 'none' or 'all', but got 'no'"),
        (MAZE + "[measurement]\nestimators = ['best-bound']\nepochs = 3", "epochs concerns the estimators"),
    ],
)
def test_a_bad_file_gets_one_sentence_that_names_it(tmp_path, text, sentence):
    path = written(tmp_path, text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_study(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert sentence in said
    assert "\n" not in said
    assert said.endswith(".")


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "", " ", "x" * 201])
def test_a_name_that_is_no_line_or_too_long_for_a_folder_is_refused(name):
    with pytest.raises(ValueError, match="a study's name is one line of printable characters"):
        dataclasses.replace(read("paper/tmaze-50"), name=name)


def test_the_longest_name_fits_into_the_name_of_a_folder(tmp_path):
    study = dataclasses.replace(read("paper/tmaze-50"), name="é" * 100)
    folders = {f"{study.name}-{scale}-{variant}" for scale in SCALES for variant in ("text", "code")}
    for folder in folders:
        (tmp_path / folder).mkdir()
    assert {made.name for made in tmp_path.iterdir()} == folders  # neither cut nor spelt otherwise


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("paper/tmaze50", "perhaps 'paper/tmaze-50' is meant: `beliefscope list` shows all."),
        ("zebra", "choose a shipped one: `beliefscope list` shows all."),
        ("nowhere/mine.toml", "a study whose name ends in .toml is a file, but got 'nowhere/mine.toml'"),
    ],
)
def test_a_study_that_is_not_there_gets_a_sentence(name, sentence):
    with pytest.raises(ValueError, match=r"^a study .*\.$") as caught:
        read_study(name)
    assert sentence in str(caught.value)


def test_a_file_that_is_no_text_gets_a_sentence(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="a study is a text file that can be read"):
        read_study(path)


def test_the_page_on_studies_has_every_key_and_an_example_that_reads(tmp_path):
    page = DOCS.read_text("utf-8")
    options = {field for kind in KINDS.values() for field in kind.__dataclass_fields__}
    assert [key for key in {*STUDY, *TRAINING, *MEASUREMENT, *options} if not re.search(rf"`\[*{key}\]*`", page)] == []
    assert [name for name in shipped_studies() if f"`{name}`" not in page] == []
    (tmp_path / "mazes").mkdir()
    write_pomdp(classic("cheese-maze", horizon=60), tmp_path / "mazes" / "cheese.pomdp")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    study = read_study(written(tmp_path, example))
    assert len(study.runs) == 8
    assert [each.episodes for each in study.runs[0].measurements] == [(0, 500, 1000)] * 3
