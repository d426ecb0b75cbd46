"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP) while a batch runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hkbench.errors import Interrupted
from hkbench.headline import plural
from hkbench.lab import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupted() -> Interrupted:
    return Interrupted("interrupted; the same command resumes the run, and asks for no reply twice")


def _leave_terminal() -> None:
    """Send what is still printed to nowhere: writing to a terminal that was closed is an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream.isatty():
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _stopping(calls: int) -> str:
    if not calls:
        return "Stopping. Press Ctrl-C again to stop at once."
    waiting = f"waiting for {plural(calls, 'model call')} (already paid for)"
    return f"Stopping: {waiting}. Press Ctrl-C again to stop at once."


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Let the first signal cancel the run and the second the task that is in here; later ones end the process.

    A hang-up comes twice, from the terminal and when its shell ends, so a second one changes nothing.

    Raises:
        Interrupted: the second signal came.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "called outside of a task"
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}  # as of nohup, &
    if threading.current_thread() is not threading.main_thread():  # of a notebook: only the main thread takes signals
        before = {}
    forced = False

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler if forced and number == signal.SIGINT else handler)

    def on_signal(number: signal.Signals) -> None:
        nonlocal forced
        if number == signal.SIGHUP:
            _leave_terminal()
            if stop.cancelled:
                return
        if stop.cancelled:
            forced = True
            restore()
            task.cancel()
            return
        stop.cancel(_interrupted)
        print(f"hkbench: {_stopping(stop.calls)}", file=sys.stderr, flush=True)

    for number in before:
        loop.add_signal_handler(number, on_signal, number)
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
