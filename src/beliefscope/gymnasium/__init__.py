"""Our POMDPs as Gymnasium environments: `make(pomdp)` is one, `make_vec(pomdp, num_envs=…)` steps many in one call.

Importing this module registers `beliefscope/TMaze-v0`, `beliefscope/MountainHike-v0`, `beliefscope/File-v0` and one id
for each classic, so that `gymnasium.make("beliefscope/TMaze-v0", length=20)` works. Gymnasium is an optional extra:
`pip install 'beliefscope[gymnasium]'`.
"""

try:
    import gymnasium  # noqa: F401 (the real one: imports are absolute)
except ImportError as error:
    raise ImportError("beliefscope.gymnasium needs Gymnasium: pip install 'beliefscope[gymnasium]'.") from error

from beliefscope.gymnasium.environment import Environment, LastAction, LastActionVector, VectorEnvironment
from beliefscope.gymnasium.names import IDS, make, make_vec, named_pomdp, register_ids

register_ids()

__all__ = [
    "IDS",
    "Environment",
    "LastAction",
    "LastActionVector",
    "VectorEnvironment",
    "make",
    "make_vec",
    "named_pomdp",
]
