"""Commands within this process, with one pair of fork servers for all of them.

A command that is a process of its own imports torch three times over before it does anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from support import processes

from hkbench.cli import main
from hkbench.engine import confinement, evaluator, factory
from hkbench.records import Isolation
from hkbench.sandbox.client import ForkServer

Door = Callable[[Sequence[str]], int]


class KeptServer(ForkServer):
    """A fork server that closing leaves running, for the next evaluator; `end` ends it."""

    def __init__(self, module: str, environment: dict[str, str] | None) -> None:
        super().__init__(module, environment)
        self._ready = False

    def start(self, prefix: Sequence[str] = ()) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        super().start(prefix)
        if self._process is not None:
            processes.SHARED.add(self._process.pid)

    def wait_ready(self) -> None:
        if not self._ready:
            super().wait_ready()
            self._ready = True

    def close(self) -> None:
        """Do nothing: the next evaluator takes the server."""

    def end(self) -> None:
        """End the server's process."""
        self._ready = False
        if self._process is not None:
            processes.SHARED.discard(self._process.pid)
        super().close()


_servers: dict[str, KeptServer] = {}
_isolation: list[Isolation] = []


def _kept(server: ForkServer) -> ForkServer:
    """Return the session's server for the same module, or `server` itself where a test has changed its environment."""
    kept = _servers.setdefault(server._module, KeptServer(server._module, server._environment))
    return kept if kept._environment == server._environment else server


class SharingEvaluator(evaluator.LocalEvaluator):
    """An evaluator that forks from the session's servers."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._workers, self._runners = _kept(self._workers), _kept(self._runners)
        self._measuring = self._workers_of(())


async def _survey_once() -> Isolation:
    if not _isolation:
        _isolation.append(await confinement.survey())
    return _isolation[0]


def end() -> None:
    """End the session's servers."""
    for server in _servers.values():
        server.end()
    _servers.clear()


def possible() -> bool:
    """Return whether a command can run here: it wants a loop of its own, and its signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread() or "HKBENCH_TEST_PROCESSES" in os.environ:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


def by_script(name: str) -> Door:
    """Return what the script of a command calls."""
    return lambda words: main.door(name, words)


def finished(
    door: Door, program: str, words: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in `folder` under exactly this `environment`; its output and exit code."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", None))  # by TMPDIR of that environment
        stack.enter_context(mock.patch.object(sys, "argv", [program, *words]))
        stack.enter_context(mock.patch.object(sys, "stdin", stack.enter_context(Path(os.devnull).open())))
        stack.enter_context(mock.patch.object(factory, "local_evaluator", SharingEvaluator))
        stack.enter_context(mock.patch.object(evaluator, "survey", _survey_once))
        stack.enter_context(mock.patch("hkbench.cli.main.linux.set_dumpable"))  # psutil has to see the tests' process
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(_within(limit))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            code = door(words)
        except SystemExit as ended:  # argparse's
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess([program, *words], code, said, complained)


@contextlib.contextmanager
def _within(limit: float) -> Iterator[None]:
    """Raise TimeoutError after `limit` seconds."""

    def late(*_: object) -> None:
        raise TimeoutError(f"the command did not end within {limit:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
