"""A sample in one line: what became of it, and when it was under way."""

from __future__ import annotations

from rich.text import Text

from hkbench.monitor.cells import cell
from hkbench.monitor.state import RUNNING, Phase, ProblemState, SampleState
from hkbench.monitor.words import duration
from hkbench.store.figures import speedup

_WORD = 17  # columns of what it came to
_LEAST = 8  # columns of a bar: with less room there is none


def sample_line(problem: ProblemState, key: tuple[int, int], width: int, now: float) -> Text:
    """`2.1* F fast 1.31x  12 s  ---##---`: the star is the best of its attempt, the bar goes from the first to the last
    event of the problem's samples."""
    attempt, number = key
    sample = problem.samples[key]
    letter, style = cell(sample)
    star = "*" if problem.chosen.get(attempt) == number else " "
    end = now if sample.phase in RUNNING else sample.since
    took = duration(max(0.0, end - sample.asked)) if sample.asked is not None else ""
    line = Text(f"{attempt}.{number}{star}".ljust(6), no_wrap=True, overflow="ellipsis")
    line.append(letter, style).append(f" {_word(sample):{_WORD}} {took:>12}  ")
    room = width - len(line)
    if room >= _LEAST and sample.asked is not None:
        before, during = _span(problem, sample.asked, end, room, now)
        line.append(" " * before).append("━" * during, style.replace(" reverse", ""))
    return line


def _word(sample: SampleState) -> str:
    if sample.phase is not Phase.JUDGED:
        return str(sample.stage if sample.stage is not None else sample.phase)
    if sample.speedup is not None:
        return f"{sample.status} {speedup(sample.speedup)}"
    return str(sample.kind if sample.kind is not None else sample.status)


def _span(problem: ProblemState, start: float, end: float, room: int, now: float) -> tuple[int, int]:
    """Columns before the bar, and of it."""
    first = min(sample.asked for sample in problem.samples.values() if sample.asked is not None)
    last = now if problem.running else max(sample.since for sample in problem.samples.values())
    scale = room / max(last - first, 1e-9)
    before = min(room - 1, max(0, int((start - first) * scale)))
    return before, max(1, min(room - before, round((end - start) * scale)))
