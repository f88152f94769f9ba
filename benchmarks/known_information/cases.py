"""Data whose mutual information is known: cases to build an estimator on, and cases to judge it on once.

`estimator_cases(frozen=False)` returns those that settings may be chosen on, by name; `estimator_cases(frozen=True)`
those that nobody looks at before the estimator is finished. Both have the same families of data, with other
parameters and other random constants. `tail_cases()` are frozen too: independent data of many shapes, and heavy tails.
`later_cases()` are a third frozen list, of all families.

An `EstimatorCase` has the true bits and two methods. `sample(seed, num_samples)` returns pairs.
`reference(x, y, train, judge)` returns the bits of a model that knows the family of the data but not its parameters:
they are fitted on the rows `train` and evaluated on the rows `judge`. An estimator that does not know the family cannot
be expected to find more in the same number of pairs.

The random constants of a case (codes, rotations, weights) come from its name, those of a POMDP from its seed.
"""

import functools
from dataclasses import replace

import numpy as np

from .families import (
    EstimatorCase,
    belief_case,
    code,
    code_case,
    constants,
    gaussian_case,
    independent_case,
    infinite_case,
    orthogonal,
    particle_case,
    random_beliefs,
    rotated_case,
    rotation,
    same_belief_case,
    student_case,
    tailed_case,
    tiger_beliefs,
    uniform_case,
)
from .models import CUBE, SAME, Model, Noise, Shuffled, spiral


def estimator_cases(*, frozen: bool) -> dict[str, EstimatorCase]:
    """By name. The truths of noisy codes are sampled when they are first asked for: up to a second each."""
    return {case.name: case for case in _made(frozen)}


@functools.cache
def _made(frozen: bool) -> tuple[EstimatorCase, ...]:
    cases = _frozen_cases() if frozen else _learning_cases()
    return tuple(replace(case, frozen=frozen) for case in cases)


def tail_cases() -> dict[str, EstimatorCase]:
    """A second frozen list: independent data of every shape, and dependent data with heavy tails.

    Written down before anything was run on it, after the best bound had learnt to limit scores it had not seen.
    """
    tiger = belief_case("tiger", tiger_beliefs(doors=2, actions=2, accuracy=0.8, horizon=5), columns=8, noise=0.3)
    sets = particle_case(80, 2, bits=1.0)

    def tailed(columns: int, freedom: int) -> Model:
        return student_case(columns, freedom=freedom, bits=1.0).model

    cases = [
        independent_case("1 and 1, t(1)", Shuffled(tailed(1, 1))),
        independent_case("1 and 1, t(2)", Shuffled(tailed(1, 2))),
        independent_case("1 and 1, t(3)", Shuffled(tailed(1, 3))),
        independent_case("1 and 1, lognormal", Shuffled(tailed_case("lognormal", 1, bits=1.0).model)),
        independent_case("1 and 1, fifth power", Shuffled(tailed_case("fifth power", 1, bits=1.0).model)),
        independent_case("2 and 2, t(1)", Shuffled(tailed(2, 1))),
        independent_case("4 and 4, lognormal", Shuffled(tailed_case("lognormal", 4, bits=1.0).model)),
        independent_case("12 and 12, t(2)", Shuffled(tailed(12, 2))),
        independent_case("40 and 40, t(1)", Shuffled(tailed(40, 1))),
        independent_case("1 normal and 64 with tails t(2)", Shuffled(Noise((1,), (1,)), tailed(64, 2))),
        independent_case("64 normal and 1 with tails t(2)", Shuffled(Noise((64,), (1,)), tailed(1, 2))),
        independent_case("2 and 2, uniform", Shuffled(uniform_case(2, 0.1).model)),
        independent_case("128 and 300, normal", Noise((128,), (300,))),
        independent_case("8 with tails t(1) and beliefs of a tiger", Shuffled(tailed(8, 1), tiger.model)),
        independent_case("6 with tails t(2) and sets of 80", Shuffled(tailed(6, 2), sets.model)),
        student_case(1, freedom=2, bits=1.0),
        student_case(1, freedom=1, bits=4.0),
        student_case(2, freedom=1, bits=2.0),
        student_case(3, freedom=1, bits=0.2),
        student_case(4, freedom=3, bits=1.5),
        student_case(8, freedom=2, bits=4.0),
        student_case(10, freedom=4, bits=3.0),
        tailed_case("lognormal", 1, bits=1.0),
        tailed_case("lognormal", 3, bits=3.0),
        tailed_case("lognormal", 8, bits=5.0),
        tailed_case("fifth power", 2, bits=2.0),
        tailed_case("fifth power", 5, bits=0.5),
    ]
    return {case.name: replace(case, frozen=True) for case in cases}


