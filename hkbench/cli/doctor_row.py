"""What hkbench doctor says of one thing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from hkbench.records import DeviceKind

AMD = frozenset({DeviceKind.ROCM})
NVIDIA = frozenset({DeviceKind.CUDA})
ANY = frozenset(DeviceKind.known())


@dataclass(frozen=True)
class Row:
    """A line of the table with lines below it. `problem`: what is in the way of a run, and what to do."""

    what: str
    text: str
    details: tuple[str, ...] = ()  #: each begins with a word of its own, see `detail`
    problem: str | None = None
    missing_for: frozenset[DeviceKind] | None = None  #: it is not there; the devices whose runs it is for

    def state(self, kinds: Collection[DeviceKind] | None) -> str:
        """Return the state in a word or two. `kinds` are the devices that are here; None: nobody looked."""
        if self.problem is not None:
            return "problem"
        if self.missing_for is None:
            return "ok"
        return "missing" if kinds is None or not self.missing_for.isdisjoint(kinds) else "not needed"

    def lines(self) -> Iterator[str]:
        yield f"{self.what:<10} {self.text}"
        yield from (f"  {line}" for line in self.details)
        if self.problem is not None:
            yield f"  {detail('problem', self.problem)}"

    def data(self, kinds: Collection[DeviceKind] | None) -> dict[str, Any]:
        """Return the same for scripts."""
        pairs = [line.split(None, 1) for line in self.details]
        details = [{"what": pair[0], "text": pair[-1]} for pair in pairs]
        return {"what": self.what, "text": self.text, "details": details, "problem": self.problem} | {
            "state": self.state(kinds)
        }


def detail(word: str, text: str) -> str:
    """Return a line below a row."""
    return f"{word:<8} {text}"
