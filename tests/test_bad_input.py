"""Bad input as a user meets it, without the run-time type checks of the other tests: one sentence, no more."""

import json
import subprocess
import sys

import pytest

CASES = {
    "KalmanFilter(TMaze(2))": "a Kalman filter needs a LinearGaussian process, but got 'TMaze'",
    "ExactFilter(MountainHike())": "an exact filter needs a POMDP with finitely many states, but got 'MountainHike'",
    "ExactFilter(Irrelevant(TMaze(2), 1))": "finitely many states, but got 'Irrelevant'",
    "ParticleFilter(Irrelevant(TMaze(2), 1))": "a particle filter needs a POMDP with the method log_observation",
    "ParticleFilter(TMaze(2), num_particles=0)": "the number of particles is a whole number of at least 1, but got 0",
    "ParticleFilter(TMaze(2), num_particles=2.5)": "number of particles is a whole number of at least 1, but got 2.5",
    "ParticleFilter(TMaze(2), resampling='residual')": "one of multinomial, systematic, but got 'residual'",
    "filter_of_paper(MountainHike(), 'paper')": "a variant of the paper is 'text' or 'code', but got 'paper'",
    "MountainHike.of_paper('printed')": "a variant of the paper is 'text' or 'code', but got 'printed'",
    "MountainHike(transition_std='small')": "transition_std is a standard deviation above 0, but got 'small'",
    "TMaze('fifty')": "a T-Maze's length is a whole number of at least 1, but got 'fifty'",
    "TMaze(5.0)": "a T-Maze's length is a whole number of at least 1, but got 5.0",
    "TMaze(5, '0.3')": "λ lies in [0, 1], but got '0.3'",
    "TMaze(5, horizon=2.5)": "a horizon is a whole number of at least 1, but got 2.5",
    "TMaze(5).sample_transition(key, 0, 4)": "an action is an integer from 0 to 3, but got 4",
    "TMaze(5).sample_transition(key, 0, 1.0)": "an action is an integer from 0 to 3, but got 1.0",
    "Irrelevant(TMaze(2), 1.5)": "the number of dimensions is a whole number of at least 1, but got 1.5",
    "rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2.0)": "number of episodes is a whole number",
    "rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2, keep=str)": "keep says what to store of the obs",
    "read_pomdp('nowhere.pomdp', horizon=3)": "nowhere.pomdp: expected a .pomdp file, but there is no such file",
    "classic('lion')": "a classic POMDP goes by its name, but got 'lion'",
    "check_pomdp(TMaze)": "a POMDP to check is an instance of the class POMDP, but got <class",
}
SCRIPT = """
import json, sys
import jax
from beliefscope import *
key = jax.random.key(0)
said = {}
for case in json.load(sys.stdin):
    try:
        eval(case)
        said[case] = "nothing"
    except Exception as error:
        said[case] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(list(CASES)), capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_sentence(said, case):
    kind, sentence = said[case].split(": ", 1)
    assert kind in ("ValueError", "PomdpFileError")
    assert CASES[case] in sentence
    assert "\n" not in sentence
    assert sentence.endswith((".", "file"))
