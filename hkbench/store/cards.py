"""What each card of a run did, session by session: its verdicts, how long it was lent for them, how often it failed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hkbench.records import CardFailed, CardJoined, CardsChecked, DevicePlace, RunStarted, SampleKey, VerdictReached
from hkbench.store.samples import Span


@dataclass
class CardUse:
    """One card, under all the numbers that it had."""

    place: DevicePlace  #: the last one
    verdicts: int = 0
    lends: list[tuple[float, float]] = field(default_factory=list)  #: from when to when, for each of these
    failures: int = 0
    left_out: str | None = None  #: why it got no more work, in the last session that it was in
    span: Span = field(default_factory=Span)  #: of the sessions, from when it took part

    @property
    def lent(self) -> float:
        """Return the seconds for which it was lent to one evaluation at least."""
        seconds, until = 0.0, -math.inf
        for begin, end in sorted(self.lends):
            seconds += max(0.0, end - max(begin, until))
            until = max(until, end)
        return seconds


class Cards:
    """The cards that a journal tells of; empty where it names none."""

    def __init__(self) -> None:
        self.of: dict[SampleKey, CardUse] = {}  #: where the last verdict on a sample was measured
        self.checked: CardsChecked | None = None
        self._known: dict[tuple[str | None, ...], CardUse] = {}
        self._now: dict[int, CardUse] = {}  #: of the present session, by their numbers in it

    @property
    def all(self) -> list[CardUse]:
        """Return the cards, by the session and the number that they were first known by."""
        return list({id(use): use for use in self._known.values()}.values())

    def begin(self, event: RunStarted, ended: float) -> None:
        """Begin a session; the one before it had its last event at `ended`."""
        for use in self._now.values():
            if use.span.first is not None:
                use.span.see(ended)
                use.span.close()
        self._now, self.checked = {}, None
        for place in event.devices:
            self._join(place, event.time)

    def apply(self, event: CardJoined | CardFailed | CardsChecked) -> None:
        """Take what the journal tells of cards."""
        match event:
            case CardJoined():
                self._join(event.place, event.time)
            case CardFailed():
                use = self._take(event.place)
                use.failures += 1
                if event.left_out:
                    use.left_out = event.message
            case CardsChecked():
                self.checked = event

    def reach(self, event: VerdictReached) -> None:
        """Take a verdict, with the time that a card was lent for it."""
        turns = event.turns
        use = self._now.get(turns.device) if turns is not None and turns.device is not None else None
        if use is None or turns is None or turns.lent is None or turns.returned is None:
            return
        use.verdicts += 1
        use.lends.append((turns.lent, turns.returned))
        self.of[event.key] = use

    def _join(self, place: DevicePlace, time: float) -> None:
        use = self._take(place)
        use.place, use.left_out = place, None
        use.span.see(time)

    def _take(self, place: DevicePlace) -> CardUse:
        # Several GPUs of one host, and of no cluster, may differ by their number alone.
        name = (place.name, place.host, place.uuid or place.pci or (str(place.index) if place.host is None else None))
        use = self._now.get(place.index) or self._known.get(name) or CardUse(place)
        self._known[name] = self._now[place.index] = use
        return use
