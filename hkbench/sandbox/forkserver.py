"""A process that has imported torch and nothing else happened in it, and forks a fresh child for each request.

`python -m hkbench.sandbox.forkserver FD MODULE` imports MODULE (whose imports are what the children share), then reads
requests from the socket FD: a JSON object with file descriptors beside it. The child calls `MODULE.serve(*fds)`,
guarded (see guard.py) when the request says so. Importing torch costs seconds, a fork of this process milliseconds;
since it never touched a GPU, a child gets a device context of its own. A request may also name further modules that
children are to share from then on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from hkbench.sandbox import guard, linux
from hkbench.sandbox.cage import Cage

MAX_REQUEST = 1 << 18
MAX_FDS = 16


def main() -> None:
    """Serve until the other end closes."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    with _importing():
        serve: Callable[..., None] = importlib.import_module(sys.argv[2]).serve
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are nobody's zombies
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the engine, which then closes the socket
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the owner has ended for a reason of its own
        requests.send(b"ready")
        _answer(requests, serve)
    # Not by the interpreter's end, at which extension modules report as leaked what is frozen (nanobind, in Triton).
    os._exit(0)


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    gc.disable()  # the search for garbage is a seventh of the time in which torch is imported, and finds none
    try:
        yield
    finally:
        gc.freeze()  # a child that looks for garbage need not go through what is imported
        gc.enable()


def _answer(requests: socket.socket, serve: Callable[..., None]) -> None:
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(requests, MAX_REQUEST, MAX_FDS)
        except ConnectionResetError:  # the owner was killed
            return
        if not data:
            return
        request = json.loads(data)
        if "import" in request:
            with _importing():
                for module in request["import"]:
                    with contextlib.suppress(ImportError):  # a child that needs it says so
                        importlib.import_module(module)
            continue
        pid = os.fork()
        if pid == 0:
            requests.close()
            _child(request, fds, serve)
        for fd in fds:
            os.close(fd)


def _child(request: dict[str, Any], fds: list[int], serve: Callable[..., None]) -> None:
    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for fd in fds:
            os.set_inheritable(fd, False)
        if request["guard"] is None:
            linux.die_with_parent()  # an evaluator whose engine is gone must not keep the device busy
            serve(*fds)
        else:
            control, channel, *files = fds
            sock = socket.socket(fileno=channel)
            guard.run(
                socket.socket(fileno=control),
                lambda: serve(sock, *files),
                guard.Limits(**request["guard"]["limits"]),
                request["guard"]["folder"],
                request["guard"]["environment"],
                [sock, *files],
                Cage(**request["guard"]["cage"]),
            )
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process: nobody above could handle it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
