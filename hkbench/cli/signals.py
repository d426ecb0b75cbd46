"""Ctrl-C and SIGTERM while a batch goes on."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hkbench.errors import Interrupted
from hkbench.lab import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _interrupted() -> Interrupted:
    return Interrupted("interrupted; the same command resumes the run, and asks for no reply twice")


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """The first signal abandons the run, the second cancels the task that is in here; later ones end the process.

    Raises:
        Interrupted: the second signal came.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "called outside of a task"
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}  # as of nohup, &
    forced = False

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler if forced and number == signal.SIGINT else handler)

    def on_signal() -> None:
        nonlocal forced
        if stop.abandoned:
            forced = True
            restore()
            task.cancel()
            return
        stop.abandon(_interrupted)
        calls = f"{stop.calls} model calls are under way and waited for" if stop.calls else "nothing is waited for"
        print(f"hkbench: ending: {calls}; the same signal again ends at once", file=sys.stderr, flush=True)

    for number in before:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    except asyncio.CancelledError:
        if not forced:
            raise
        task.uncancel()
        raise _interrupted() from None
    finally:
        if not forced:
            restore()
