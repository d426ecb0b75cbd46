"""The owner's side of a fork server: start it, ask for children, end it."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from hkbench.sandbox.environment import kept_environment

START_SECONDS = 180.0


class ForkServerLost(Exception):
    """The fork server did not start or died; `detail` is what it wrote to standard error."""


class ForkServer:
    """A running fork server for one module. Use as a context manager."""

    def __init__(self, module: str, environment: dict[str, str] | None = None) -> None:
        self._module = module
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self, prefix: Sequence[str] = ()) -> None:
        """Launch the process, under the command `prefix`; `wait_ready` waits until it has imported its module."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = kept_environment() if self._environment is None else self._environment
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "hkbench.sandbox.forkserver", str(theirs.fileno()), self._module],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._socket = ours

    def wait_ready(self) -> None:
        """Block until the server can fork.

        Raises:
            ForkServerLost: it ended, or was not ready in time.
        """
        assert self._socket is not None and self._process is not None
        ready, _, _ = select.select([self._socket], [], [], START_SECONDS)
        if not ready:
            raise ForkServerLost(f"{self._module} was not ready after {START_SECONDS:.0f} s")
        if not self._socket.recv(16):
            code = self._process.wait()
            raise ForkServerLost(f"{self._module} ended while it started (exit code {code}); see its message above")

    def share(self, modules: Sequence[str]) -> None:
        """Have further modules imported, which later children share; what is asked for next waits for that."""
        self._ask({"import": list(modules)}, [])

    def fork(self, fds: list[int], guard: Mapping[str, object] | None = None) -> None:
        """Start a child with copies of `fds`; the caller closes its own."""
        self._ask({"guard": guard}, fds)

    def _ask(self, request: Mapping[str, object], fds: list[int]) -> None:
        assert self._socket is not None
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], fds)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ForkServerLost(f"the fork server of {self._module} died") from error

    def close(self) -> None:
        """Close the socket, at which the server ends; its children live on until they are done."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def memory_file(name: str) -> int:
    """Return an empty anonymous file, to be sized and sealed (`seal_memory`) once its size is known."""
    return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def seal_memory(fd: int, size: int) -> None:
    """Fix the size: no holder can then shrink the file under another's mapping, which would kill that one.

    Raises:
        OSError: another holder sealed or resized it first.
    """
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    if os.fstat(fd).st_size != size:
        raise OSError("the size of a memory file changed before it was sealed")