def later_cases() -> dict[str, EstimatorCase]:
    """A third frozen list: all families again, with parameters and random constants that no other list has.

    Written down before anything was run on it, after the last change of how candidates are weighed.
    """
    tiger = tiger_beliefs(doors=3, actions=3, accuracy=0.75, horizon=7)
    quiet = tiger_beliefs(doors=2, actions=3, accuracy=0.55, horizon=10)
    small = random_beliefs(31, states=3, observations=2, actions=2, horizon=4)
    large = random_beliefs(32, states=5, observations=2, actions=2, horizon=8, resets=True)
    sharp = random_beliefs(33, states=4, observations=3, actions=2, horizon=3)
    short = random_beliefs(34, states=2, observations=3, actions=2, horizon=3)
    long = random_beliefs(35, states=6, observations=3, actions=2, horizon=5, resets=True)
    two = random_beliefs(36, states=2, observations=3, actions=3, horizon=3)
    four = random_beliefs(37, states=4, observations=2, actions=2, horizon=6, resets=True)
    six = random_beliefs(38, states=6, observations=3, actions=2, horizon=3)
    cases = [
        belief_case("tiger of 3 doors, 3 actions", tiger, columns=40, noise=0.35, rough=True),
        belief_case("tiger that is quiet", quiet, columns=64, noise=0.2),
        belief_case("POMDP 31", small, columns=48, noise=0.15, rough=True),
        belief_case("POMDP 32", large, columns=64, noise=0.5),
        belief_case("POMDP 33", sharp, columns=32, noise=0.05, rough=True),
        belief_case("POMDP 34", short, columns=64, noise=0.8, rough=True),
        belief_case("POMDP 35", long, columns=32, noise=0.3),
        belief_case("POMDP 36", two, columns=48, noise=0.6, rough=True),
        same_belief_case("POMDP 37", four),
        same_belief_case("POMDP 38", six),
        code_case("random", 51, columns=64, noise=0.8, width=102, useless=100),
        code_case("random", 404, columns=128, noise=0.7, width=808),
        code_case("smooth", 102, columns=32, noise=0.2, width=102, useless=100),
        code_case("smooth", 404, columns=64, noise=0.6, width=404),
        code_case("hierarchical", 51, columns=48, noise=0.4, width=51),
        code_case("hierarchical", 404, columns=64, noise=0.05, width=408, useless=100),
        gaussian_case("dense", 40, rank=40, bits=5.0),
        gaussian_case("dense", 8, rank=8, bits=10.0),
        gaussian_case("dense", 25, rank=2, bits=0.5),
        gaussian_case("in pairs", 30, rank=30, bits=9.0),
        gaussian_case("sparse", 30, rank=4, bits=1.5),
        gaussian_case("sparse", 16, rank=2, bits=8.0),
        uniform_case(1, 0.3),
        uniform_case(3, 0.2),
        student_case(4, freedom=1, bits=1.2),
        student_case(3, freedom=4, bits=3.5),
        student_case(6, freedom=3, bits=0.4),
        rotated_case("asinh", 10, bits=6.0),
        rotated_case("asinh", 3, bits=1.0),
        rotated_case("cube", 12, bits=3.0),
        rotated_case("spiral", 4, bits=3.0),
        independent_case("3 and 3, t(2)", Shuffled(student_case(3, freedom=2, bits=1.0).model)),
        independent_case("16 and 3, normal", Noise((16,), (3,))),
        independent_case("96 and 204, normal", Noise((96,), (204,))),
        independent_case("128 and 404, tree", Shuffled(code("404 tree", "hierarchical", 404, 128, 0.2, 404))),
        independent_case("3 and 3, uniform", Shuffled(uniform_case(3, 0.25).model)),
        independent_case("sets of 120", Shuffled(particle_case(120, 1, bits=2.5).model)),
        particle_case(80, 2, bits=4.0, deviation=0.25),
        particle_case(200, 1, bits=2.0, deviation=0.7),
        particle_case(150, 3, bits=1.5, deviation=0.5),
        infinite_case("y = x, d = 3", 3, SAME),
        infinite_case("y the cube of x, d = 2", 2, CUBE),
        infinite_case("y a spiral of x, d = 4", 4, spiral(orthogonal(constants("spiral 4"), 4), 1.5)),
    ]
    return {case.name: replace(case, frozen=True) for case in cases}


