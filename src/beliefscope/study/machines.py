"""How long the parts of a study take on one core of a CPU, and on an H200 with ten workers (docs/benchmarks.md)."""

from typing import NamedTuple


class Machine(NamedTuple):
    """Seconds. A gradient step is one of the paper's (32 histories, 2 layers of 32), per step of the horizon."""

    gradient_step: dict[str, float]  # by cell, of one agent, or of all seeds at once
    seeds_at_once: bool
    training_start: float  # compilation
    measure_start: float  # of each checkpoint: what is compiled anew, and what is computed besides
    controls_start: float  # the same for the controls, with the decoders
    pair_step: float  # to play and to filter exactly, per pair and step of the horizon
    particle_step: float  # to filter with particles, per pair, step and particle
    vector_epoch: float  # of MINE, per pair and epoch
    particle_epoch: float  # of MINE on sets, per pair, epoch and particle
    best_bound_pair: float  # of the best bound
    decoders_pair: float  # of sufficiency on one set of histories, and of the atoms bound, per pair
    trace: float


CORE = Machine(
    gradient_step={"LSTM": 3.8e-5, "GRU": 3.9e-5, "BRC": 2.1e-5, "NBRC": 2.8e-5, "MGU": 3.9e-5},
    seeds_at_once=False,
    training_start=20.0,
    measure_start=2.5,
    controls_start=8.0,
    pair_step=2.3e-6,
    particle_step=5e-8,
    vector_epoch=1e-5,
    particle_epoch=4e-7,
    best_bound_pair=2e-3,
    decoders_pair=4.5e-4,
    trace=7.0,
)
H200 = Machine(
    gradient_step={"LSTM": 3.5e-6, "GRU": 3.1e-6, "BRC": 1.6e-6, "NBRC": 2.4e-6, "MGU": 2.7e-6},
    seeds_at_once=True,
    training_start=22.0,
    measure_start=0.03,
    controls_start=0.3,
    pair_step=3e-9,
    particle_step=6e-11,
    vector_epoch=5.3e-8,
    particle_epoch=2.4e-10,
    best_bound_pair=3e-4,
    decoders_pair=3.5e-6,
    trace=1.0,
)
