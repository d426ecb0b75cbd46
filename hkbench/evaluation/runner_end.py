"""How a runner ended, by its guard's report."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunnerEnd:
    """How a runner ended. `signal` is the name of the one that killed it, unless the guard did."""

    reason: str  #: "asked", "ended" (by itself), or a limit: "memory", "processes", "disk", "depth", "cpu", "output"
    signal: str | None
    exit_code: int | None
    commands: tuple[str, ...]  #: programs that were running in its tree
    survivors: int
    peak_bytes: int
    output: str


def parse(report: Mapping[str, Any]) -> RunnerEnd:
    """Read a report. Raises KeyError, TypeError, ValueError: it is not one of a guard."""
    status = report["status"]
    own_end = status is not None
    signalled = own_end and os.WIFSIGNALED(status)
    killed_by_guard = signalled and os.WTERMSIG(status) == signal.SIGKILL
    return RunnerEnd(
        reason=report["reason"],
        signal=_signal_name(os.WTERMSIG(status)) if signalled and not killed_by_guard else None,
        exit_code=os.WEXITSTATUS(status) if own_end and os.WIFEXITED(status) else None,
        commands=tuple(report["commands"]),
        survivors=report["survivors"],
        peak_bytes=report["peak_bytes"],
        output=report["output"],
    )


def _signal_name(number: int) -> str:
    """Return a signal's name as signal(7) writes it; Python names only the first and last real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