def _learning_cases() -> list[EstimatorCase]:
    return _first_cases() + _second_cases()


def _first_cases() -> list[EstimatorCase]:
    tiger = tiger_beliefs(doors=2, actions=3, accuracy=0.85, horizon=8)
    small = random_beliefs(1, states=3, observations=3, actions=2, horizon=3)
    large = random_beliefs(2, states=6, observations=2, actions=2, horizon=8, resets=True)
    sharp = random_beliefs(3, states=4, observations=4, actions=2, horizon=3)
    short = random_beliefs(8, states=2, observations=2, actions=3, horizon=3)
    return [
        belief_case("tiger of 2 doors", tiger, columns=32, noise=0.6),
        belief_case("POMDP 1", small, columns=64, noise=0.05, rough=True),
        belief_case("POMDP 2", large, columns=64, noise=0.3),
        belief_case("POMDP 3", sharp, columns=32, noise=0.02, rough=True),
        belief_case("POMDP 8", short, columns=48, noise=1.0, rough=True),
        same_belief_case("tiger of 2 doors", tiger),
        same_belief_case("POMDP 2", large),
        code_case("random", 51, columns=32, noise=1.0, width=51),
        code_case("random", 404, columns=256, noise=0.5, width=808),
        code_case("smooth", 102, columns=64, noise=0.01, width=106, useless=100),
        code_case("smooth", 404, columns=128, noise=0.3, width=404),
        code_case("hierarchical", 51, columns=256, noise=1.0, width=55, useless=100),
        code_case("hierarchical", 404, columns=32, noise=0.1, width=408),
        gaussian_case("dense", 50, rank=50, bits=6.0),
        gaussian_case("dense", 20, rank=2, bits=2.0),
        gaussian_case("dense", 2, rank=2, bits=0.3),
        gaussian_case("in pairs", 10, rank=10, bits=12.0),
        gaussian_case("sparse", 50, rank=2, bits=3.0),
        gaussian_case("sparse", 6, rank=2, bits=1.0),
        uniform_case(1, 0.75),
        uniform_case(5, 0.1),
        student_case(1, freedom=1, bits=0.5),
        student_case(2, freedom=3, bits=3.0),
        student_case(5, freedom=5, bits=0.0),
        rotated_case("asinh", 2, bits=3.0),
        rotated_case("cube", 8, bits=4.0),
        rotated_case("cube", 25, bits=8.0),
        rotated_case("spiral", 3, bits=2.0),
        independent_case("1 and 1, normal", Noise((1,), (1,))),
        independent_case("4 and 4, normal", Noise((4,), (4,))),
        independent_case("64 and 106, normal", Noise((64,), (106,))),
        independent_case("256 and 808, normal", Noise((256,), (808,))),
        independent_case("3 and 3, heavy tails", Shuffled(student_case(3, freedom=1, bits=3.0).model)),
        independent_case("code of 102 symbols", Shuffled(code("102 shuffled", "smooth", 102, 64, 0.1, 106))),
        independent_case("sets of 100", Shuffled(particle_case(100, 2, bits=3.0).model)),
        particle_case(50, 1, bits=5.0, deviation=0.15),
        particle_case(120, 2, bits=3.0, deviation=1.0),
        particle_case(300, 3, bits=1.0, deviation=0.3),
        infinite_case("y = x, d = 1", 1, SAME),
        infinite_case("y = x, d = 8", 8, SAME),
        infinite_case("y a spiral of x, d = 2", 2, spiral(np.eye(2), 1.5)),
    ]


