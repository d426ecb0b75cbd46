"""The table of problems: which columns fit, and each row in them. Serves the screen and a printed frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rich.cells import cell_len, set_cell_size

from hkbench.monitor.cells import attempt_cells, name_style, phase_word
from hkbench.monitor.format import count, duration
from hkbench.records import CORRECT, Outcome
from hkbench.store.figures import interval, speedup
from hkbench.store.samples import ON_DISK, Phase, ProblemState
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState

Parts = list[tuple[str, str]]  #: pieces of text, each with its style

_SHORT = 22  # columns of a name that has to be cut, at least
_MIN_WIDTH = 9  # of a terminal that is narrow beyond reason
_PANELS = 4


class Column(Enum):
    """What is told of a problem beside its name and its attempts."""

    BEST = auto()
    RESULT = auto()
    NOW = auto()
    INTERVAL = auto()
    TOKENS = auto()
    OWN = auto()


#: Title and width of a column, the space behind it included.
_COLUMNS = {
    Column.BEST: ("best", 7),
    Column.RESULT: ("result", 18),
    Column.NOW: ("under way", 27),
    Column.INTERVAL: ("95 % interval", 15),
    Column.TOKENS: ("tokens", 8),
    Column.OWN: ("own", 6),
}
_RIGHT = (Column.BEST, Column.TOKENS, Column.OWN)
#: In the order in which they get their place; names are whole before those behind `RESULT` get any.
_OPTIONAL = (Column.NOW, Column.INTERVAL, Column.TOKENS, Column.OWN)


@dataclass(frozen=True)
class Layout:
    """The columns of a table."""

    panel: int  #: columns of each panel, without those of its mark
    name: int  #: columns of a name, the space behind included
    columns: tuple[Column, ...]
    attempts: range  #: those that are shown, from 0
    widths: tuple[int, ...]  #: signs of each attempt, of all
    panels: int  #: problems side by side
    samples: int

    @classmethod
    def of(
        cls,
        state: RunState,
        names: Sequence[str],
        width: int,
        *,
        first: int | None = None,
        rows: int | None = None,
        mark: int = 0,
    ) -> Layout:
        """Fit the problems `names` into `width` columns, without the `mark` columns before the first panel.

        `first` is the first attempt to show where they do not all fit, from 0; without it the latest ones are shown.
        With `rows`, more problems than that go side by side where there is room, each panel but the first with its
        `mark` columns.
        """
        widths = attempt_widths(state)
        longest = max([len("problem"), *(cell_len(one_line(name, 200)) for name in names)]) + 1
        short = min(longest, _SHORT + 1, max(_MIN_WIDTH, width - _COLUMNS[Column.BEST][1] - min(_block(widths), 10)))
        least = short + _COLUMNS[Column.BEST][1] + _COLUMNS[Column.RESULT][1] + _block(widths)
        panels = 1
        if rows is not None and len(names) > rows > 0:
            panels = max(1, min(_PANELS, (width + mark) // (least + mark), -(-len(names) // rows)))
        panel = (width + mark) // panels - mark
        room = panel - short - _COLUMNS[Column.BEST][1]
        columns = [Column.BEST]
        if room >= _COLUMNS[Column.RESULT][1] + min(_block(widths), 10):
            columns.insert(0, Column.RESULT)
            room -= _COLUMNS[Column.RESULT][1]
        shown = _window(widths, room, first, state)
        room -= _block(widths[shown.start : shown.stop])
        name = short + max(0, min(longest - short, room))
        room -= name - short
        optional = [column for column in _OPTIONAL if panels == 1 and _wanted(column, state)]
        for column in optional:
            if room >= _COLUMNS[column][1]:
                columns.append(column)
                room -= _COLUMNS[column][1]
        if Column.INTERVAL in columns:  # beside the figure that it belongs to
            columns.remove(Column.INTERVAL)
            columns.insert(columns.index(Column.BEST) + 1, Column.INTERVAL)
        return cls(panel, name, tuple(columns), shown, widths, panels, state.config.samples)

    def header(self) -> Parts:
        """Return the titles, in one line of one panel."""
        parts = ["problem".ljust(self.name)]
        for column in self._before:
            title, wide = _COLUMNS[column]
            parts.append(f"{title:>{wide - 1}} " if column in _RIGHT else title.ljust(wide))
        parts.append(self._attempts_title())
        for column in self._behind:
            title, wide = _COLUMNS[column]
            parts.append(f"{title:>{wide - 1}} " if column in _RIGHT else title.ljust(wide))
        return [("".join(parts), "bold")]

    def row(self, name: str, problem: ProblemState, now: float) -> Parts:
        """Return a problem in one line of one panel; the first part is its name."""
        shown = one_line(name, 200)
        if cell_len(shown) > self.name - 1:
            shown = set_cell_size(shown, self.name - 2) + "…"
        parts = [(set_cell_size(shown, self.name - 1), name_style(problem)), (" ", "")]
        parts += [_told(column, problem, now, Column.NOW not in self.columns) for column in self._before]
        drawn = 0
        for attempt in self.attempts:
            wide = self.widths[attempt]
            most = max(self.samples, problem.tally.widest.get(attempt + 1, 0))
            parts += [*attempt_cells(problem, attempt + 1, most), (" " * (wide - most + 1), "")]
            drawn += wide + 1
        parts.append((" " * (_block([self.widths[k] for k in self.attempts]) - drawn), ""))
        return parts + [_told(column, problem, now, together=False) for column in self._behind]

    @property
    def _before(self) -> Iterable[Column]:
        return [column for column in self.columns if column in (Column.RESULT, Column.BEST, Column.INTERVAL)]

    @property
    def _behind(self) -> Iterable[Column]:
        return [column for column in self.columns if column not in self._before]

    def _attempts_title(self) -> str:
        widths = [self.widths[k] for k in self.attempts]
        titles = [f"attempt {k + 1}" for k in self.attempts]
        if all(len(title) <= width for title, width in zip(titles, widths, strict=True)):
            return "".join(title.ljust(width + 1) for title, width in zip(titles, widths, strict=True))
        whole = _block(widths)
        span = f"{self.attempts.start + 1}-{self.attempts.stop}"
        choices = (f"attempts {span} of {len(self.widths)}", f"attempts {span}", "attempts")
        chosen = choices[1:] if len(widths) == len(self.widths) else choices
        return next((title for title in chosen if len(title) < whole), span).ljust(whole)


def attempt_widths(state: RunState) -> tuple[int, ...]:
    """Return each attempt's width: one sign for each of its samples."""
    samples = state.config.samples
    most = [samples] * state.config.attempts
    for problem in state.problems.values():
        for attempt, sample in problem.tally.widest.items():
            most.extend([samples] * (attempt - len(most)))
            most[attempt - 1] = max(most[attempt - 1], sample)
    return tuple(most)


