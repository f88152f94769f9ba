"""How long a gradient step takes, beside PyTorch, and how long whole trainings take. Prints tables; asserts nothing.

    python benchmarks/training.py                 one core, against PyTorch (pip install torch==2.13.0): ten minutes
    python benchmarks/training.py --quick         the same with GRU and LSTM alone
    python benchmarks/training.py --full GRU      5,000 episodes of one agent at L = 50 on one core
    python benchmarks/training.py --gpu           the gradient step on a GPU, 4 to 320 agents
    python benchmarks/training.py --gpu --full GRU    5,000 episodes of four agents there

A gradient step is all of it: gather, forward, backward, Adam, and the target values that its batch needs. Ours are
cached, so their cost (once for the whole buffer every 100 steps, once for each new episode) is shared out over the
steps. The buffer holds 8,192 transitions of episodes of one length. Alternatives take turns, round after round, and
the best round counts.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial

CELLS = ("LSTM", "GRU", "BRC", "NBRC", "MGU")
BATCH, LAYERS, SIZE, INPUTS, ACTIONS, CAPACITY, DISCOUNT = 32, 2, 32, 8, 4, 8192, 0.98


def best_seconds(programs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best of some interleaved rounds of each program."""
    for program in programs.values():
        program()
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def ours(cell: str, *, agents: int, length: int, horizon: int = 150) -> Callable[[], object]:
    """100 gradient steps of every agent and their target values: of the whole buffer once, of ten new episodes."""
    import jax
    import jax.numpy as jnp

    import beliefscope.agent.cells as cells
    from beliefscope.agent import DRQN
    from beliefscope.agent.drqn import cpu_plan, gpu_plan, gradient_step, init_agent, refresh_values
    from beliefscope.fast_keys import fast_key
    from beliefscope.pomdp import TMaze

    maze, learner = TMaze(50, horizon=horizon), DRQN(cell=getattr(cells, cell))

    def start(key):
        agent, slots = init_agent(key, maze, learner), CAPACITY + horizon
        seen, times = jax.random.normal(key, (slots, INPUTS)), jnp.arange(slots) % length
        ring = agent.replay._replace(inputs=seen, next_inputs=seen, times=times, total=jnp.asarray(slots))
        return agent._replace(replay=ring)

    def refresh(agent):
        return agent._replace(replay=refresh_values(agent.replay, agent.network, capacity=CAPACITY))

    def new_episode(agent):
        ring, network = agent.replay, agent.network
        _, values = jax.lax.scan(
            lambda m, x: network.step_input(m, x), network.init_memory(), ring.next_inputs[:length]
        )
        return agent._replace(replay=ring._replace(next_values=ring.next_values.at[:length].set(values.max(-1))))

    def program(plan, agents, keys):
        keys = plan.each(fast_key)(keys)

        def step(number, agents):
            agents = jax.lax.cond(number % 10 == 0, plan.each(new_episode), lambda same: same, agents)
            keys_step = plan.each(lambda key: jax.random.fold_in(key, number))(keys)
            return gradient_step(plan, maze, learner, agents, keys_step)[0]

        return jax.lax.fori_loop(0, 100, step, plan.each(refresh)(agents)).network

    keys = jax.random.split(jax.random.key(0), agents)
    batch = jax.jit(jax.vmap(start))(keys)
    if jax.default_backend() == "cpu":
        mapped = jax.jit(lambda *batch: jax.lax.map(lambda one: program(cpu_plan(horizon), *one), batch))
    else:
        # Nearly every batch holds a history of more than half an episode: only that program is compiled here.
        plan = gpu_plan(horizon)
        mapped = jax.jit(partial(program, plan._replace(lengths=plan.lengths[-1:])))
    with jax.default_matmul_precision("float32"):
        compiled = mapped.lower(batch, keys).compile()
    return lambda: jax.block_until_ready(compiled(batch, keys))


