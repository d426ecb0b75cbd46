"""How many samples of a run are judged, of how many: a counter for lines that are printed once."""

from __future__ import annotations

from hkbench.records import AnyEvent, ProblemClosed, RunConfig, SampleKey, VerdictReached


class SampleCount:
    """A fold of a run's events. The total shrinks where a problem ends before all its attempts are used."""

    def __init__(self, config: RunConfig) -> None:
        self._most = config.samples * config.attempts
        self._judged: dict[str, set[SampleKey]] = {name: set() for name in config.problems}
        self._closed: set[str] = set()

    def apply(self, event: AnyEvent) -> None:
        """Take the next event."""
        match event:
            case VerdictReached():
                self._judged.setdefault(event.key.problem, set()).add(event.key)
                self._closed.discard(event.key.problem)
            case ProblemClosed() if event.error is None:
                self._closed.add(event.problem)
            case _:
                pass

    @property
    def judged(self) -> int:
        return sum(map(len, self._judged.values()))

    @property
    def total(self) -> int:
        """Those judged, and all that may still come."""
        return sum(
            len(keys) if name in self._closed else max(len(keys), self._most) for name, keys in self._judged.items()
        )

    def __str__(self) -> str:
        """The counter, `[  7/120]`."""
        width = len(str(self._most * len(self._judged)))
        return f"[{self.judged:>{width}}/{self.total}]"
