"""A sample in one line: what became of it, and when it waited and was worked on."""

from __future__ import annotations

from rich.text import Text

from hkbench.monitor.cells import cell, phase_word
from hkbench.monitor.format import duration
from hkbench.store.figures import speedup
from hkbench.store.samples import RUNNING, Activity, ProblemState, SampleState, spans

_WORD = 18  # columns of what it came to
_TOOK = 25  # columns of its time: "12 min 07 s (59 s waiting)"
_MIN_BAR_WIDTH = 8  # columns of a bar: with less room there is none

#: The bar of each activity: they differ without colour, too.
BARS: dict[Activity, tuple[str, str]] = {
    Activity.MODEL: ("─", "blue"),
    Activity.WAIT: ("┈", "dim"),
    Activity.BUILD: ("━", "magenta"),
    Activity.MEASURE: ("█", "cyan"),
}


def bar_legend() -> Text:
    """Return what the bars mean."""
    words = {Activity.MODEL: "model", Activity.WAIT: "waiting", Activity.BUILD: "build", Activity.MEASURE: "measure"}
    parts = [part for activity, (sign, style) in BARS.items() for part in ((sign * 2, style), f" {words[activity]}  ")]
    return Text.assemble(*parts)


def sample_line(problem: ProblemState, key: tuple[int, int], width: int, now: float) -> Text:
    """Return `2.1* + faster 1.31x  12 s (3 s waiting)  ─┈━█`.

    The star is the best of its attempt; the bar goes from the first to the last event of the problem's samples.
    """
    attempt, number = key
    sample = problem.samples[key]
    sign, style = cell(sample)
    star = "*" if problem.chosen.get(attempt) == number else " "
    line = Text(f"{attempt}.{number}{star}".ljust(6), no_wrap=True, overflow="ellipsis")
    line.append(sign, style).append(f" {sample_word(sample):{_WORD}} ").append(f"{_took(sample, now):<{_TOOK}} ")
    room = width - len(line)
    if room >= _MIN_BAR_WIDTH and sample.begun is not None:
        line.append_text(_bar(problem, sample, room, now))
    return line


def sample_word(sample: SampleState) -> str:
    """Return what a sample came to, or what is done with it."""
    if sample.status is None:
        return phase_word(sample)
    same = f", as {sample.copy_of.attempt}.{sample.copy_of.sample}" if sample.copy_of is not None else ""
    if sample.gain is not None:
        return f"{sample.outcome.label} {speedup(sample.gain[0])}{same}"
    return f"{sample.kind or sample.status}{same}"


def _took(sample: SampleState, now: float) -> str:
    if sample.begun is None:
        return ""
    end = now if sample.phase in RUNNING else sample.since
    waited = sum(stop - start for activity, start, stop in spans(sample, now) if activity is Activity.WAIT)
    whole = duration(max(0.0, end - sample.begun))
    return f"{whole} ({duration(waited)} waiting)" if waited >= 1.0 else whole


def _bar(problem: ProblemState, sample: SampleState, room: int, now: float) -> Text:
    assert sample.begun is not None
    first = min(other.begun for other in problem.samples.values() if other.begun is not None)
    last = now if problem.running else max(other.since for other in problem.samples.values())
    scale = room / max(last - first, 1e-9)

    def column(time: float) -> int:
        return min(room, max(0, round((time - first) * scale)))

    at = min(room - 1, column(sample.begun))
    bar = Text(" " * at)
    for activity, _, stop in spans(sample, now):
        sign, style = BARS[activity]
        if column(stop) > at:
            bar.append(sign * (column(stop) - at), style)
            at = column(stop)
    return bar
