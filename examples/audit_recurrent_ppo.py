"""Audit of a RecurrentPPO of sb3-contrib, trained here on a T-Maze, beside a DRQN of ours in the same maze.

    python examples/audit_recurrent_ppo.py

Both learn to walk to the junction and to turn to the side that the first observation showed. It takes two minutes.
"""

import tempfile

import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env

import beliefscope as bs

MAZE = bs.TMaze(length=4)
STEPS = 32_768


def recurrent_ppo() -> bs.Audit:
    torch.set_num_threads(1)  # networks as small as these are slower on more
    envs = make_vec_env(lambda: bs.gymnasium.make(MAZE, last_action=True), n_envs=16, seed=0)
    untrained = RecurrentPPO(
        "MlpLstmPolicy",
        envs,
        n_steps=64,
        batch_size=256,
        n_epochs=10,
        learning_rate=lambda left: 3e-3 * left,  # to 0 at the end: at a constant rate some unlearn it again
        gamma=MAZE.discount,
        ent_coef=0.05,  # with less some agents settle on one side before they learn to look
        seed=0,
        policy_kwargs={"lstm_hidden_size": 32, "net_arch": [32]},
    )
    with tempfile.TemporaryDirectory() as folder:
        untrained.save(f"{folder}/init")
        model = RecurrentPPO.load(f"{folder}/init", env=envs).learn(STEPS)
    return bs.audit(model, MAZE, untrained=untrained, num_samples=600, bits=False)


def drqn() -> bs.Audit:
    learner = bs.DRQN(cell=bs.GRU, num_layers=1, hidden_size=32, num_episodes=300, checkpoint_period=100)
    with tempfile.TemporaryDirectory() as folder:
        (run,) = bs.train([bs.TrainingSpec(pomdp=MAZE, learner=learner, seed=0)], folder)
        return bs.audit(run.network(300), MAZE, untrained=run.network(0), num_samples=600, bits=False, name="DRQN, GRU")


def main() -> None:
    for audit in (recurrent_ppo(), drqn()):
        print(audit, end="\n\n")


if __name__ == "__main__":
    main()
