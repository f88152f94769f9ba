"""Our POMDPs as Gymnasium environments: `make(pomdp)` is one, `make_vec(pomdp, num_envs=…)` steps many in one call.

Importing this module registers `beliefscope/TMaze-v0`, `beliefscope/MountainHike-v0`, `beliefscope/File-v0` and one id
for each classic, so that `gymnasium.make("beliefscope/TMaze-v0", length=20)` works. Gymnasium is an optional extra:
`pip install 'beliefscope[gymnasium]'`.
"""

from pathlib import Path
from typing import Any

try:
    import gymnasium  # the real one: imports are absolute
except ImportError as error:
    raise ImportError("beliefscope.gymnasium needs Gymnasium: pip install 'beliefscope[gymnasium]'.") from error

from beliefscope.belief import Filter, filter_of_paper
from beliefscope.errors import nearest, require
from beliefscope.gymnasium.environment import Environment, LastAction, LastActionVector, VectorEnvironment
from beliefscope.pomdp import CLASSICS, HORIZON, POMDP, MountainHike, TMaze, classic, read_pomdp

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

# By id: the name that `named_pomdp` knows, and the arguments that it has unless others are given.
IDS: dict[str, tuple[str, dict[str, Any]]] = {
    "beliefscope/TMaze-v0": ("t-maze", {"length": 10}),
    "beliefscope/MountainHike-v0": ("mountain-hike", {}),
    "beliefscope/File-v0": ("file", {}),
    **{f"beliefscope/{''.join(word.title() for word in name.split('-'))}-v0": (name, {}) for name in sorted(CLASSICS)},
}


def make(
    pomdp: POMDP | str | Path, *, belief: bool = False, filter: Filter | None = None, last_action: bool = False, **facts
) -> gymnasium.Env:
    """The POMDP as a Gymnasium environment.

    `pomdp` is a POMDP, a name ("t-maze", "tiger", …) with its arguments as `facts`, or the path of a `.pomdp` file.
    With `belief` the filter of the paper runs along, or `filter` where one is passed, and `info` has the belief. With
    `last_action` the agent is shown what it did.
    """
    built = named_pomdp(pomdp, **facts)
    env = Environment(built, filter=_filter(built, filter, belief))
    return LastAction(env) if last_action else env


def make_vec(
    pomdp: POMDP | str | Path,
    *,
    num_envs: int = 1,
    belief: bool = False,
    filter: Filter | None = None,
    last_action: bool = False,
    **facts,
) -> gymnasium.vector.VectorEnv:
    """The same as a vector environment of `num_envs` episodes."""
    built = named_pomdp(pomdp, **facts)
    envs = VectorEnvironment(built, num_envs, filter=_filter(built, filter, belief))
    return LastActionVector(envs) if last_action else envs


def named_pomdp(pomdp: POMDP | str | Path, **facts) -> POMDP:
    """A POMDP by name or by path; one that is there already comes back as it is."""
    if isinstance(pomdp, POMDP):
        require(
            not facts,
            rule="a POMDP that is built takes no further arguments",
            received=facts,
            advice="build it with them",
        )
        return pomdp
    name = str(pomdp)
    if name == "t-maze":
        return TMaze(**facts)
    if name == "mountain-hike":
        return MountainHike.of_paper(**facts)
    if name in CLASSICS:
        return classic(name, **facts)
    path = Path(facts.pop("path", "")) if name == "file" else Path(name)
    known = ["t-maze", "mountain-hike", *CLASSICS]
    require(
        path.is_file(),
        rule=f"a POMDP is an instance of POMDP, one of {known}, or the path of a .pomdp file",
        received=str(path) if name == "file" else name,
        advice=nearest(name, known, otherwise="correct the name or the path"),
    )
    return read_pomdp(path, **{"horizon": HORIZON, **facts})


def _register_ids() -> None:
    """Tell Gymnasium of every id, for `gymnasium.make` and `gymnasium.make_vec`."""
    for name, (pomdp, facts) in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="beliefscope.gymnasium:make",
                vector_entry_point="beliefscope.gymnasium:make_vec",
                kwargs={"pomdp": pomdp, **facts},
            )


def _filter(pomdp: POMDP, filter: Filter | None, belief: bool) -> Filter | None:
    return filter_of_paper(pomdp) if filter is None and belief else filter


_register_ids()
