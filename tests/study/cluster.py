"""A Ray cluster on this machine: a head without CPUs and two nodes of one CPU each.

It prints its address, then obeys its standard input: `lose` kills the node that came first, `join` starts another. At
the end of the input it goes down.
"""

import sys

from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

_STORE = 80 * 2**20  # bytes for objects; Ray takes no fewer


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": _STORE})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=_STORE) for _ in range(2)]
    try:
        print(cluster.address, flush=True)
        for line in sys.stdin:
            if line.strip() == "lose":
                cluster.remove_node(nodes.pop(0), allow_graceful=False)
            else:
                nodes.append(cluster.add_node(num_cpus=1, object_store_memory=_STORE))
            print("obeyed", flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
