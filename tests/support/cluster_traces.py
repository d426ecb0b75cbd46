"""What a node of a Ray cluster has beside the harness, for attacks to look for: no Ray is needed."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock


@contextmanager
def planted() -> Iterator[None]:
    """Leave a port that listens, a session with a socket, settings with a token, and a file of shared memory."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        settings = {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "not for candidates"}
        stack.enter_context(mock.patch.dict(os.environ, settings))
        session = Path("/tmp/ray", f"session_of_a_test_{os.getpid()}")
        for folder in (session.parent, session, session / "sockets"):  # the last one goes first
            stack.callback(_remove, folder)
        (session / "sockets").mkdir(parents=True)
        raylet = stack.enter_context(socket.socket(socket.AF_UNIX))
        raylet.bind(str(session / "sockets" / "raylet"))
        stack.callback((session / "sockets" / "raylet").unlink)
        raylet.listen()
        store = Path("/dev/shm", f"plasma_of_a_test_{os.getpid()}")
        store.write_bytes(b"not for candidates")
        stack.callback(store.unlink)
        yield


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # a real cluster's files are beside
