"""Where the cluster is, and whether it demands a token: what reaches a Ray cluster without one owns every node."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from hkbench.errors import Unavailable, UsageError

AUTO = "auto"
CONNECT_SECONDS = 5.0
PROBE_SECONDS = 60.0
_TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
REFUSED, ANSWERED = "refused", "answered"

#: Asks a cluster who its nodes are, without a token. A process of its own: Ray reads its settings once.
_PROBE = f"""
import sys
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=20)
except Exception as error:
    refused = isinstance(error, AuthenticationError) or "InvalidAuthToken" in str(error)
    print({REFUSED!r} if refused else repr(error))
else:
    print({ANSWERED!r})
"""


class ClusterUnavailable(Unavailable):
    """There is no cluster, it cannot be reached, or it lets everybody in."""


def find_cluster(asked: str, environment: MutableMapping[str, str]) -> str | None:
    """Return the address of the cluster that is meant; `None`: none runs here, and one is to be started.

    Raises:
        UsageError: the address is none.
        ClusterUnavailable: nothing listens there.
    """
    address = asked
    if asked == AUTO:
        named = environment.get("RAY_ADDRESS", "")
        address = named if named not in ("", AUTO, "local") else _running(environment)
        if not address or (not named and not _listens(address)):
            return None
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "//" in host:
        raise UsageError(f"--cluster {address}: write the address of the cluster's head as HOST:PORT, as 10.0.0.1:6379")
    if not _listens(address):
        raise ClusterUnavailable(
            f"no cluster answers at {address}: start one there with `ray start --head --port={port}` "
            "(docs/cluster.md), or leave the address to --cluster auto"
        )
    return address


def demand_token(address: str | None, environment: MutableMapping[str, str]) -> None:
    """Have this process speak to the cluster with a token, of its own for one that it starts.

    Raises:
        ClusterUnavailable: this process has no token, or the cluster at `address` answers without one.
    """
    environment["RAY_AUTH_MODE"] = "token"
    if address is None:
        environment["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        environment.pop("RAY_AUTH_TOKEN_PATH", None)
        return
    default = Path(environment.get("HOME", "/nonexistent"), ".ray", "auth_token")
    if not any(environment.get(name) for name in _TOKEN) and not default.is_file():
        raise ClusterUnavailable(
            f"there is no token for the cluster at {address}: name the file that its nodes were started with in "
            "RAY_AUTH_TOKEN_PATH, or put it at ~/.ray/auth_token (docs/cluster.md)"
        )
    said = answer_without_token(address, environment)
    if said == ANSWERED:
        raise ClusterUnavailable(
            f"the cluster at {address} obeys everybody who reaches it, and candidates are hostile: start all of its "
            "nodes with RAY_AUTH_MODE=token (`ray get-auth-token --generate` makes a token; docs/cluster.md)"
        )
    if said != REFUSED:
        raise ClusterUnavailable(f"what listens at {address} is no Ray cluster of this version: {said}")


def answer_without_token(address: str, environment: MutableMapping[str, str]) -> str:
    """Return what a cluster says to somebody without a token: `REFUSED`, `ANSWERED`, or an error's text."""
    bare = {name: value for name, value in environment.items() if not name.startswith("RAY_")}
    with tempfile.TemporaryDirectory(prefix="hkbench-") as home:  # nor one at ~/.ray/auth_token
        bare |= {"RAY_AUTH_MODE": "disabled", "HOME": home}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROBE, address],
                env=bare, capture_output=True, text=True, errors="replace", check=False, timeout=PROBE_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {PROBE_SECONDS:g} s"
    return (done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no answer"])[-1][:500]


def _running(environment: MutableMapping[str, str]) -> str:
    """Return the address that `ray start` left on this machine; empty where none did."""
    folder = Path(environment.get("RAY_TMPDIR") or "/tmp", "ray")  # noqa: S108 - Ray's own place
    try:
        path = folder / "ray_current_cluster"
        return path.read_text().strip() if path.stat().st_uid in (0, os.geteuid()) else ""
    except OSError:
        return ""


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
