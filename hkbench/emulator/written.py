"""Which bytes kernels wrote: ranges that are joined where they meet."""

from __future__ import annotations

from hkbench.emulator.arena import Range

COMPACTED = 1 << 14  #: ranges beyond which they are joined at once


class Written:
    """A set of bytes, grown by ranges."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []  # (begin, end)
        self._joined = 0

    def add(self, one: Range) -> None:
        """Count the bytes of a range as written."""
        self._ranges.append((one.begin, one.end))
        if len(self._ranges) > 2 * self._joined + COMPACTED:
            self._join()

    def within(self, one: Range) -> int:
        """Return how many bytes of a range were written."""
        self._join()
        return sum(max(0, min(end, one.end) - max(begin, one.begin)) for begin, end in self._ranges)

    def _join(self) -> None:
        joined: list[tuple[int, int]] = []
        for begin, end in sorted(self._ranges):
            if joined and begin <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((begin, end))
        self._ranges, self._joined = joined, len(joined)
