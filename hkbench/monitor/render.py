"""One frame of the view on a run, for `rich`; fits any height of twelve lines and more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hkbench.monitor.state import Phase, ProblemState, RunState, SampleState
from hkbench.records import FailureKind, RunFacts, SampleKey, Stage, Status
from hkbench.store.plain import one_line

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
LEGEND = "F fast, s slow, x wrong, c compiled, ? asked, - reply, b build, m run, ! lost"


def frame(
    state: RunState, name: str, now: float, *, facts: RunFacts | None = None, height: int | None = None
) -> RenderableType:
    """The view at `now`: head, what is going on, problems by attempts. `height` lines at most, if given."""
    head = [
        _line(("hkbench ", "bold"), (one_line(name, 60), "bold"), ("  ", ""), _condition(state)),
        _line((_setting(state, facts), "")),
        _line((_clock(state, now), "")),
        _problems(state),
        _samples(state),
        _line(("model calls  ", "bold"), (_names(state.in_phase(Phase.ASKED), now), "")),
        _line(("in hand      ", "bold"), (_names(state.in_phase(Phase.EVALUATED), now), "")),
        _failures(state),
    ]
    rows = list(state.problems.items())
    # Beside the head and the rows: the header of the table, the count of hidden rows, the legend, and two
    # lines for the cursor and the shell's prompt, so that the title stays on the screen at the end.
    shown = rows if height is None else _window(rows, max(0, height - len(head) - 5))
    hidden = len(rows) - len(shown)
    more = [_line((f"and {hidden} more problems", "dim"))] if hidden else []
    return Group(*head, _table(state, shown), *more, _line((LEGEND, "dim")))


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis", end="\n")


def _condition(state: RunState) -> tuple[str, str]:
    if state.closed is None:
        return ("running", "bold blue") if state.last_event is not None else ("not begun", "dim")
    if state.closed.complete:
        return "finished", "bold green"
    reason = state.closed.reason or "before the end of the plan"
    return f"stopped: {one_line(reason, 200)}", "bold red"


def _setting(state: RunState, facts: RunFacts | None) -> str:
    config = state.config
    hardware = ", ".join(facts.hardware.values()) if facts is not None else ""
    where = f"{config.backend} on {config.device} ({config.sizes} sizes)"
    parts = [where, config.model, f"{config.attempts} x {config.samples} samples", hardware]
    return " | ".join(one_line(part, 200) for part in parts if part)


def _clock(state: RunState, now: float) -> str:
    parts = [f"elapsed {duration(state.elapsed(now))}"]
    left = state.seconds_left(now)
    if left is not None:
        parts.append(f"about {duration(left)} left")
    if state.closed is None and state.last_event is not None:
        parts.append(f"last event {duration(max(0.0, now - state.last_event))} ago")
    return " | ".join(parts)


def _problems(state: RunState) -> Text:
    running = sum(problem.running for problem in state.problems.values())
    return _line(
        ("problems     ", "bold"),
        (f"{state.finished}/{len(state.problems)} finished, {running} running, ", ""),
        (f"{state.solved} solved", "green"),
    )


def _samples(state: RunState) -> Text:
    refused = state.status_count(Status.REFUSED)
    return _line(
        ("samples      ", "bold"),
        (f"{state.judged} judged: ", ""),
        (f"{state.status_count(Status.FAST)} fast", CELLS[Status.FAST][1]),
        (", ", ""),
        (f"{state.status_count(Status.SLOW)} slow", CELLS[Status.SLOW][1]),
        (", ", ""),
        (f"{state.status_count(Status.INCORRECT)} incorrect", CELLS[Status.INCORRECT][1]),
        *(
            [(f", {refused} refused", CELLS[Status.REFUSED][1])]
            if (refused := state.status_count(Status.REFUSED))
            else []
        ),
    )


def _names(samples: Iterable[tuple[SampleKey, SampleState]], now: float) -> str:
    found = list(samples)
    names = [
        f"{one_line(key.problem, 40)} {key.attempt}.{key.sample}"
        f"{' ' + state.stage if state.stage is not None else ''} {duration(max(0.0, now - state.since))}"
        for key, state in found
    ]
    return f"{len(found)}: {', '.join(names)}" if names else "none"


def _failures(state: RunState) -> Text:
    mix = ", ".join(f"{kind} {count}" for kind, count in _ranked(state.failures)) or "none"
    lost = ", ".join(f"{one_line(error, 40)} {count}" for error, count in _ranked(state.machine_failures))
    machine = (f" | machine or service: {lost}", "bold red") if lost else ("", "")
    return _line(("failures     ", "bold"), (mix, ""), machine)


def _ranked(counts: Mapping[FailureKind, int] | Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((str(name), count) for name, count in counts.items()), key=lambda item: (-item[1], item[0]))


def _window(rows: list[tuple[str, ProblemState]], size: int) -> list[tuple[str, ProblemState]]:
    """`size` rows in the order of the plan: those around the first problem that is not finished."""
    if len(rows) <= size:
        return rows
    busy = next((i for i, (_, problem) in enumerate(rows) if not problem.closed), len(rows) - 1)
    first = max(0, min(busy - size // 3, len(rows) - size))
    return rows[first : first + size]


def _table(state: RunState, rows: list[tuple[str, ProblemState]]) -> Table:
    attempts = max((attempt for _, problem in rows for attempt, _ in problem.samples), default=state.config.attempts)
    attempts = max(attempts, state.config.attempts)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("problem", no_wrap=True, overflow="ellipsis")
    for attempt in range(1, attempts + 1):
        table.add_column(f"try {attempt}", no_wrap=True)
    table.add_column("best", justify="right", no_wrap=True)
    for name, problem in rows:
        best = f"{problem.best:.2f}x" if problem.best is not None else ""
        cells = [_cells(problem, attempt, state.config.samples) for attempt in range(1, attempts + 1)]
        table.add_row(_name(name, problem), *cells, Text(best, style="green" if problem.solved else "yellow"))
    return table


def _name(name: str, problem: ProblemState) -> Text:
    if problem.error is not None:
        style = "bold red"
    elif problem.closed:
        style = "green" if problem.solved else ""
    else:
        style = "bold" if problem.started else "dim"
    return Text(one_line(name, 60), style=style)


def _cells(problem: ProblemState, attempt: int, samples: int) -> Text:
    most = max((sample for a, sample in problem.samples if a == attempt), default=samples)
    text = Text()
    for sample in range(1, max(most, samples) + 1):
        text.append(*_cell(problem.samples.get((attempt, sample))))
    return text


def _cell(sample: SampleState | None) -> tuple[str, str]:
    if sample is None:
        return _WAITING
    if sample.stage in _ON_DEVICE:
        return _MEASURED
    return CELLS[sample.status if sample.status is not None else sample.phase]


def duration(seconds: float) -> str:
    """Short: "5 s", "3 min 07 s", "2 h 04 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
