"""What of a run need not be looked at again."""

from __future__ import annotations

from collections.abc import Iterable

from hkbench.records import (
    AnyEvent,
    ProblemClosed,
    ProblemStarted,
    PromptRendered,
    RunClosed,
    RunStarted,
    VerdictReached,
)
from hkbench.store.layout import RunPaths


def finished_problems(
    paths: RunPaths, events: Iterable[AnyEvent], extended: float | None = None
) -> dict[str, ProblemClosed]:
    """The problems that were closed without an error, and whose verdicts all lie in the folder still.

    A problem that something happened to after it was closed is not finished: somebody asked for more. Neither is one
    that was closed before `extended`, when samples or attempts were added to the run (seconds since the epoch): its
    strategy has to say whether it needs them.
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
        and (extended is None or event.time > extended)
        and all(paths.problem(name).sample(*place).result.exists() for place in judged.get(name, ()))
    }


def deciding_samples(events: Iterable[AnyEvent]) -> dict[str, dict[int, frozenset[int]]]:
    """By problem and attempt, the samples that were judged before the prompt of the next attempt was made.

    What a strategy decided on is fixed by that prompt and the replies to it: samples that are added to the attempt
    later count for the result, and change no decision. Attempts without a next one are left out.
    """
    judged: dict[tuple[str, int], set[int]] = {}
    deciding: dict[str, dict[int, frozenset[int]]] = {}
    for event in events:
        match event:
            case VerdictReached():
                judged.setdefault((event.key.problem, event.key.attempt), set()).add(event.key.sample)
            case PromptRendered() if event.attempt > 1:
                before = frozenset(judged.get((event.problem, event.attempt - 1), ()))
                if before:
                    deciding.setdefault(event.problem, {}).setdefault(event.attempt - 1, before)
            case _:
                pass
    return deciding
