"""What each card of a run did: verdicts, time, failures; and how busy all of them were."""

from __future__ import annotations

from hkbench.headline import card_lines
from hkbench.records import CardCheck, Stage
from hkbench.report import format as fmt
from hkbench.report.record import CardReport, CardsReport, Estimate
from hkbench.store.cards import CardUse
from hkbench.store.figures import kernel_time
from hkbench.store.reader import RunView

HEADER = ("card", "host", "verdicts", "lent", "timed", "busy", "failures", "equals take")
RIGHT = (2, 3, 4, 5, 6, 7)  #: columns of figures


def cards_of(run: RunView) -> CardsReport | None:
    """Return what the cards did; `None` of a run with one device and no cluster, or whose journal names none."""
    found = run.state.cards
    if len(found.all) < 2 and not run.facts.nodes:
        return None
    timed: dict[int, float] = {}
    for problem in run.problems:
        for sample in problem.samples:
            use = found.of.get(sample.key)
            if use is not None:
                timed[id(use)] = timed.get(id(use), 0.0) + sample.stages.get(Stage.TIME, 0.0)
    checks = {one.name: one for one in found.checked.cards} if found.checked is not None else {}
    ended = run.state.last_event or 0.0
    cards = tuple(_card(use, timed.get(id(use), 0.0), checks.get(use.place.name), ended) for use in found.all)
    present = sum(card.present_seconds for card in cards)
    return CardsReport(
        cards=cards,
        efficiency=sum(card.lent_seconds for card in cards) / present if present else None,
        checked=tuple(card_lines(found.checked)) if found.checked is not None else (),
        spread=found.checked.spread if found.checked is not None else None,
    )


def _card(use: CardUse, timed: float, check: CardCheck | None, ended: float) -> CardReport:
    present = use.span.until(ended)
    return CardReport(
        name=use.place.name,
        host=use.place.host,
        verdicts=use.verdicts,
        lent_seconds=round(use.lent, 6),
        timed_seconds=round(timed, 6),
        present_seconds=round(present, 6),
        busy=use.lent / present if present else None,
        failures=use.failures,
        left_out=use.left_out,
        equals_seconds=Estimate.of(check.seconds) if check is not None and check.seconds is not None else None,
        equals_ratio=Estimate.of(check.ratio) if check is not None and check.ratio is not None else None,
    )


def rows(found: CardsReport) -> list[tuple[str, ...]]:
    """Return the columns of `HEADER`: a row a card, and the sum of a host behind its cards where there are several."""
    hosts: dict[str | None, list[CardReport]] = {}
    for card in found.cards:
        hosts.setdefault(card.host, []).append(card)
    out = []
    for cards in hosts.values():
        out += [_row(card) for card in cards]
        out += [_row(_sum(cards))] if len(hosts) > 1 and len(cards) > 1 else []
    return out


def _sum(cards: list[CardReport]) -> CardReport:
    lent, present = sum(card.lent_seconds for card in cards), sum(card.present_seconds for card in cards)
    return CardReport(
        name=f"these {len(cards)}",
        host=cards[0].host,
        verdicts=sum(card.verdicts for card in cards),
        lent_seconds=lent,
        timed_seconds=sum(card.timed_seconds for card in cards),
        present_seconds=present,
        busy=lent / present if present else None,
        failures=sum(card.failures for card in cards),
        left_out=None,
        equals_seconds=None,
        equals_ratio=None,
    )


def _row(card: CardReport) -> tuple[str, ...]:
    return (
        card.name,
        card.host or fmt.UNKNOWN,
        f"{card.verdicts}",
        fmt.duration(card.lent_seconds),
        fmt.duration(card.timed_seconds),
        fmt.percent(card.busy),
        f"{card.failures}" + (", left out" if card.left_out is not None else ""),
        fmt.UNKNOWN if card.equals_seconds is None else kernel_time(card.equals_seconds.value),
    )


def notes(found: CardsReport) -> list[str]:
    """Return the efficiency, then what is to be said of single cards."""
    out = [f"{card.name} was left out: {card.left_out}" for card in found.cards if card.left_out is not None]
    return [f"Efficiency: {fmt.percent(found.efficiency)} of the cards' time", *found.checked, *out]
