"""Work on text that a candidate wrote, in a process of its own with limits of time and memory.

Parsers and regular expressions have texts that keep them busy for hours, take all memory, or overflow a stack in native
code. Here such a text ends a child process, and its parent learns why.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hkbench.sandbox import linux

WALL = 6.0  #: times the limit of processor time: what is left where other programs have the processors
MAX_SAID = 64 << 20  #: bytes of all that is told
_NO_MEMORY, _FAILED = 3, 4  #: exit codes of the child

Tell = Callable[[Any], None]


@dataclass(frozen=True)
class Told:
    """What came of the work: all that it told, and why it did not come to its end; `None` where it did."""

    said: tuple[Any, ...]
    cut: str | None


class NotFinished(Exception):
    """Work that was to give an answer passed a limit first; the message says which."""


def answered(ask: Callable[[], Any], seconds: float, memory_bytes: int) -> Any:
    """Return what `ask` returns in a process of its own, see `apart`, as JSON holds it.

    Raises:
        NotFinished: it passed a limit, or failed.
    """
    told = apart(lambda tell: tell(ask()), seconds, memory_bytes)
    if told.cut is not None:
        raise NotFinished(told.cut)
    return told.said[0]


def apart(work: Callable[[Tell], None], seconds: float, memory_bytes: int) -> Told:
    """Run `work` in a fork of this process. It tells what it has to say, in values that JSON can hold.

    `seconds` of processor time and `memory_bytes` are for the work alone. An exception ends it, so that it has to catch
    those that are an answer. It must not use a device that this process has opened.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _work(work, read_end, write_end, seconds, memory_bytes)
    os.close(write_end)
    data: bytes | None = None
    try:
        data = _heard(read_end, time.monotonic() + WALL * seconds)
    finally:
        os.close(read_end)
        if data is None:  # it takes too long, says too much, or nobody waits for it any more
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    *lines, _ = (data or b"").split(b"\n")  # what follows the last line's end was cut
    return Told(tuple(json.loads(line) for line in lines), _cut(data, status, seconds, memory_bytes))


def _cut(data: bytes | None, status: int, seconds: float, memory_bytes: int) -> str | None:
    signalled = os.WIFSIGNALED(status)
    if data is None or (signalled and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return f"it took more than {seconds:g} s"
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NO_MEMORY:
        return f"it took more than {memory_bytes >> 20} MiB of memory"
    if os.WIFSIGNALED(status):
        return "it overflowed a stack, or took too much memory"
    return None if status == 0 else "an exception ended it"


def _heard(read_end: int, deadline: float) -> bytes | None:
    """Return all that comes until the other end is closed; None where that is too much or takes too long."""
    data = bytearray()
    poll = select.poll()  # which, unlike select, takes any number of a file
    poll.register(read_end, select.POLLIN)
    while len(data) <= MAX_SAID:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return None
        part = os.read(read_end, 1 << 20)
        if not part:
            return bytes(data)
        data += part
    return None


def _work(work: Callable[[Tell], None], read_end: int, write_end: int, seconds: float, memory_bytes: int) -> NoReturn:
    status = _FAILED
    try:
        linux.die_with_parent()
        faulthandler.disable()
        gc.disable()  # what the parent has on a device must not be given back from here
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.close(read_end)
        _limit(seconds, memory_bytes)
        work(lambda message: _say(write_end, message))
        status = 0
    except MemoryError:
        status = _NO_MEMORY
    finally:
        os._exit(status)


def _limit(seconds: float, memory_bytes: int) -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # The limit of processor time counts from the fork on, in whole seconds.
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, max(1, math.ceil(seconds))),
        (resource.RLIMIT_AS, taken + memory_bytes),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _say(write_end: int, message: Any) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(write_end, data) :]
