"""The judge's end of one runner: requests with deadlines, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hkbench.errors import WorkerLost
from hkbench.runner import wire

GUARD_SECONDS = 30.0


@dataclass(frozen=True)
class RunnerEnd:
    """How a runner ended. `signal` is the name of the one that killed it, unless the guard did."""

    reason: str  #: "asked", "ended" (by itself), "memory", "processes"
    signal: str | None
    exit_code: int | None
    commands: tuple[str, ...]  #: programs that were running in its tree
    survivors: int
    peak_bytes: int
    output: str
    output_bytes: int


class RunnerGone(Exception):
    """The runner closed its channel: it crashed, left, or a limit ended it."""


class RunnerTimeout(Exception):
    """The runner did not answer in time; `building` says whether a compiler was at work."""

    def __init__(self, building: bool) -> None:
        super().__init__("no answer in time")
        self.building = building


class RunnerBabble(Exception):
    """The runner sent what a runner never sends."""


class RunnerLink:
    """Requests go one at a time; `build_seconds` adds up the time that builds took."""

    def __init__(self, channel: socket.socket, control: socket.socket) -> None:
        self._channel = channel
        self._control = control
        self._end: RunnerEnd | None = None
        self.build_seconds = 0.0

    def request(
        self,
        op: str,
        seconds: float,
        build_seconds: float = 0.0,
        on_build: Callable[[], None] | None = None,
        **fields: Any,
    ) -> wire.Message:
        """Sends one message and returns the answer, which may say `ok: false`.

        `seconds` is the limit without the time in which the runner says that it builds; all of its builds together
        have `build_seconds`. The runner's word can shift time from one to the other, but never extend both.

        Raises:
            RunnerGone, RunnerTimeout, RunnerBabble
        """
        try:
            wire.send(self._channel, {"op": op, **fields})
            deadline = time.monotonic() + seconds
            left = seconds
            began = 0.0
            builds = 0  # threads may build side by side
            while True:
                try:
                    answer = wire.receive(self._channel, deadline)
                except TimeoutError as error:
                    raise RunnerTimeout(builds > 0) from error
                event = answer.get("event")
                if event == "build_begin" and build_seconds:
                    builds += 1
                    if builds == 1:
                        began = time.monotonic()
                        left = deadline - began
                        deadline = began + max(0.0, build_seconds - self.build_seconds)
                        if on_build is not None:
                            on_build()
                elif event == "build_end" and builds:
                    builds -= 1
                    if not builds:
                        now = time.monotonic()
                        self.build_seconds += now - began
                        deadline = now + left
                elif isinstance(answer.get("ok"), bool):
                    return answer
                else:
                    raise RunnerBabble("the runner answered with neither a result nor an error")
        except wire.PeerClosed as error:
            raise RunnerGone("the runner's process ended without an answer") from error
        except wire.WireError as error:
            raise RunnerBabble(str(error)) from error

    def end(self) -> RunnerEnd:
        """Ends the runner with everything it started; the same report when asked again.

        Raises:
            WorkerLost: the guard did not report, so nobody knows whether the tree is gone.
        """
        if self._end is None:
            self._channel.close()
            self._end = _parse(self._ask_guard())
        return self._end

    def _ask_guard(self) -> dict[str, Any]:
        report = b""
        try:
            self._control.settimeout(GUARD_SECONDS)
            # It may have ended by itself (a limit); then its report waits to be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._control.sendall(b"K")
            while not report.endswith(b"\n"):
                part = self._control.recv(1 << 16)
                if not part:
                    break
                report += part
            loaded = json.loads(report)
        except (OSError, ValueError) as error:
            raise WorkerLost(f"the guard of a runner did not report ({error}); kill leftovers by hand") from error
        finally:
            self._control.close()
        assert isinstance(loaded, dict)
        return loaded


def _parse(report: dict[str, Any]) -> RunnerEnd:
    status = report["status"]
    own_end = status is not None
    signalled = own_end and os.WIFSIGNALED(status)
    killed_by_guard = signalled and os.WTERMSIG(status) == signal.SIGKILL
    return RunnerEnd(
        reason=report["reason"],
        signal=signal.Signals(os.WTERMSIG(status)).name if signalled and not killed_by_guard else None,
        exit_code=os.WEXITSTATUS(status) if own_end and os.WIFEXITED(status) else None,
        commands=tuple(report["commands"]),
        survivors=report["survivors"],
        peak_bytes=report["peak_bytes"],
        output=report["output"],
        output_bytes=report["output_bytes"],
    )