def _second_cases() -> list[EstimatorCase]:
    tiger = tiger_beliefs(doors=3, actions=2, accuracy=0.7, horizon=8)
    small = random_beliefs(19, states=2, observations=4, actions=2, horizon=3)
    large = random_beliefs(12, states=3, observations=2, actions=2, horizon=8, resets=True)
    sharp = random_beliefs(13, states=6, observations=2, actions=3, horizon=3)
    long = random_beliefs(14, states=5, observations=3, actions=2, horizon=5, resets=True)
    return [
        belief_case("tiger of 3 doors", tiger, columns=64, noise=0.4),
        belief_case("POMDP 19", small, columns=32, noise=0.05, rough=True),
        belief_case("POMDP 12", large, columns=40, noise=0.8, rough=True),
        belief_case("POMDP 13", sharp, columns=64, noise=0.15),
        belief_case("POMDP 14", long, columns=56, noise=0.03, rough=True),
        same_belief_case("tiger of 3 doors", tiger),
        same_belief_case("POMDP 13", sharp),
        code_case("random", 51, columns=128, noise=0.01, width=808, useless=100),
        code_case("random", 404, columns=32, noise=1.0, width=404),
        code_case("smooth", 51, columns=256, noise=1.0, width=51),
        code_case("smooth", 404, columns=48, noise=0.05, width=408, useless=100),
        code_case("hierarchical", 102, columns=32, noise=0.3, width=102, useless=100),
        code_case("hierarchical", 404, columns=256, noise=0.2, width=808),
        gaussian_case("dense", 50, rank=4, bits=3.0),
        gaussian_case("dense", 16, rank=16, bits=12.0),
        gaussian_case("in pairs", 2, rank=2, bits=6.0),
        gaussian_case("in pairs", 25, rank=25, bits=4.0),
        gaussian_case("sparse", 50, rank=2, bits=0.3),
        gaussian_case("sparse", 12, rank=2, bits=5.0),
        uniform_case(1, 0.05),
        uniform_case(5, 0.4),
        student_case(1, freedom=5, bits=2.0),
        student_case(2, freedom=2, bits=1.0),
        student_case(5, freedom=1, bits=0.3),
        rotated_case("cube", 2, bits=1.5),
        rotated_case("asinh", 5, bits=5.0),
        rotated_case("spiral", 25, bits=5.0),
        rotated_case("spiral", 2, bits=4.0),
        independent_case("1 and 1, uniform", Shuffled(uniform_case(1, 0.2).model)),
        independent_case("5 and 3, normal", Noise((5,), (3,))),
        independent_case("48 and 206, normal", Noise((48,), (206,))),
        independent_case("256 and 808, code", Shuffled(code("808 shuffled", "random", 404, 256, 0.3, 808))),
        independent_case("10 and 10, heavy tails", Shuffled(student_case(10, freedom=2, bits=5.0).model)),
        independent_case("code of 51 symbols", Shuffled(code("51 shuffled", "hierarchical", 51, 32, 0.5, 51))),
        independent_case("sets of 200", Shuffled(particle_case(200, 3, bits=2.0).model)),
        particle_case(50, 3, bits=5.0, deviation=0.8),
        particle_case(150, 2, bits=2.0, deviation=0.3),
        particle_case(300, 1, bits=1.0, deviation=1.0),
        infinite_case("y = x, d = 2", 2, SAME),
        infinite_case("y the cube of x, d = 1", 1, CUBE),
        infinite_case("y arcsinh of x, rotated, d = 8", 8, rotation("asinh", orthogonal(constants("8"), 8))),
    ]