def in_torch(cell: str, *, length: int, batched: bool) -> Callable[[], object]:
    """One gradient step in PyTorch: as research code writes it, or with the targets batched and padded, too."""
    import numpy as np
    import torch  # pyright: ignore[reportMissingImports]
    import torch_agent

    torch.set_num_threads(1)
    online, target = (torch_agent.QNetwork(cell, INPUTS, SIZE, LAYERS, ACTIONS) for _ in range(2))
    optimiser = torch.optim.Adam(online.parameters(), lr=1e-3)
    episodes = torch.randn(-(-CAPACITY // length), length + 1, INPUTS)
    generator, rows = np.random.default_rng(0), torch.arange(BATCH)

    def step():
        numbers = generator.integers(CAPACITY, size=BATCH)
        which, times = torch.as_tensor(numbers // length), torch.as_tensor(numbers % length)
        with torch.no_grad():
            if batched:
                next_values = target(episodes[which][:, : int(times.max()) + 2])[rows, times + 1]
            else:
                histories = [episodes[e, : t + 2][None] for e, t in zip(which, times, strict=True)]
                next_values = torch.cat([target(history)[:, -1] for history in histories])
            targets = DISCOUNT * next_values.max(-1).values
        values = online(episodes[which][:, : int(times.max()) + 1])[rows, times, 0]
        optimiser.zero_grad()
        ((targets - values) ** 2).sum().backward()
        optimiser.step()

    return step


def against_torch(cells: Sequence[str], length: int, rounds: int) -> None:
    """The table of one episode length."""
    print(f"\nMilliseconds per agent and gradient step, one core, episodes of {length} steps")
    heads = ("1 agent", "4 agents", "torch (a)", "torch (b)", "(a)/1", "(a)/4", "(b)/1", "(b)/4")
    print(" " * 8 + "".join(f"{head:>10}" for head in heads))
    for cell in cells:
        programs = {f"ours {n}": ours(cell, agents=n, length=length) for n in (1, 4)}
        programs["a"] = in_torch(cell, length=length, batched=False)
        if cell in ("LSTM", "GRU"):
            programs["b"] = in_torch(cell, length=length, batched=True)
        seconds = best_seconds(programs, rounds)
        one, four = seconds["ours 1"] * 10, seconds["ours 4"] * 2.5
        a, b = (seconds.get(name, float("nan")) * 1e3 for name in ("a", "b"))
        row = (one, four, a, b, a / one, a / four, b / one, b / four)
        print(f"  {cell:<6}" + "".join(f"{value:>10.2f}" for value in row), flush=True)


def cost_of_agents(rounds: int) -> None:
    print("\nCost of more agents, GRU, episodes of 150 steps")
    seconds = best_seconds({str(n): ours("GRU", agents=n, length=150) for n in (1, 4, 16)}, rounds)
    for name, value in seconds.items():
        print(
            f"  {name:>3} agents{value * 10:>10.2f} ms per gradient step, {value / seconds['1']:.2f} times one agent's"
        )
    print("\nPeak memory of a process that takes 100 gradient steps")
    for agents in (1, 4, 16):
        print(f"  {agents:>3} agents{peak_megabytes(agents):>10.0f} MB")


def peak_megabytes(agents: int) -> float:
    """The high-water mark of a process of its own (`getrusage` would tell its parent's)."""
    work = f"training.ours('GRU', agents={agents}, length=150)()"
    code = f"import training; {work}; print(*(l for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    folder = os.path.dirname(os.path.abspath(__file__))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return int(run.stdout.split()[1]) / 1024


def on_gpu(cells: Sequence[str]) -> None:
    print("\nMilliseconds per gradient step of all agents together")
    print(f"  {'':<6}{'T':>5}" + "".join(f"{n:>12}" for n in (4, 20, 80, 320)) + "   agents")
    for cell in cells:
        for length in (150, 300):
            programs = {str(n): ours(cell, agents=n, length=length, horizon=length) for n in (4, 20, 80, 320)}
            seconds = best_seconds(programs, 2)
            print(f"  {cell:<6}{length:>5}" + "".join(f"{value * 10:>12.2f}" for value in seconds.values()), flush=True)


def full_training(cell: str, seeds: int) -> None:
    import beliefscope.agent.cells as cells
    from beliefscope.agent import DRQN, TrainingSpec, train
    from beliefscope.pomdp import TMaze

    learner = DRQN(cell=getattr(cells, cell))
    specs = [TrainingSpec(pomdp=TMaze(50), learner=learner, seed=seed) for seed in range(seeds)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        runs = train(specs, folder)
        last = [run.metrics()[-1]["return"] for run in runs]
    seconds = time.perf_counter() - start
    print(
        f"{cell}: 5,000 episodes of {seeds} agents at L = 50, evaluations and compilation included, in {seconds:.0f} s"
    )
    print("  last returns", " ".join(f"{value:.4f}" for value in last))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="GRU and LSTM alone")
    parser.add_argument("--full", choices=CELLS, help="a whole training instead of single steps")
    parser.add_argument("--gpu", action="store_true", help="use a GPU")
    arguments = parser.parse_args()
    if not arguments.gpu:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.environ["JAX_PLATFORMS"] = "cpu"

    import jax

    device = jax.devices()[0]
    print(f"JAX {jax.__version__}, Python {platform.python_version()}, {device.platform}: {device.device_kind}")
    cells = CELLS[:2] if arguments.quick else CELLS
    if arguments.full:
        full_training(arguments.full, seeds=4 if arguments.gpu else 1)
    elif arguments.gpu:
        on_gpu(cells)
    else:
        for length in (150, 60):
            against_torch(cells, length, rounds=5)
        cost_of_agents(rounds=3)


if __name__ == "__main__":
    main()
