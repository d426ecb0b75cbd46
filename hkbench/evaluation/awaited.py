"""What an answer of a runner's is waited for with: a time limit that builds put off, and the gate of a call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

from hkbench.protocol import wire


class Gated(Protocol):
    """A call whose inputs are released some time after the runner has begun it; on a CPU it says that it has ended.

    `look` returns in how many seconds it wants to look at the released call again; None where it does not.
    """

    number: int
    hold_seconds: float

    def release(self) -> None: ...

    def look(self) -> float | None: ...

    def end(self, told: wire.Message) -> None: ...


class BuildLimit:
    """When an answer has to be there, by time.monotonic.

    What is built meanwhile has a limit of its own. The runner's word can shift time from one to the other, but never
    extend both.
    """

    def __init__(self, seconds: float, build_seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self._build_seconds = build_seconds
        self._running = 0  # threads may build side by side
        self._began = self._left = 0.0

    @property
    def building(self) -> bool:
        """Whether a build is running."""
        return self._running > 0

    def begin(self) -> bool:
        """Note that a build begins; return whether it is the only one that runs."""
        self._running += 1
        if self._running == 1:
            self._began = time.monotonic()
            self._left = self.deadline - self._began
            self.deadline = self._began + max(0.0, self._build_seconds)
        return self._running == 1

    def put_off(self, seconds: float) -> None:
        """Note that a build that goes on had to wait for others."""
        self._began += seconds
        self.deadline += seconds

    def end(self) -> float:
        """Note that a build ends; return the seconds that it and others beside it took, when it is the last of them."""
        self._running -= 1
        if self._running:
            return 0.0
        now = time.monotonic()
        took = now - self._began
        self._build_seconds -= took
        self.deadline = now + self._left
        return took


class GateWatch:
    """Release a gated call when that is due, and look at it until it needs that no more. Without one, do nothing."""

    def __init__(self, gated: Gated | None, speaks: Callable[[float], bool]) -> None:
        """`speaks` waits some seconds for the runner to say something, and returns whether it does."""
        self._gated = gated
        self._speaks = speaks
        self._due: float | None = None
        self._begun = False

    def told(self, message: wire.Message) -> bool:
        """Take what the runner says of the call; return whether it is of that."""
        if self._gated is None:
            return False
        if message.get("event") == "begun" and not self._begun:
            self._begun = True
            self._due = time.monotonic() + self._gated.hold_seconds
            return True
        if message.get("event") == "end":
            self._gated.end(message)
            return True
        return False

    def wait(self, until: float = math.inf) -> None:
        """Do what is to be done until the runner says something, or a time of time.monotonic."""
        if self._gated is None or not self._begun:
            return
        if self._due is not None:
            if self._speaks(self._due - time.monotonic()):
                return
            self.release()
        while (pause := self._gated.look()) is not None:
            if self._speaks(pause) or time.monotonic() > until:
                return

    def release(self) -> None:
        """Release the call if the runner has begun it and that was not done yet."""
        if self._gated is not None and self._due is not None:
            self._due = None
            self._gated.release()