def _block(widths: Sequence[int]) -> int:
    """Return the columns of these attempts: as many as their title has at least."""
    title = "attempts" if len(widths) > 1 else "attempt 1"
    return max(sum(width + 1 for width in widths), len(title) + 1)


def _window(widths: tuple[int, ...], room: int, first: int | None, state: RunState) -> range:
    """Return the attempts that fit, all or some: from `first` on, or up to the latest that was begun."""
    if _block(widths) <= room:
        return range(len(widths))
    if first is None:
        last = max([1, *(attempt for problem in state.problems.values() for attempt in problem.tally.widest)])
        first = last - 1
        while first > 0 and _block(widths[first - 1 : last]) <= room:
            first -= 1
    start = min(first, len(widths) - 1)
    stop = start + 1
    while stop < len(widths) and _block(widths[start : stop + 1]) <= room:
        stop += 1
    while start > 0 and stop == len(widths) and _block(widths[start - 1 : stop]) <= room:
        start -= 1
    return range(start, stop)


def _wanted(column: Column, state: RunState) -> bool:
    match column:
        case Column.NOW:
            return not state.over
        case Column.TOKENS:
            tokens = state.tokens
            return tokens.input is not None and tokens.output is not None
        case Column.OWN:
            return any(p.best_sample is not None and p.best_sample.own is not None for p in state.problems.values())
        case Column.INTERVAL:
            return any(p.best_sample is not None and not p.best_sample.lacks_interval for p in state.problems.values())
        case _:
            return True


