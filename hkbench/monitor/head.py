"""The head of a view on a run: what the run is, how far it came, what it is at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from hkbench.monitor.cells import CELLS
from hkbench.monitor.describe import trouble
from hkbench.monitor.state import Phase, RunState, SampleState
from hkbench.monitor.words import count, duration
from hkbench.records import FailureKind, RunFacts, SampleKey, Status
from hkbench.store.costs import money
from hkbench.store.figures import speedup
from hkbench.store.plain import one_line

_BAR = 24  # characters of the progress bar


def plain_head(
    state: RunState, name: str, now: float, facts: RunFacts | None, devices: Sequence[Text] = ()
) -> list[Text]:
    """Eight lines and those of the devices, for a frame that is printed."""
    return [
        line(("hkbench ", "bold"), (one_line(name, 60), "bold"), ("  ", ""), condition(state)),
        line((_setting(state, facts), "")),
        line((" | ".join([*_clock(state, now), *_last_event(state, now)]), "")),
        _problems(state),
        _samples(state),
        *_under_way(state, now),
        *devices,
        _failures(state),
    ]


def full_head(
    state: RunState, name: str, now: float, facts: RunFacts | None, devices: Sequence[Text] = ()
) -> list[Text]:
    """Nine lines and those of the devices, for the screen: with progress, pace, tokens and the best speed-ups too."""
    done = state.progress()
    bar = "#" * int(done * _BAR)
    pace = state.per_minute(now)
    used = f"{count(state.tokens.input)} in, {count(state.tokens.output)} out"
    known = state.tokens.input is not None or state.tokens.output is not None
    used += spent(state)
    return [
        line(
            ("hkbench ", "bold"), (one_line(name, 60), "bold"), ("  ", ""), condition(state),
            ("".join(f", {text}" for text in _last_event(state, now)), "dim"),
        ),
        line((_setting(state, facts), "")),
        line(
            ("[", ""), (bar, "green"), ("." * (_BAR - len(bar)), "dim"), (f"] {100 * done:.0f} %  ", ""),
            (" | ".join(_clock(state, now)), ""),
        ),
        _problems(state, f" | tokens {used}" if known else ""),
        _samples(state, f" | {pace:.3g} a minute" if pace is not None else ""),
        *_under_way(state, now),
        *devices,
        _failures(state),
        line(
            ("best         ", "bold"),
            (", ".join(f"{one_line(problem, 30)} {speedup(best)}" for problem, best in state.best[:8]) or "none", ""),
        ),
    ]  # fmt: skip


def spent(state: RunState) -> str:
    """The money after the tokens; a plus where some replies' cost is not known, nothing where there is no price."""
    spending = state.spending
    if spending.currency is None or not spending.calls:
        return ""
    known = "cost unknown" if spending.cost is None else money(spending.cost, spending.currency)
    return f", {known}{'+' if spending.unpriced and spending.cost is not None else ''}"


def _under_way(state: RunState, now: float) -> list[Text]:
    service = [] if state.trouble is None else [line(("service      ", "bold"), (trouble(state.trouble), "yellow"))]
    return [
        *service,
        line(("model calls  ", "bold"), (_names(state.in_phase(Phase.ASKED), now), "")),
        line(("in hand      ", "bold"), (_names(state.in_phase(Phase.EVALUATED), now), "")),
    ]


def line(*parts: tuple[str, str]) -> Text:
    """One line of a head, cut at the edge of the screen."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis", end="\n")


def condition(state: RunState) -> tuple[str, str]:
    """What the run is doing, with a style."""
    if state.closed is None and state.stopping:
        return "stopping", "bold yellow"
    if state.closed is None:
        return ("running", "bold blue") if state.last_event is not None else ("not begun", "dim")
    if state.closed.complete:
        return "finished", "bold green"
    reason = state.closed.reason or "before the end of the plan"
    return f"stopped: {one_line(reason, 200)}", "bold red"


def _setting(state: RunState, facts: RunFacts | None) -> str:
    config = state.config
    where = f"{config.backend} on {config.device} ({config.sizes} sizes)"
    parts = [where, config.model, f"{config.attempts} x {config.samples} samples", _hardware(state, facts)]
    return " | ".join(one_line(part, 200) for part in parts if part)


def _hardware(state: RunState, facts: RunFacts | None) -> str:
    """`8 x AMD Instinct MI300X on node7`."""
    told = facts.hardware if facts is not None else {}
    name, count = told.get("device") or told.get("cpu", ""), told.get("count", "1")
    host = state.host or told.get("host", "")
    return (f"{count} x " if count not in ("0", "1") else "") + name + (f" on {host}" if host else "")


def _clock(state: RunState, now: float) -> list[str]:
    left = state.seconds_left(now)
    return [f"elapsed {duration(state.elapsed(now))}"] + ([f"about {duration(left)} left"] if left is not None else [])


def _last_event(state: RunState, now: float) -> list[str]:
    """Of a run at work: a long silence says more than the estimate."""
    if state.closed is not None or state.last_event is None:
        return []
    return [f"last event {duration(max(0.0, now - state.last_event))} ago"]


def _problems(state: RunState, more: str = "") -> Text:
    running = sum(problem.running for problem in state.problems.values())
    return line(
        ("problems     ", "bold"),
        (f"{state.finished}/{len(state.problems)} finished, {running} running, ", ""),
        (f"{state.solved} solved", "green")
        if state.config.compiled_for is None
        else (f"{state.compiled} compiled, nothing is measured", CELLS[Status.COMPILED][1]),
        (more, ""),
    )


def _samples(state: RunState, more: str = "") -> Text:
    return line(
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
        *(
            [(f", {compiled} compiled", CELLS[Status.COMPILED][1])]
            if (compiled := state.status_count(Status.COMPILED))
            else []
        ),
        (more, ""),
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
    return line(("failures     ", "bold"), (mix, ""), machine)


def _ranked(counts: Mapping[FailureKind, int] | Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((str(name), count) for name, count in counts.items()), key=lambda item: (-item[1], item[0]))
