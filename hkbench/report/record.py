"""What all parts of a report are made of, and the part on cards."""

from __future__ import annotations

from pydantic import ConfigDict

from hkbench.records import Interval, Record


class ReportRecord(Record):
    """A part of a report: as `Record`, and every number finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class Estimate(ReportRecord):
    """A figure with its 95 % interval, where there is one."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, found: Interval) -> Estimate:
        return cls(value=found.value, low=found.low, high=found.high)


class CardReport(ReportRecord):
    """One card, or one device of a host that has several; see the definition of cards."""

    name: str
    host: str | None  #: the node of a cluster; `None`: the run's own host
    verdicts: int
    lent_seconds: float
    timed_seconds: float  #: of these, in which baseline and candidate were timed
    present_seconds: float  #: from when it took part; 0: it never did
    busy: float | None  #: lent_seconds / present_seconds, 0..1
    failures: int
    left_out: str | None  #: why it got no more work
    equals_seconds: Estimate | None  #: what a reference took on it at the beginning (--check-cards)
    equals_ratio: Estimate | None  #: of the two times of equals there, which ought to be 1


class CardsReport(ReportRecord):
    """All cards of a run."""

    cards: tuple[CardReport, ...]
    efficiency: float | None  #: share of the time of all cards for which they were lent, 0..1
    checked: tuple[str, ...]  #: how far they differ, and what is to be warned of; empty without --check-cards
    spread: float | None  #: by how much the slowest one is slower than the fastest one on equals
