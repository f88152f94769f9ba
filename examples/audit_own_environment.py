"""Audit of an agent in one's own Gymnasium environment, from a log: the POMDP is a model of it in 30 lines.

python examples/audit_own_environment.py
"""

import gymnasium
import numpy as np

import beliefscope as bs
from beliefscope.auditing import log_from_arrays

LISTEN, LEFT, RIGHT = range(3)


class Doors(gymnasium.Env):
    """A prize is behind the left or the right door; listening tells which, wrongly once in five times."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.prize = int(self.np_random.integers(2))
        return self._sound(), {"state": self.prize}

    def step(self, action):
        opened = action != LISTEN
        reward = -0.05 if not opened else 1.0 if action == LEFT + self.prize else -1.0
        return self._sound(), reward, opened, False, {"state": self.prize}

    def _sound(self):
        return self.prize if self.np_random.random() < 0.8 else 1 - self.prize


def model() -> bs.TabularPOMDP:
    """The same environment as arrays: prize left, prize right, over."""
    stay, leave = np.eye(3), np.zeros((3, 3))
    leave[:, 2] = 1
    return bs.TabularPOMDP(
        initial=np.array([0.5, 0.5, 0.0]),
        transition=np.stack([stay, leave, leave]),  # [action, state, next state]
        reward=np.array([[-0.05, -0.05, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]),  # [action, state]
        observation=np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]),  # [state, observation]
        discount=1.0,
        horizon=20,
        state_names=("prize left", "prize right", "over"),
        action_names=("listen", "open left", "open right"),
        observation_names=("sound left", "sound right"),
    )


def record(num_episodes: int) -> dict[str, np.ndarray]:
    """An agent that counts the sounds, and opens a door when one side leads by two."""
    env, rows = Doors(), []
    for episode in range(num_episodes):
        seen, info = env.reset(seed=episode)
        lead, ended, time = 0, False, 0
        while not ended and time < 20:
            lead += 1 - 2 * seen
            action = LISTEN if abs(lead) < 2 else LEFT if lead > 0 else RIGHT
            noisy = lead + 0.1 * env.np_random.normal()
            state, sound = info["state"], seen
            seen, reward, ended, _, info = env.step(action)
            time += 1
            rows.append((sound, action, reward, state, (noisy, time), ended or time == 20))
    sounds, actions, rewards, states, memory, ends = map(np.array, zip(*rows, strict=True))
    return {
        "observations": sounds,
        "actions": actions,
        "rewards": rewards,
        "states": states,
        "memory": memory,
        "episode_ends": ends,
    }


def main() -> None:
    pomdp = model()
    audit = bs.audit(log_from_arrays(record(2000), pomdp, name="counts the sounds"), pomdp, bits=False)
    print(audit)
    print(audit.report("runs/audit-doors"))


if __name__ == "__main__":
    main()
