"""The head of a view on a run: what it has come to, how far it is, what it is at."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from hkbench.headline import SEPARATOR, is_timed, plural, title
from hkbench.monitor import result
from hkbench.monitor.describe import trouble
from hkbench.monitor.format import count, duration
from hkbench.records import FailureKind, RunFacts, SampleKey, Status
from hkbench.store.costs import money
from hkbench.store.samples import Phase, SampleState
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState

_BAR = 24  # columns of a bar
_BROAD = 100  # columns of a terminal with bars of that length
_WIDE = 130  # columns of a terminal on which two short lines are one


def head(
    state: RunState,
    name: str,
    now: float,
    facts: RunFacts | None = None,
    *,
    width: int = 80,
    devices: Sequence[Text] = (),
    resume: str | None = None,
) -> list[Text]:
    """Return the lines at `now`, the result first, each to be cut at `width` columns.

    `devices` are lines on the devices. `resume` is the command that goes on with a run which ended early.
    """
    lines = [
        line(
            ("hkbench ", "bold"), (one_line(name, 60), "bold"), ("  ", ""), condition(state, now), _silence(state, now)
        ),
        *_result(result.Result.of(state), width),
        _progress(state, now, width),
    ]
    if resume is not None and state.over and not (state.closed is not None and state.closed.complete):
        lines.insert(1, line(("resume with  ", "bold"), (one_line(resume, 300), "")))
    samples, used = _samples(state, now), _tokens(state)
    if used and width >= _WIDE:
        samples.append(SEPARATOR + used)
    lines += [line((_setting(state, facts, width), "")), samples]
    if used and width < _WIDE:
        lines.append(line(("tokens       ", "bold"), (used, "")))
    if not state.over:
        lines += [*_under_way(state, now), *devices]
    return [*lines, *_failures(state)]


def line(*parts: tuple[str, str] | Text) -> Text:
    """Return one line of a head, cut at the edge of the screen."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis", end="\n")


def condition(state: RunState, now: float) -> tuple[str, str]:
    """Return what the run is doing, with a style."""
    if state.closed is None:
        if state.stopping and not state.killed:
            return "stopping", "bold yellow"
        if state.killed and state.last_event is not None:
            return f"killed at {moment(state.last_event, now)}", "bold red"
        return ("running", "bold blue") if state.last_event is not None else ("not begun", "dim")
    if state.closed.complete:
        return "finished", "bold green"
    reason = state.closed.reason or "before the end of the plan"
    return f"stopped: {one_line(reason, 200)}", "bold red"


def moment(when: float, now: float) -> str:
    """Return a time of the day, "12:31", with its date unless that is today's."""
    told, today = time.localtime(when), time.localtime(now)
    return time.strftime("%H:%M" if told[:3] == today[:3] else "%Y-%m-%d %H:%M", told)


def _silence(state: RunState, now: float) -> tuple[str, str]:
    """Return the last event of a run at work: a long silence says more than the estimate."""
    if state.over or state.last_event is None:
        return "", ""
    ago = f", last event {duration(max(0.0, now - state.last_event))} ago"
    if state.is_silent(now):
        where = f" on {one_line(state.host, 60)}" if state.host is not None else ""
        return f"{ago}: check that it still runs{where}", "yellow"
    return ago, "dim"


def _result(found: result.Result, width: int) -> list[Text]:
    classes, figures = result.classes(found), result.figures(found)
    own = [line((found.own_kernels, "yellow"))] if found.own_kernels is not None else []
    if width >= _WIDE:
        return [line(result.bar(found, _BAR), ("  ", ""), classes, ("   ", ""), figures), *own]
    shown = Text.assemble(result.bar(found, _BAR), "  ", classes) if len(classes) + _BAR + 2 <= width else classes
    return [line(shown), *([line(figures)] if figures else []), *own]


def _progress(state: RunState, now: float, width: int) -> Text:
    done, columns = state.progress(), _BAR if width >= _BROAD else _BAR // 2
    filled = int(done * columns)
    left = state.seconds_left(now)
    parts = [f"{state.finished}/{plural(len(state.problems), 'problem')}"]
    parts.append(f"elapsed {duration(state.elapsed(now))}")
    parts += [f"about {duration(left)} left"] if left is not None else []
    colour = "green" if state.closed is None or state.closed.complete else "yellow"
    told = f"  {100 * done:.0f} %  {SEPARATOR.join(parts)}"
    return line(("━" * filled, colour), ("━" * (columns - filled), "bright_black"), (told, ""))


