"""A Ray cluster on this machine: a head without CPUs and two nodes of one CPU each.

It prints its address, then obeys its standard input: `lose train` and `lose measure` kill a node in the middle of such
a piece, `join` starts another. At the end of the input it goes down.
"""

import os
import signal
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster
from study.processes import end, open_files

_STORE = 80 * 2**20  # bytes for objects; Ray takes no fewer
_PATIENCE = 240.0  # seconds for a piece to come to its middle
_STORED = 3  # evaluations in the middle of a training


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": _STORE})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=_STORE) for _ in range(2)]
    try:
        print(cluster.address, flush=True)
        for line in sys.stdin:
            order, _, kind = line.strip().partition(" ")
            if order == "lose":
                node = _stopped(nodes, kind)
                nodes.remove(node)
                _lose(cluster, node)
            else:
                nodes.append(cluster.add_node(num_cpus=1, object_store_memory=_STORE))
            print("obeyed", flush=True)
    finally:
        cluster.shutdown()


def _stopped(nodes: list, kind: str):
    """The first node in the middle of such a piece. Its task is stopped there, so that the piece cannot be missed."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        for node in nodes:
            for task in _children(node):
                if _in_the_middle(task, kind):
                    os.kill(task, signal.SIGSTOP)
                    if _in_the_middle(task, kind):
                        return node
                    os.kill(task, signal.SIGCONT)
        time.sleep(0.01)
    raise TimeoutError(f"no {kind} to be hit")


def _lose(cluster: Cluster, node) -> None:
    """With all its processes, as a machine is lost."""
    left = _children(node)
    cluster.remove_node(node, allow_graceful=False)
    end(left)


def _children(node) -> list[int]:
    """The processes of a node's tasks, and Ray's own."""
    raylet = node.all_processes["raylet"][0].process.pid
    threads = Path(f"/proc/{raylet}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def _in_the_middle(process: int, kind: str) -> bool:
    """Does it hold the lock of such a piece, and has a training stored something?"""
    for file in open_files(process):
        if file.parent.name == "locks" and file.name.startswith(f"{kind}-"):
            metrics = file.parents[1] / "runs" / file.name.removeprefix("train-") / "metrics.jsonl"
            return kind != "train" or (metrics.exists() and metrics.read_bytes().count(b"\n") >= _STORED)
    return False


if __name__ == "__main__":
    main()
