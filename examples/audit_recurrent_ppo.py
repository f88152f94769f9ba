"""Audit of a RecurrentPPO of sb3-contrib, trained here on a T-Maze, beside a DRQN of ours.

    python examples/audit_recurrent_ppo.py

Both are small and learn for seconds, so that it takes a minute or two: longer training makes better agents.
"""

import tempfile

from sb3_contrib import RecurrentPPO

import beliefscope as bs

MAZE = bs.TMaze(length=2)


def recurrent_ppo() -> bs.Audit:
    env = bs.gymnasium.make(MAZE, last_action=True)
    with tempfile.TemporaryDirectory() as folder:
        policy = {"lstm_hidden_size": 16, "net_arch": [16]}
        untrained = RecurrentPPO(
            "MlpLstmPolicy",
            env,
            n_steps=256,
            batch_size=256,
            n_epochs=4,
            learning_rate=3e-3,
            seed=0,
            policy_kwargs=policy,
        )
        untrained.save(f"{folder}/init")
        model = RecurrentPPO.load(f"{folder}/init", env=env).learn(2_048)
    return bs.audit(model, MAZE, untrained=untrained, num_samples=500, bits=False)


def drqn() -> bs.Audit:
    learner = bs.DRQN(cell=bs.GRU, num_layers=1, hidden_size=16, num_episodes=100, checkpoint_period=100)
    with tempfile.TemporaryDirectory() as folder:
        (run,) = bs.train([bs.TrainingSpec(pomdp=MAZE, learner=learner, seed=0)], folder)
        return bs.audit(run.network(100), MAZE, untrained=run.network(0), num_samples=500, bits=False, name="DRQN, GRU")


def main() -> None:
    for audit in (recurrent_ppo(), drqn()):
        print(audit, end="\n\n")


if __name__ == "__main__":
    main()
