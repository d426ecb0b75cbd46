"""Signals that a batch takes for itself, and gives back."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from hkbench.cli.signals import stopped_by_signals
from hkbench.errors import Interrupted
from hkbench.lab import Stop


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As they were, whatever a test does. A shell's background job ignores Ctrl-C, one under nohup the hang-up too."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_the_first_tells_and_the_second_cancels(capsys: pytest.CaptureFixture[str]) -> None:
    stop = Stop()
    stop.calls = 2

    async def signalled() -> None:
        with stopped_by_signals(stop):
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(Interrupted):
                await stop.wait(60.0)
            assert "waiting for 2 model calls" in capsys.readouterr().err
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60.0)

    with pytest.raises(Interrupted, match="the same command resumes"):
        await signalled()
    task = asyncio.current_task()
    assert task is not None and not task.cancelling()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def test_a_hang_up_is_as_sigterm(capsys: pytest.CaptureFixture[str]) -> None:
    stop = Stop()
    with stopped_by_signals(stop):
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(Interrupted):
            await stop.wait(60.0)
    assert stop.cancelled and "Stopping." in capsys.readouterr().err


async def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(Stop()):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


async def test_what_was_ignored_stays_ignored() -> None:
    """Of a shell's background job, or under nohup."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = Stop()
    with stopped_by_signals(stop):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.01)
        assert not stop.requested
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
