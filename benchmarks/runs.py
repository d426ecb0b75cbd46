"""What benchmarks that take a while share: when to stop, how to be stopped, and several runs summed up."""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hkbench.cli.arguments import add_device
from hkbench.cli.settings import add_evaluation

SHUTDOWN_SECONDS = 10.0
FIRST_GUESS = 30.0  #: seconds that a step may take before one has been seen


class Deadline:
    """Whether one more step on a problem fits in, going by the longest that it has taken so far."""

    def __init__(self, limit: float | None, first_guess: float = FIRST_GUESS) -> None:
        """`limit`: seconds from now; `None`: there is none."""
        self._began = time.monotonic()
        self._limit = limit
        self._first_guess = first_guess
        self._longest: dict[str, float] = {}

    @property
    def left(self) -> float | None:
        """Seconds until work has to end, the time to shut down taken off; `None`: no limit."""
        return None if self._limit is None else self._limit - SHUTDOWN_SECONDS - (time.monotonic() - self._began)

    def allows(self, problem: str) -> bool:
        expected = self._longest.get(problem, max(self._longest.values(), default=self._first_guess))
        return self.left is None or 1.2 * expected <= self.left

    def took(self, problem: str, duration: float) -> None:
        self._longest[problem] = max(duration, self._longest.get(problem, 0.0))


def interruptible() -> None:
    """For a child before its program starts: a shell's background job ignores Ctrl-C and hands that down."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def add_evaluation_of_equals(parser: argparse.ArgumentParser) -> None:
    """The options of device and evaluation, for references that are judged as their own candidates."""
    add_device(parser)
    add_evaluation(parser)
    # PyTorch's kernels do the work, here on purpose; and a slow equal is nothing to be profiled.
    parser.set_defaults(track="any", profile_slow=False)


def load_runs(paths: Sequence[Path], facts: Sequence[str]) -> list[dict[str, Any]]:
    """The figures in the files of several runs of one machine; prints `facts` of the runs, and which of them differ."""
    loaded = [json.loads(path.read_text()) for path in paths]
    for key in facts:
        values = {str(run[key]) for run in loaded}
        print(f"{key}: {', '.join(sorted(values))}{' (the runs differ)' if len(values) > 1 else ''}")
    print()
    return [figure for run in loaded for figure in run["figures"]]
