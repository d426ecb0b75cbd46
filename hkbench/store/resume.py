"""What of a run need not be looked at again."""

from __future__ import annotations

from collections.abc import Iterable

from hkbench.records import AnyEvent, ProblemClosed, ProblemStarted, RunClosed, RunStarted, VerdictReached
from hkbench.store.layout import RunPaths


def finished_problems(paths: RunPaths, events: Iterable[AnyEvent]) -> dict[str, ProblemClosed]:
    """The problems that were closed without an error, and whose verdicts all lie in the folder still.

    A problem that something happened to after it was closed is not finished: somebody asked for more.
    """
    closed: dict[str, ProblemClosed] = {}
    judged: dict[str, set[tuple[int, int]]] = {}
    for event in events:
        match event:
            case RunStarted() | RunClosed():
                pass
            case ProblemClosed():
                closed[event.problem] = event
            case VerdictReached():
                judged.setdefault(event.key.problem, set()).add((event.key.attempt, event.key.sample))
                closed.pop(event.key.problem, None)
            case ProblemStarted():
                closed.pop(event.problem, None)
            case _:
                pass
    return {
        name: event
        for name, event in closed.items()
        if event.error is None
        and all(paths.problem(name).sample(*place).result.exists() for place in judged.get(name, ()))
    }
