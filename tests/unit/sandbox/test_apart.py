"""Work in a child process with limits: what it tells, and why it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable

import pytest

from hkbench.sandbox.apart import Tell, apart

MEMORY = 256 << 20


def tells(tell: Tell) -> None:
    tell({"a": [1, 2.5, None, "größer"]})
    tell("x" * (3 << 20))


def test_what_is_told_arrives() -> None:
    told = apart(tells, 5.0, MEMORY)
    assert told.said == ({"a": [1, 2.5, None, "größer"]}, "x" * (3 << 20))
    assert told.cut is None


def spin(tell: Tell) -> None:
    tell("begun")
    while True:
        pass


def eat(tell: Tell) -> None:
    tell("begun")
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


def overflow(tell: Tell) -> None:
    tell("begun")
    ctypes.string_at(0)


def fail(tell: Tell) -> None:
    tell("begun")
    raise LookupError("nobody catches this")


def die_while_telling(tell: Tell) -> None:
    tell("begun")
    os.kill(os.getpid(), signal.SIGABRT)
    tell("never")


@pytest.mark.parametrize(
    ("work", "why"),
    [(spin, "1 s"), (eat, "256 MiB"), (overflow, "stack"), (fail, "exception"), (die_while_telling, "stack")],
)
def test_work_that_does_not_come_to_its_end(work: Callable[[Tell], None], why: str) -> None:
    told = apart(work, 1.0, MEMORY)
    assert told.said == ("begun",)
    assert told.cut is not None and why in told.cut


def sleep(tell: Tell) -> None:
    tell("begun")
    time.sleep(600)


def talk(tell: Tell) -> None:
    while True:
        tell("x" * (1 << 20))


@pytest.mark.parametrize("work", [sleep, talk])
def test_work_that_is_waited_for_in_vain(work: Callable[[Tell], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hkbench.sandbox.apart.WALL", 0.5)
    monkeypatch.setattr("hkbench.sandbox.apart.MAX_SAID", 8 << 20)
    assert apart(work, 2.0, MEMORY).cut is not None


def test_no_process_and_no_file_is_left() -> None:
    before = os.listdir("/proc/self/fd")
    for work in (tells, overflow):
        apart(work, 5.0, MEMORY)
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
