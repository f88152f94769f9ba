"""Studies made in Python of the wrong things, without the run-time type checks of the other tests: one sentence."""

import json
import subprocess
import sys

import pytest

CASES = {
    "read_study('paper/tmaze-50', scale=None)": "the scale is 'quick', 'small' or 'full', but got None",
    "read_study('paper/tmaze-50', variant=3)": "the variant is 'text' or 'code', but got 3",
    "read_study(None)": "a study is one of the shipped ones or a file that ends in .toml, but got 'None'",
    "run_study('my.toml', 'out')": "run_study takes a Study, but got 'my.toml'; read it first: run_study(read_study(",
    "RunSpec(training=None, environment='here')": "the training of a run is a beliefscope.TrainingSpec, but got None",
    "RunSpec(training=TMaze(2), environment='here')": "the training of a run is a beliefscope.TrainingSpec, but got",
    "RunSpec(training=training, environment='here', measurements=MeasurementSpec())": "are a tuple of beliefscope.Mea",
    "RunSpec(training=training, environment='here', measurements=(MeasurementSpec(),))": "are a tuple of beliefscope.",
    "RunSpec(training=training, environment='here', traces=(10.0,))": "traces are whole numbers: the checkpoints' epi",
    "Measurement(spec=MeasurementSpec(), episodes=10)": "episodes are whole numbers: the checkpoints' episodes, but",
    "Study(name='mine', runs=None)": "the runs of a study are a tuple of RunSpec, but got None",
    "Study(name='mine', runs=(training,))": "the runs of a study are a tuple of RunSpec, but got",
    "Study(name=None, runs=())": "of printable characters, of at most 200 bytes, but got None",
}
SCRIPT = """
import json, sys
from beliefscope import *
training = TrainingSpec(pomdp=TMaze(2))
said = {}
for case in json.load(sys.stdin):
    try:
        eval(case)
        said[case] = "nothing: "
    except Exception as error:
        said[case] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(list(CASES)),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("empty"),
    )
    return json.loads(ended.stdout)


@pytest.mark.parametrize("case", CASES)
def test_a_study_made_of_the_wrong_things_gets_one_sentence(said, case):
    kind, sentence = said[case].split(": ", 1)
    assert kind == "ValueError"
    assert CASES[case] in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