def _told(column: Column, problem: ProblemState, now: float, together: bool) -> tuple[str, str]:
    """Return a cell with its style; `together`: what is under way stands where the result is."""
    text, style = _text(column, problem, now, together)
    wide = _COLUMNS[column][1]
    fitted = set_cell_size(text, wide - 1) if cell_len(text) > wide - 1 else text
    return (f"{fitted:>{wide - 1}} " if column in _RIGHT else fitted.ljust(wide)), style


def _text(column: Column, problem: ProblemState, now: float, together: bool) -> tuple[str, str]:
    best = problem.best_sample
    match column:
        case Column.BEST:
            return speedup(problem.best) if problem.best is not None else "", problem.outcome.style
        case Column.INTERVAL:
            _, low, high = (best and best.gain) or (None, None, None)
            return (interval(low, high), "dim") if low is not None and high is not None else ("", "")
        case Column.RESULT:
            told = _under_way(problem, now, brief=True) if together and not problem.correct else ("", "")
            if told[0] and not (told[0] == ON_DISK and problem.judged):
                return told
            return result_word(problem), problem.outcome.style
        case Column.NOW:
            return _under_way(problem, now)
        case Column.TOKENS:
            return (count(both) if (both := problem.tally.tokens.both) is not None else ""), "dim"
        case Column.OWN:
            return (f"{100 * best.own:.0f} %" if best is not None and best.own is not None else ""), ""


def result_word(problem: ProblemState) -> str:
    """Return the class of a problem's best sample, or the kind of its newest failure if none is correct."""
    if problem.error is not None and not problem.correct:
        return "machine error"
    if problem.outcome in CORRECT or problem.newest_failure is None:
        return "" if problem.outcome is Outcome.NOT_JUDGED else problem.outcome.label
    return str(problem.newest_failure)


def _under_way(problem: ProblemState, now: float, *, brief: bool = False) -> tuple[str, str]:
    return under_way(
        problem, now, brief=brief
    ), "blue" if problem.running or problem.advised is not None else "bright_black"


def under_way(problem: ProblemState, now: float, *, brief: bool = False) -> str:
    """Return the sample that came furthest, what is done with it and for how long: `2.1 time 3 min 12 s +2`.

    The last is how many more there are. `brief`: without them, and with whole minutes.
    """
    running = [(key, sample) for key, sample in problem.samples.items() if sample.phase in _FURTHEST]
    if not running:
        if problem.advised is not None:
            return f"asking judge {duration(max(0.0, now - problem.advised))}"
        return problem.pending
    (attempt, number), sample = max(
        running, key=lambda item: (_FURTHEST.index(item[1].phase) + item[1].measured, -item[1].since)
    )
    seconds = max(0.0, now - sample.since)
    if brief:
        took, more = duration(seconds) if seconds < 59.5 else f"{seconds / 60:.0f} min", ""
    else:
        took, more = duration(seconds), f" +{len(running) - 1}" if len(running) > 1 else ""
    word = str(sample.stage) if sample.stage is not None else _BRIEF.get(sample.phase, phase_word(sample))
    return f"{attempt}.{number} {word} {took}{more}"


_FURTHEST = (Phase.ASKED, Phase.ANSWERED, Phase.EVALUATED)
_BRIEF = {Phase.ASKED: "model", Phase.ANSWERED: "queued"}
