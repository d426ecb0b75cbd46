"""A sample in one character and a problem's name in its colour, for every view of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from hkbench.monitor.state import Phase, ProblemState, SampleState
from hkbench.records import Stage, Status

#: A sample in one character, with its style. The characters tell it without colour too.
CELLS: dict[Status | Phase, tuple[str, str]] = {
    Status.FAST: ("F", "bold green"),
    Status.SLOW: ("s", "yellow"),
    Status.INCORRECT: ("x", "red"),
    Status.REFUSED: ("r", "magenta"),
    Status.COMPILED: ("c", "cyan"),
    Phase.ASKED: ("?", "blue"),
    Phase.ANSWERED: ("-", "blue"),
    Phase.EVALUATED: ("b", "magenta"),
    Phase.LOST: ("!", "bold red reverse"),
}
_MEASURED = ("m", "bold magenta")  # on the device: run, compared or timed
_WAITING = (".", "dim")
_ON_DEVICE = (Stage.RUN, Stage.COMPARE, Stage.TIME)
LEGEND = "F fast, s slow, x wrong, r refused, ? asked, - reply, b build, m run, ! lost"


def cell(sample: SampleState | None) -> tuple[str, str]:
    """The character and its style; `None` is a sample that was not begun."""
    if sample is None:
        return _WAITING
    if sample.stage in _ON_DEVICE:
        return _MEASURED
    return CELLS[sample.status if sample.status is not None else sample.phase]


def name_style(problem: ProblemState) -> str:
    """The style of a problem's name."""
    if problem.error is not None:
        return "bold red"
    if problem.closed:
        return "green" if problem.solved else CELLS[Status.COMPILED][1] if problem.compiled else ""
    return "bold" if problem.started else "dim"


def attempt_cells(problem: ProblemState, attempt: int, samples: int) -> Iterator[tuple[str, str]]:
    """The samples of an attempt, `samples` at least, as runs of characters with their style."""
    drawn = [cell(problem.samples.get((attempt, sample))) for sample in range(1, samples + 1)]
    for style, run in groupby(drawn, key=lambda pair: pair[1]):
        yield "".join(letter for letter, _ in run), style


def attempt_widths(problems: Iterable[ProblemState], attempts: int, samples: int) -> list[int]:
    """Columns of each attempt: its samples and its title, "try 1"."""
    most = [samples] * attempts
    for problem in problems:
        for attempt, sample in problem.tally.widest.items():
            most.extend([samples] * (attempt - len(most)))
            most[attempt - 1] = max(most[attempt - 1], sample)
    return [max(n, len(f"try {k}")) for k, n in enumerate(most, start=1)]
