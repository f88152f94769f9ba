"""Bad input as a user meets it, without the run-time type checks of the other tests: one sentence, no more."""

import json
import subprocess
import sys

import pytest

CASES = {
    "intervene(key, 3, TMaze(2))": "interventions need an agent with init_memory, step and memory_vector, written in",
    "intervene(0, 3, TMaze(2))": "a random key is made by jax.random.key, but got 0; pass jax.random.key(0), say.",
    "interchange(key, None, 3)": "a POMDP is an instance of the class POMDP, but got 3",
    "KalmanFilter(TMaze(2))": "a Kalman filter needs a LinearGaussian process, but got 'TMaze'",
    "ExactFilter(MountainHike())": "an exact filter needs a POMDP with finitely many states, but got 'MountainHike'",
    "ExactFilter(Irrelevant(TMaze(2), 1))": "finitely many states, but got 'Irrelevant'",
    "ParticleFilter(Irrelevant(TMaze(2), 1))": "a particle filter needs a POMDP with the method log_observation",
    "ParticleFilter(TMaze(2), num_particles=0)": "number of particles is a whole number from 1 to 100000, but got 0",
    "ParticleFilter(TMaze(2), num_particles=2.5)": "a whole number from 1 to 100000, but got 2.5",
    "ParticleFilter(TMaze(2), resampling='residual')": "one of multinomial, systematic, but got 'residual'",
    "filter_of_paper(MountainHike(), 'paper')": "a variant of the paper is 'text' or 'code', but got 'paper'",
    "MountainHike.of_paper('printed')": "a variant of the paper is 'text' or 'code', but got 'printed'",
    "MountainHike(transition_std='small')": "transition_std is a standard deviation above 0, but got 'small'",
    "TMaze('fifty')": "a T-Maze's length is a whole number of at least 1 and at most 1000000, but got 'fifty'",
    "TMaze('x' * 10**6)": f"but got '{'x' * 299}…; the paper uses 50 and 100.",
    "TMaze(5.0)": "a T-Maze's length is a whole number of at least 1 and at most 1000000, but got 5.0",
    "TMaze(5, '0.3')": "λ lies in [0, 1], but got '0.3'",
    "TMaze(5, horizon=2.5)": "a horizon is a whole number of at least 1, but got 2.5",
    "TMaze(5).sample_transition(key, 0, 4)": "an action is an integer from 0 to 3, but got 4",
    "TMaze(5).sample_transition(key, 0, 1.0)": "an action is an integer from 0 to 3, but got 1.0",
    "Irrelevant(TMaze(2), 1.5)": "whole number of at least 1 and at most 1000, but got 1.5",
    "rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2.0)": "number of episodes is a whole number",
    "rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2, keep=str)": "keep needs an observer, whose",
    "read_pomdp('nowhere.pomdp', horizon=3)": "nowhere.pomdp: expected a .pomdp file, but there is no such file",
    "classic('lion')": "a classic POMDP is chosen by its name, but got 'lion'",
    "ParticleFilter(TMaze(2), num_particles=10**6)": "whole number from 1 to 100000, but got 1000000",
    "ExactFilter(TMaze)": "a POMDP is an instance of the class POMDP, but got <class",
    "Irrelevant(5, 2)": "a POMDP is an instance of the class POMDP, but got 5",
    "ProductFilter(1, 2)": "a product filter is made of two filters, but got 1",
    "filter_of_paper(TMaze(5), 'bogus')": "a variant of the paper is 'text' or 'code', but got 'bogus'",
    "TMaze(5, discount='0.9')": "a discount γ lies in [0, 1], but got '0.9'",
    "MountainHike(goal_radius='a')": "the goal's radius is above 0 and at most 2, but got 'a'",
    "rollout(0, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2)": "a random key is made by jax.random.key, but got 0",
    "rollout(key, TMaze(2), RandomPolicy, num_episodes=2)": "a policy has the methods of beliefscope.pomdp.Policy",
    "rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=2, observer=5)": "an observer has the methods of",
    "run_filter(key, ExactFilter(TMaze(2)), 3)": "a filter runs along a Trajectory, but got 'int'",
    "run_filter(key, ExactFilter(TMaze(2)), episode)": "a trajectory holds a batch of episodes",
    "ParticleFilter(TMaze(2), num_particles=5).features(key, particles)": "resamples one belief at a time, but got",
    "ExactFilter(TMaze(2)).update(key, belief, jax.numpy.zeros(3, int), 0)": "one belief or state takes one action",
    "replace(walk, action_effect=jax.numpy.zeros((3, 1)))": "action_effect has the shape (number of actions, 2), but",
    "replace(walk, action_effect=jax.numpy.zeros(3))": "action_effect has the shape (number of actions, 2), but got",
    "KalmanFilter(walk).init(key, jax.numpy.zeros(1))": "of this process has the shape (2,), but got (1,)",
    "KalmanFilter(walk).init(key, 'x')": "of this process has the shape (2,), but got 'x'",
    "ExactFilter(TMaze(2)).init(key, jax.numpy.zeros(7))": "an observation of TMaze has the shape (), but got (7,)",
    "ExactFilter(TMaze(2)).init(key, 'x')": "an observation of TMaze has the shape (), but got None",
    "ParticleFilter(TMaze(2)).init(key, [1, 2])": "an observation of TMaze has the shape (), but got [(), ()]",
    "ParticleFilter(MountainHike()).init(key, jax.numpy.zeros((2, 4)))": "has the shape (1,), but got (2, 4)",
    "TMaze(10**10)": "a T-Maze's length is a whole number of at least 1 and at most 1000000, but got 10000000000",
    "Irrelevant(TMaze(2), 10**6)": "a whole number of at least 1 and at most 1000, but got 1000000",
    "value_iteration(TMaze(5))": "value iteration needs a TabularPOMDP, but got 'TMaze'",
    "value_iteration(classic('tiger'), steps=-1)": "the number of steps is a whole number of at least 0, but got -1",
    "write_pomdp(TMaze(5), 'x.pomdp')": "a .pomdp file holds a TabularPOMDP, but got 'TMaze'",
    "TrainingSpec(pomdp=TMaze)": "a POMDP is an instance of the class POMDP, but got <class",
    "TrainingSpec(pomdp=TMaze(2), learner=GRU)": "the learner is a beliefscope.DRQN, but got <class",
    "TrainingSpec(pomdp=TMaze(2), seed=1.0)": "a seed is a whole number from 0 to 4294967295, but got 1.0",
    "TrainingSpec(pomdp=TMaze(2), learner=DRQN(cell=Stepless))": "but got 'Stepless without init_memory, step'",
    "TrainingSpec(pomdp=TMaze(2), learner=DRQN(cell=Growing))": "a step of Growing keeps the memory's structure",
    "TrainingSpec(pomdp=TMaze(2), learner=DRQN(cell=Small))": "memory of Small is the hidden state, of shape (32,)",
    "DRQN(cell='GRU')": "the cell is a class such as beliefscope.GRU",
    "DRQN(cell=GRU(key, 2, 3))": "pass the class itself, not an instance or a name",
    "DRQN(num_episodes=1000.0)": "num_episodes is a whole number of at least 1, but got 1000.0",
    "DRQN(learning_rate='fast')": "learning_rate is a finite number of at least 0, but got 'fast'",
    "DRQN(variant='printed')": "a variant of the paper is 'text' or 'code', but got 'printed'",
    "train(TrainingSpec(pomdp=TMaze(2)), 'x')": "train takes a list of at least one TrainingSpec",
    "train('GRU', 'x')": "train takes a list of at least one TrainingSpec, but got 'GRU'",
    "play(key, RandomPolicy(TMaze(2)), TMaze(2), num_episodes=2)": "methods of beliefscope.measurement.BatchedAgent",
    "play(key, Still, TMaze(2), num_episodes=2)": "methods of beliefscope.measurement.BatchedAgent",
    "play(0, Still(), TMaze(2), num_episodes=2)": "a random key is made by jax.random.key, but got 0",
    "play(key, Still(), TMaze, num_episodes=2)": "a POMDP is an instance of the class POMDP, but got <class",
    "play(key, Still(), TMaze(2), num_episodes=2.0)": "number of episodes is a whole number of at least 1, but got 2.0",
    "mutual_information(rows * jax.numpy.nan, rows)": "every number in memory is finite, but got '4000 NaN or infinite",
    "mutual_information(rows, rows[:5])": "memory and belief need the same number of samples, one pair a row, but got",
    "mutual_information(rows[:999], rows[:999])": "the best bound needs at least 1000 pairs, but got 999",
    "mutual_information(rows, 'belief')": "belief is an array of real numbers that NumPy can read, but got 'str'",
    "mutual_information(rows, rows, key=0)": "a random key is made by jax.random.key, but got 0",
    "MINE('paper')": "MINE has the variants 'text', 'code' and 'printed', but got 'paper'",
    "MINE().estimate(key, rows, rows)": "batches of 1024 pairs need at least 2560 pairs",
    "calibrate(np.ones((2000, 2)), 2.5)": "the memory's size is a whole number of at least 1, but got 2.5",
    "calibrate(np.ones((2000, 2)), 2, noises=(-1.0,))": "each noise is a number of at least 0, but got (-1.0,)",
    "LinearGaussian(*[jax.numpy.eye(1)[0]], *5 * [jax.numpy.eye(1)], [[1.0]])": "action_effect is an array of NumPy or",
    "check_pomdp(TMaze)": "a POMDP is an instance of the class POMDP, but got <class",
}
SCRIPT = """
import json, sys
from dataclasses import replace
import jax
import numpy as np
from beliefscope import *
from beliefscope.agent import Cell
from beliefscope.information import MINE, calibrate
from beliefscope.pomdp import LinearGaussian, value_iteration

class Stepless(Cell):
    def __init__(self, key, input_size, hidden_size): pass

class Small(Stepless):
    def init_memory(self): return jax.numpy.zeros(7)
    def step(self, memory, inputs): return memory

class Growing(Small):
    def step(self, memory, inputs): return memory, inputs

class Still:
    def start(self, num_episodes): pass
    def step(self, previous_actions, observations): return 0 * previous_actions, observations

key = jax.random.key(0)
rows = jax.numpy.arange(4000.0).reshape(2000, 2)
run = rollout(key, TMaze(2), RandomPolicy(TMaze(2)), num_episodes=3).trajectory
episode = jax.tree.map(lambda leaf: leaf[0], run)
particles = run_filter(key, ParticleFilter(TMaze(2), num_particles=5), run)
belief = ExactFilter(TMaze(2)).init(key, 0)
walk = LinearGaussian.random_walk(2, initial_std=1.0, process_std=1.0, observation_std=1.0)
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
