"""A Ray cluster whose nodes have networks of their own (network namespaces on a bridge), which can be cut. Needs root.

The head, which lends nothing, and the controller are on this machine's side of the bridge.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support import doors
from support.ray_nodes import EQUAL, PARTS

BRIDGE = "hkbench0"
SUBNET = "10.213.77"
PORT = 6399
FIXED = ("--object-store-memory", str(PARTS["object_store_memory"]), "--disable-usage-stats", "--block")
START_SECONDS = 60.0
_UP = (("link", "set", "eth0", "up"), ("link", "set", "lo", "up"))


def possible() -> bool:
    """Return whether networks can be made here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    tries = (("link", "add", BRIDGE, "type", "bridge"), ("link", "del", BRIDGE), ("netns", "add", BRIDGE))
    made = [subprocess.run(["ip", *words], capture_output=True, check=False).returncode for words in tries]
    return not any(made) and not subprocess.run(["ip", "netns", "del", BRIDGE], check=False).returncode


class RayNetworks:
    """The nodes, by name."""

    def __init__(self, names: tuple[str, ...], environment: dict[str, str]) -> None:
        self.address = f"{SUBNET}.1:{PORT}"
        self._names = names
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")  # Ray's sockets want short paths
        self._environment = doors.environment(environment | EQUAL)
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{SUBNET}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        temporary = ("--temp-dir", self._folder.name, "--include-dashboard", "false")
        self._ray("--head", "--port", str(PORT), "--node-ip-address", f"{SUBNET}.1", "--num-cpus", "0", *temporary)
        for number, name in enumerate(self._names, start=2):
            _ip("netns", "add", name)
            _ip("link", "add", _link(name), "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", _link(name), "master", BRIDGE, "up")
            for words in (("addr", "add", f"{SUBNET}.{number}/24", "dev", "eth0"), *_UP):
                _ip("-n", name, *words)
            address = ("--address", self.address, "--node-ip-address", f"{SUBNET}.{number}", "--node-name", name)
            self._ray(*address, "--num-cpus", "1", within=name)

    def cut(self, name: str) -> None:
        """Let nothing through between a node and all others, without a word to either."""
        _ip("link", "set", _link(name), "down")

    def mend(self, name: str) -> None:
        _ip("link", "set", _link(name), "up")

    def stop(self) -> None:
        for name in self._names:
            left = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for pid in map(int, left.split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # By its cable: a namespace goes when the last of its processes has.
            for words in (("link", "del", _link(name)), ("netns", "del", name)):
                subprocess.run(["ip", *words], check=False, stderr=subprocess.DEVNULL)
        for process in self._processes:
            process.terminate()  # the head, with all that it started
        for process in self._processes:
            process.wait(timeout=60)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)
        self._folder.cleanup()

    def _ray(self, *words: str, within: str | None = None) -> None:
        """Start a node and wait until it has joined."""
        inside = () if within is None else ("ip", "netns", "exec", within)
        ray = str(Path(sys.executable).with_name("ray"))
        log = Path(self._folder.name, f"{within or 'head'}.log")
        with log.open("wb") as output:
            started = subprocess.Popen(
                [*inside, ray, "start", *words, *FIXED], env=self._environment, stdout=output, stderr=output
            )
        self._processes.append(started)
        deadline = time.monotonic() + START_SECONDS
        while b"Ray runtime started" not in log.read_bytes():
            assert started.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


def _link(name: str) -> str:
    """Return this side's end of a node's cable."""
    return f"hkb-{name}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def ray_networks(environment: dict[str, str], *names: str) -> Iterator[RayNetworks]:
    """Start nodes; `environment` has their token."""
    networks = RayNetworks(names, environment)
    try:
        networks.start()
        yield networks
    finally:
        networks.stop()
