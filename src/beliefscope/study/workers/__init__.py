"""Workers do the pieces of a study: processes on this machine, or tasks on a Ray cluster."""

import importlib.util

from beliefscope.errors import require
from beliefscope.study.workers.execute import Backend
from beliefscope.study.workers.local import Local


def choose_backend(name: str, *, address: str | None, workers: int | None) -> Backend:
    """The backend of that name; for Ray, connected to the cluster at `address`."""
    require(
        name in ("local", "ray"),
        rule="a study runs on the backend 'local' or 'ray'",
        received=name,
        advice="leave it out for this machine's cores",
    )
    if name == "local":
        require(
            address is None,
            rule="an address is that of a Ray cluster",
            received=address,
            advice="add --backend ray, or leave the address out",
        )
        return Local(workers)
    require(
        isinstance(address, str) and address != "",
        rule="the backend 'ray' needs the address of a cluster",
        received=address,
        advice="add --address HOST:PORT, which `ray start --head` prints, or --address auto on a node of the cluster",
    )
    if importlib.util.find_spec("ray") is None:
        raise ValueError("the backend 'ray' needs Ray, which is not installed; pip install 'beliefscope[ray]'.")
    from beliefscope.study.workers.ray import Ray  # imports Ray, which takes seconds

    return Ray(str(address), workers)
