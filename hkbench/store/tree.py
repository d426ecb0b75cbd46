"""The attempts of a problem as a tree: drawn with lines, and the way down to one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hkbench.records import Layout


def branches(attempts: Iterable[int], parents: Mapping[int, int], layout: Layout) -> list[tuple[int, str]]:
    """Order attempts so that each follows its parent, with the lines that are drawn before it: "├─ ", "│  └─ ".

    In a layout that is no tree they follow each other by number, without lines. `parents`: by attempt, another one.

    An attempt without a parent, or with one that does not come before it, is a root.
    """
    known = sorted(set(attempts))
    if layout is not Layout.TREE:
        return [(attempt, "") for attempt in known]
    children: dict[int | None, list[int]] = {}
    for attempt in known:
        parent = parents.get(attempt)
        children.setdefault(parent if parent is not None and parent in known and parent < attempt else None, []).append(
            attempt
        )
    found: list[tuple[int, str]] = []
    waiting = [(attempt, "", "") for attempt in reversed(children.get(None, []))]
    while waiting:
        attempt, lines, below = waiting.pop()
        found.append((attempt, lines))
        own = children.get(attempt, [])
        for place, child in reversed(list(enumerate(own, start=1))):
            last = place == len(own)
            waiting.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return found


def way_to(attempt: int, parents: Mapping[int, int]) -> list[int]:
    """Return the attempts from a root to this one, each made from the one before it. `parents`: as for `branches`."""
    way = [attempt]
    while (parent := parents.get(way[-1])) is not None and parent < way[-1]:
        way.append(parent)
    return way[::-1]
