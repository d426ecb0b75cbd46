"""Compile what Triton's autotuner tries in processes side by side, where nothing is launched.

Triton compiles one configuration after the other: nine with large tiles take minutes. Here the first one is compiled in
this process and taken for the fastest, so that the autotuner needs no other; forks compile the rest, and leave it in
Triton's cache.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Sequence

from hkbench.runner import capture

MAX_FORKS = 4  #: at a time: other candidates are compiled beside this one, and a large tile takes gigabytes
FASTEST, OTHERS = 0.5, 1.0  #: milliseconds that the autotuner is told


class Forks:
    """The processes that compile configurations, and the autotuner's clock that starts them."""

    def __init__(self) -> None:
        self._most = min(MAX_FORKS, len(os.sched_getaffinity(0)) // 2)
        self._running: deque[int] = deque()
        self._compiled_first = False  # of the configurations that are being tried

    def benchmark(
        self, kernel_call: Callable[[], object], quantiles: Sequence[float] = (0.5,), **_: object
    ) -> list[float]:
        """Have a configuration compiled; return as many times as `quantiles`, which are the autotuner's."""
        if not self._compiled_first or not self._most:
            first = not self._compiled_first
            kernel_call()
            self._compiled_first = True
            return [FASTEST if first else OTHERS for _ in quantiles]
        if len(self._running) == self._most:
            self._wait()
        self._fork(kernel_call)
        return [OTHERS for _ in quantiles]

    def launched(self, *_: object, **__: object) -> None:
        """Take note of a launch: outside of `benchmark` it ends the trying."""
        self._compiled_first = False

    def finish(self) -> None:
        """Wait until all has been compiled."""
        while self._running:
            self._wait()

    def _fork(self, kernel_call: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
            child = os.fork()
        if child:
            self._running.append(child)
            return
        try:
            capture.listeners.clear()
            kernel_call()
        finally:
            os._exit(0)

    def _wait(self) -> None:
        with capture.building(), contextlib.suppress(ChildProcessError):
            os.waitpid(self._running.popleft(), 0)
