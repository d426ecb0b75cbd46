"""What reading one candidate may cost: steps and seconds."""

from __future__ import annotations

import time

SECONDS = 2.5  #: of this thread's CPU time: other work on the machine does not count
STEPS = 3_000_000
SOURCE_BYTES = 600_000  #: of a candidate's file; models write some tens of thousands
CPP_CHARACTERS = 150_000  #: of all C++ in one candidate
FOLDED_CHARACTERS = 1_000_000  #: of one constant that is computed here


class TooMuch(Exception):
    """The budget is spent: the candidate is too large or too tangled to be read."""


class Budget:
    """Count work. Everything that loops over a candidate's text spends from it."""

    def __init__(self, seconds: float = SECONDS, steps: int = STEPS) -> None:
        self._deadline = time.thread_time() + seconds
        self._steps = steps

    def spend(self, steps: int = 1) -> None:
        """Raise `TooMuch` once the steps or the seconds are used up. The clock is read about every 256 steps."""
        before = self._steps
        self._steps -= steps
        if self._steps < 0:
            raise TooMuch("too much work")
        if before >> 8 != self._steps >> 8 and time.thread_time() > self._deadline:
            raise TooMuch("too much time")
