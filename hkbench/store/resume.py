"""What of a run need not be done or paid for again."""

from __future__ import annotations

from collections.abc import Iterator

from hkbench.records import CallKey, ProblemClosed, SampleKey
from hkbench.store.costs import Spending
from hkbench.store.layout import AdvicePaths, ProblemPaths, RunPaths, SamplePaths
from hkbench.store.reader import advice_folders, read_exchange, sample_folders
from hkbench.store.state import RunState


def finished_problems(paths: RunPaths, state: RunState, extended: float | None = None) -> dict[str, ProblemClosed]:
    """Return the problems that were closed without an error, and whose verdicts all lie in the folder still.

    A problem that something happened to after it was closed is not finished: somebody asked for more. Neither is one
    that was closed before `extended`, when samples or attempts were added to the run (seconds since the epoch): its
    strategy has to say whether it needs them.
    """
    return {
        name: problem.end
        for name, problem in state.problems.items()
        if problem.end is not None
        and problem.closed
        and not problem.revised
        and (extended is None or problem.end.time > extended)
        and all(
            paths.problem(name).sample(*place).result.exists()
            for place, one in problem.samples.items()
            if one.verdict is not None
        )
    }


def spent_before(paths: RunPaths, state: RunState) -> Spending:
    """Return what the folder's replies have cost: by the journal, else by exchange.json (a crash between the two)."""
    spending, config = state.spending, state.config
    for name in config.problems:
        for key, folder in _calls(paths.problem(name), name):
            if key not in spending:
                reply = read_exchange(paths, folder, config.replay is not None, [])
                if reply is not None:
                    spending.take(key, reply.usage, reply.replayed)
    return spending


def _calls(paths: ProblemPaths, name: str) -> Iterator[tuple[CallKey, SamplePaths | AdvicePaths]]:
    """Go through all calls of which a problem's folder holds something."""
    for attempt, sample in sample_folders(paths.root):
        yield SampleKey(problem=name, attempt=attempt, sample=sample), paths.sample(attempt, sample)
    for key in advice_folders(paths.root, name):
        yield key, paths.advice(key.attempt, key.call, key.role)