def _frozen_cases() -> list[EstimatorCase]:
    """Written down before anything was run on them, after all other cases had been looked at."""
    tiger = tiger_beliefs(doors=4, actions=3, accuracy=0.6, horizon=6)
    hard_of_hearing = tiger_beliefs(doors=2, actions=2, accuracy=0.65, horizon=12)
    small = random_beliefs(21, states=3, observations=3, actions=2, horizon=3)
    large = random_beliefs(22, states=6, observations=2, actions=2, horizon=8, resets=True)
    sharp = random_beliefs(23, states=4, observations=4, actions=2, horizon=3)
    short = random_beliefs(24, states=2, observations=2, actions=3, horizon=3)
    long = random_beliefs(25, states=5, observations=3, actions=2, horizon=5, resets=True)
    two = random_beliefs(26, states=2, observations=4, actions=2, horizon=3)
    four = random_beliefs(27, states=4, observations=3, actions=2, horizon=4, resets=True)
    six = random_beliefs(28, states=6, observations=2, actions=3, horizon=3)
    return [
        belief_case("tiger of 4 doors", tiger, columns=48, noise=0.25),
        belief_case("tiger hard of hearing", hard_of_hearing, columns=32, noise=0.5, rough=True),
        belief_case("POMDP 21", small, columns=64, noise=0.1),
        belief_case("POMDP 22", large, columns=32, noise=0.4, rough=True),
        belief_case("POMDP 23", sharp, columns=64, noise=0.02, rough=True),
        belief_case("POMDP 24", short, columns=56, noise=0.7),
        belief_case("POMDP 25", long, columns=40, noise=0.2, rough=True),
        belief_case("POMDP 26", two, columns=64, noise=0.9, rough=True),
        same_belief_case("POMDP 27", four),
        same_belief_case("POMDP 28", six),
        code_case("random", 102, columns=32, noise=0.7, width=808, useless=100),
        code_case("random", 404, columns=48, noise=0.9, width=404),
        code_case("smooth", 51, columns=32, noise=0.01, width=51, useless=100),
        code_case("smooth", 404, columns=256, noise=1.0, width=408),
        code_case("hierarchical", 102, columns=64, noise=0.5, width=106),
        code_case("hierarchical", 404, columns=128, noise=0.15, width=808, useless=100),
        gaussian_case("dense", 30, rank=30, bits=8.0),
        gaussian_case("dense", 12, rank=12, bits=12.0),
        gaussian_case("dense", 10, rank=3, bits=0.3),
        gaussian_case("in pairs", 50, rank=50, bits=6.0),
        gaussian_case("sparse", 40, rank=3, bits=2.5),
        gaussian_case("sparse", 25, rank=2, bits=7.0),
        uniform_case(2, 0.15),
        uniform_case(4, 0.3),
        student_case(5, freedom=1, bits=0.8),
        student_case(2, freedom=5, bits=2.5),
        student_case(3, freedom=2, bits=0.5),
        rotated_case("asinh", 6, bits=4.0),
        rotated_case("cube", 25, bits=6.0),
        rotated_case("cube", 3, bits=2.0),
        rotated_case("spiral", 2, bits=2.5),
        independent_case("1 and 1, heavy tails", Shuffled(student_case(1, freedom=2, bits=2.0).model)),
        independent_case("8 and 2, normal", Noise((8,), (2,))),
        independent_case("32 and 404, normal", Noise((32,), (404,))),
        independent_case("256 and 808, tree", Shuffled(code("808 tree", "hierarchical", 404, 256, 0.4, 808))),
        independent_case("6 and 6, heavy tails", Shuffled(student_case(6, freedom=1, bits=4.0).model)),
        independent_case("code of 404 symbols", Shuffled(code("404 shuffled", "random", 404, 64, 0.2, 404))),
        independent_case("sets of 150", Shuffled(particle_case(150, 2, bits=4.0).model)),
        particle_case(50, 2, bits=5.0, deviation=0.4),
        particle_case(300, 1, bits=3.0, deviation=0.6),
        particle_case(100, 3, bits=1.0, deviation=0.9),
        infinite_case("y = x, d = 4", 4, SAME),
        infinite_case("y the cube of x, rotated, d = 3", 3, rotation("cube", orthogonal(constants("3"), 3))),
        infinite_case("y a spiral of x, d = 3", 3, spiral(orthogonal(constants("spiral 3"), 3), 1.5)),
    ]
