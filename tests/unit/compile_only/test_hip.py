"""A build in a thread ends when the evaluation that asked for it does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hkbench.compile_only.hip import _ended_with_us
from hkbench.toolchain.build_hip import BuildResult

PATIENCE = 20.0


async def test_a_cancelled_build_is_stopped_and_waited_for() -> None:
    begun, ended = threading.Event(), threading.Event()

    def build(stop: threading.Event) -> BuildResult:
        begun.set()
        assert stop.wait(PATIENCE), "nobody stopped it"
        ended.set()
        raise RuntimeError("what a stopped build says is of no interest")

    work = asyncio.ensure_future(_ended_with_us(build))
    await asyncio.to_thread(begun.wait, PATIENCE)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended.is_set()
