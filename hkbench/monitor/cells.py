"""A sample in one character and a problem's name in its colour, for every view of the samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from hkbench.headline import classes_of
from hkbench.records import Outcome, Status
from hkbench.store.samples import Phase, ProblemState, SampleState
from hkbench.store.state import RunState

_BUILDING, _MEASURING = ("▹", "magenta"), ("▶", "bold magenta")
_PHASES: dict[Phase, tuple[str, str]] = {
    Phase.ASKED: ("…", "blue"),
    Phase.ANSWERED: ("▪", "blue"),
    Phase.EVALUATED: _BUILDING,
    Phase.LOST: ("E", "bold red reverse"),
    Phase.KEPT: ("▫", "blue"),
}
_TO_COME = ("·", "dim")
#: Every sign of a sample without a verdict, with its style and its meaning.
SIGNS = (
    (*_PHASES[Phase.ASKED], "waiting for the model"),
    (*_PHASES[Phase.ANSWERED], "reply received, waiting to be built"),
    (*_BUILDING, "being read, built or loaded"),
    (*_MEASURING, "on the device: run, compared or timed"),
    (*_PHASES[Phase.KEPT], "reply on disk; a resume evaluates it and asks no model"),
    (*_PHASES[Phase.LOST], "the service or the machine failed; a resume tries again"),
    (*_TO_COME, "still to come; blank: not needed"),
)
_WORDS = {
    Phase.ASKED: "waiting for model",
    Phase.ANSWERED: "reply received",
    Phase.LOST: "machine error",
    Phase.KEPT: "reply on disk",
}


def cell(sample: SampleState | None, *, wanted: bool = True) -> tuple[str, str]:
    """Return the sign of a sample and its style; `None` is a sample not begun, blank where it is not `wanted`."""
    if sample is None:
        return _TO_COME if wanted else (" ", "")
    if sample.status is not None:
        return _of(sample.outcome)
    return _MEASURING if sample.measured else _PHASES[sample.phase]


def _of(outcome: Outcome) -> tuple[str, str]:
    """Return a block in the colour of the class, with its sign."""
    return outcome.sign, f"reverse {outcome.style}"


def phase_word(sample: SampleState) -> str:
    """Return what is done with a sample that has no verdict: "waiting for model", "build", "time"."""
    return str(sample.stage) if sample.stage is not None else _WORDS.get(sample.phase, "building")


def name_style(problem: ProblemState) -> str:
    """Return the style of a problem's name: the class of a finished one, and whether another one was begun."""
    if problem.error is not None:
        return "bold red"
    if problem.closed:
        return problem.outcome.style
    return "bold" if problem.started else "dim"


def attempt_cells(problem: ProblemState, attempt: int, samples: int) -> Iterator[tuple[str, str]]:
    """Yield the samples of an attempt, `samples` of them, as runs of signs with their style.

    What a finished problem did not need is blank.
    """
    found = (problem.samples.get((attempt, sample)) for sample in range(1, samples + 1))
    drawn = [cell(sample, wanted=not problem.closed) for sample in found]
    for style, run in groupby(drawn, key=lambda pair: pair[1]):
        yield "".join(sign for sign, _ in run), style


def legend(state: RunState, width: int) -> Text:
    """Return the signs and their meaning in one line; of a run that is over those that it has."""
    outcomes = [*classes_of(state.config)]
    outcomes += [Outcome.REFUSED] if state.status_count(Status.REFUSED) else []
    parts = [(*_of(outcome), outcome.label, outcome.label) for outcome in outcomes]
    parts += _phases(state)
    spelled = [f"{sign} {word}" for sign, _, word, _ in parts]
    short = len("  ".join(spelled)) > width
    line = Text(no_wrap=True, overflow="ellipsis")
    for sign, style, word, abbreviation in parts:
        line.append("  " if line else "").append(sign, style).append(f" {abbreviation if short else word}")
    return line


def _phases(state: RunState) -> list[tuple[str, str, str, str]]:
    parts = []
    if not state.over:
        parts += [
            (*_PHASES[Phase.ASKED], "waiting for model", "model"),
            (*_PHASES[Phase.ANSWERED], "reply received", "reply"),
            (*_BUILDING, "building", "build"),
            (*_MEASURING, "measuring", "measure"),
        ]
    if state.in_phase(Phase.KEPT):
        parts.append((*_PHASES[Phase.KEPT], "reply on disk", "on disk"))
    if state.in_phase(Phase.LOST):
        parts.append((*_PHASES[Phase.LOST], "machine error", "error"))
    return parts
