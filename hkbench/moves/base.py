"""What a move is, and a place in a source where a rule can make one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: A stretch of a source: first character and the one behind the last.
Span = tuple[int, int]


@dataclass(frozen=True)
class Site:
    """Stretches of a source that a rule can write in several ways.

    Attributes:
        move: the name of the move that this is.
        label: what is written, unique in a source: "BLOCK", "cache of x".
        choices: the ways, in an order in which neighbours are alike.
        now: the number of the way in which it is written.
        spans: the stretches, in the order of the source; an empty one is a place to insert something.
        texts: for each choice the text of each stretch.
    """

    move: str
    label: str
    choices: tuple[str, ...]
    now: int
    spans: tuple[Span, ...]
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of_values(cls, move: str, label: str, span: Span, values: Sequence[str], now: str) -> Site:
        """Make the site of one stretch, whose choices are the texts that can stand there."""
        return cls(move, label, tuple(values), list(values).index(now), (span,), tuple((value,) for value in values))


#: (source, backend) -> the places where the rule can write something else.
Rule = Callable[[str, str], list[Site]]


@dataclass(frozen=True)
class MoveKind:
    """One of the kinds of edits that a search makes.

    Attributes:
        name: as it stands in a search's records.
        summary: what it does, in a few words.
        guidance: what a model is told to do, by backend; a backend that is left out does not have the move.
        rule: makes the edit without a model, where it can.
    """

    name: str
    summary: str
    guidance: dict[str, str]
    rule: Rule | None = field(default=None, compare=False)


def write(source: str, sites: Sequence[Site], chosen: Sequence[int]) -> str:
    """Return the source with each site written in the chosen way. The spans of different sites do not overlap."""
    edits = [
        (span, text)
        for site, choice in zip(sites, chosen, strict=True)
        if choice != site.now
        for span, text in zip(site.spans, site.texts[choice], strict=True)
    ]
    for (start, end), text in sorted(edits, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def without_overlaps(sites: Sequence[Site]) -> list[Site]:
    """Leave out sites that touch a stretch of an earlier one, or have the label of one."""
    kept: list[Site] = []
    labels: set[str] = set()
    taken: list[Span] = []
    for site in sites:
        if site.label in labels or len(site.choices) < 2 or any(_touch(a, b) for a in site.spans for b in taken):
            continue
        kept.append(site)
        labels.add(site.label)
        taken.extend(site.spans)
    return kept


def _touch(a: Span, b: Span) -> bool:
    if a[0] == a[1] and b[0] == b[1]:
        return a[0] == b[0]
    return a[0] < b[1] and b[0] < a[1]