def _setting(state: RunState, facts: RunFacts | None, width: int) -> str:
    parts = [title(state.config, facts)]
    if state.config.strategy.name != "reflect":
        parts.append(f"strategy {state.config.strategy.name}")
    host = state.host or (facts.hardware.get("host") if facts is not None else None)
    with_host = SEPARATOR.join([*parts, f"host {host}"])
    return one_line(with_host if host and len(with_host) <= width else SEPARATOR.join(parts), 400)


def _samples(state: RunState, now: float) -> Text:
    parts = [
        (f"{number} {status}", style)
        for status, style in _STATUSES.items()
        if (number := state.status_count(status)) or status in _NAMED
    ]
    if not is_timed(state.config):
        parts = [part for part in parts if not part[0].startswith("0 ")]
    told = [piece for part in parts for piece in ((", ", ""), part)][1:]
    pace = state.per_minute(now)
    rate = f"{SEPARATOR}{pace:.3g} a minute" if pace is not None and not state.over else ""
    return line(("samples      ", "bold"), (f"{state.judged} judged: ", ""), *told, (rate, ""))


_STATUSES = {
    Status.FAST: "green",
    Status.SLOW: "yellow",
    Status.INCORRECT: "red",
    Status.REFUSED: "magenta",
    Status.COMPILED: "blue",
    Status.EMULATED: "bright_green",
}
_NAMED = (Status.FAST, Status.SLOW, Status.INCORRECT)


def _tokens(state: RunState) -> str:
    """Return tokens and money; empty where no reply has given its tokens."""
    if state.tokens.input is None and state.tokens.output is None:
        return ""
    return f"{count(state.tokens.input)} in, {count(state.tokens.output)} out{spent(state)}"


def spent(state: RunState) -> str:
    """Return the money after the tokens; a plus where some replies' cost is not known, nothing without a price."""
    spending = state.spending
    if spending.currency is None or not spending.calls:
        return ""
    known = "cost unknown" if spending.cost is None else money(spending.cost, spending.currency)
    return f", {known}{'+' if spending.unpriced and spending.cost is not None else ''}"


def _under_way(state: RunState, now: float) -> list[Text]:
    """Return what is waited for and worked on; three lines where prompts are being made."""
    asked = [*_names(state.in_phase(Phase.ASKED), now)]
    asked += [f"{one_line(name, 40)} judge {duration(max(0.0, now - since))}" for name, since in state.advised]
    lines = [
        line(("model calls  ", "bold"), (_listed("waiting for ", asked), "")),
        line(("evaluating   ", "bold"), (_listed("", [*_names(state.in_phase(Phase.EVALUATED), now)]), "")),
    ]
    if state.trouble is not None:
        lines.insert(0, line(("service      ", "bold"), (trouble(state.trouble), "yellow")))
    if state.preparing:
        lines.insert(
            0, line(("prompts      ", "bold"), (f"preparing those of {plural(state.preparing, 'problem')}", ""))
        )
    return lines


def _listed(verb: str, names: Sequence[str]) -> str:
    return f"{verb}{len(names)}: {', '.join(names)}" if names else "none"


def _names(samples: Iterable[tuple[SampleKey, SampleState]], now: float) -> Iterable[str]:
    for key, state in samples:
        stage = f" {state.stage}" if state.stage is not None else ""
        yield f"{one_line(key.problem, 40)} {key.attempt}.{key.sample}{stage} {duration(max(0.0, now - state.since))}"


def _failures(state: RunState) -> list[Text]:
    if not state.failures and not state.errors:
        return []
    mix = ", ".join(f"{kind} {count}" for kind, count in _ranked(state.failures)) or "none"
    lost = ", ".join(f"{one_line(error, 40)} {count}" for error, count in _ranked(state.errors))
    machine = (f"{SEPARATOR}machine or service: {lost}", "bold red") if lost else ("", "")
    return [line(("failures     ", "bold"), (mix, ""), machine)]


def _ranked(counts: Mapping[FailureKind, int] | Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((str(name), count) for name, count in counts.items()), key=lambda item: (-item[1], item[0]))
