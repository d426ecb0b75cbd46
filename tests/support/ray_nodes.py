"""A Ray cluster of several nodes on this machine, as a process: `python -m support.ray_nodes NAME...`.

It prints the address, does what the lines of its standard input say (`add NAME`, `remove NAME`), a word back for each,
and ends with the input. A head that lends nothing is there beside the nodes, which have one core each.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import doors

PARTS = {"include_dashboard": False, "object_store_memory": 80 << 20}
#: Ray lets its workers run after everything else, so that where other tests run a card would hardly start.
EQUAL = {"RAY_worker_niceness": "0"}


class RayNodes:
    """The other end of such a process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self.address = self._line()

    def add(self, name: str) -> None:
        self._tell(f"add {name}")

    def remove(self, name: str) -> None:
        """Kill the node, with all of its processes."""
        self._tell(f"remove {name}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        assert self._line() == line

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the nodes' process ended; its message stands above"
        return line


@contextmanager
def ray_nodes(environment: dict[str, str], *names: str) -> Iterator[RayNodes]:
    """Start nodes; `environment` has their token, or none."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.ray_nodes", *names],
        env=doors.environment(environment | EQUAL | {"PYTHONPATH": str(Path(__file__).parents[1])}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield RayNodes(process)
    finally:
        process.communicate("", timeout=60)


def main() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "node_name": "head", **PARTS})
    nodes = {name: cluster.add_node(num_cpus=1, node_name=name, **PARTS) for name in sys.argv[1:]}
    print(cluster.address, flush=True)  # noqa: T201
    for line in sys.stdin:
        word, name = line.split()
        if word == "add":
            nodes[name] = cluster.add_node(num_cpus=1, node_name=name, **PARTS)
        else:
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print(line.strip(), flush=True)  # noqa: T201
    cluster.shutdown()


if __name__ == "__main__":
    main()
