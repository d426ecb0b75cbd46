"""What mended a failure: the hints that followed it, the change that was made, and how far that was."""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Iterator

from hkbench.experience.rows import MendRow, RemedyRow
from hkbench.experience.told import Told, ToldProblem
from hkbench.records import SampleKey
from hkbench.store.sanitize import one_line

CHANGE = "change"  #: the kind of a remedy that is the change itself
MAX_TEXT = 300  #: characters of a remedy
MAX_CHANGED = 12  #: lines of a change that is worth telling
MAX_LINES = 2000  #: of a code that is compared: the time grows with their square
_PLACE = re.compile(r"^[\w.\[\]-]+:\d+: ")  #: before a hint, where a prompt has several


def remedies(told: ToldProblem, backend: str) -> Iterator[RemedyRow]:
    """Yield what followed the failures of a problem, each with how often a sample came further after it."""
    tried: dict[tuple[str, str | None, str, str], list[tuple[SampleKey, bool]]] = {}
    for one in told.samples.values():
        failed = told.samples.get(one.parent) if one.parent is not None else None
        if failed is None or failed.mark is None or failed.sound:
            continue
        further = one.came_further(failed)
        said = [(hint.kind.value, remedy_text(hint.text)) for hint in told.hints.get(one.key.attempt, ())]
        # What mended wrong values in one kernel says nothing of those of another: they have only the kind in common.
        change = _change(failed, one) if further and failed.mark.by_message else None
        if change is not None:
            said.append((CHANGE, change))
        for kind, text in dict.fromkeys(said):
            tried.setdefault((failed.mark.digest, failed.mark.symbol, kind, text), []).append((one.key, further))
    for (digest, symbol, kind, text), found in tried.items():
        first = found[0][0]
        yield RemedyRow(
            run=told.run,
            problem=told.name,
            backend=backend,
            fingerprint=digest,
            symbol=symbol,
            kind=kind,
            text=text,
            attempt=first.attempt,
            sample=first.sample,
            helped=sum(further for _, further in found),
            tried=len(found),
        )


def remedy_text(hint: str) -> str:
    """Return a hint as it is kept: on one short line, without the line of the candidate that it was about."""
    return one_line(_PLACE.sub("", hint), MAX_TEXT)


def mends(told: ToldProblem) -> Iterator[MendRow]:
    """Yield for each failed sample the next correct one that descends from it."""
    children: dict[SampleKey, list[Told]] = {}
    for one in told.samples.values():
        if one.parent is not None:
            children.setdefault(one.parent, []).append(one)
    for failed in told.samples.values():
        if failed.mark is None or failed.sound:
            continue
        found = _next_sound(failed, children)
        if found is None:
            continue
        by, steps = found
        added, removed = _size(failed, by)
        places = (failed.key.attempt, failed.key.sample, failed.mark.digest, by.key.attempt, by.key.sample)
        yield MendRow(told.run, told.name, *places, steps, added, removed)


def _next_sound(failed: Told, children: dict[SampleKey, list[Told]]) -> tuple[Told, int] | None:
    waiting = deque((child, 1) for child in children.get(failed.key, ()))
    seen = {failed.key}
    while waiting:
        one, steps = waiting.popleft()
        if one.sound:
            return one, steps
        if one.key not in seen:  # a damaged journal may name a parent that descends from its child
            seen.add(one.key)
            waiting.extend((child, steps + 1) for child in children.get(one.key, ()))
    return None


def _size(before: Told, after: Told) -> tuple[int | None, int | None]:
    hunks = _hunks(before, after)
    if hunks is None:
        return None, None
    return sum(len(new) for _, new in hunks), sum(len(old) for old, _ in hunks)


def _change(before: Told, after: Told) -> str | None:
    """Say in a line what was changed; `None` where that is much, or only white space and comments."""
    hunks = _hunks(before, after)
    if not hunks or sum(len(old) + len(new) for old, new in hunks) > MAX_CHANGED:
        return None
    symbol = before.mark.symbol if before.mark is not None else None
    about = [hunk for hunk in hunks if symbol is not None and any(symbol in line for line in (*hunk[0], *hunk[1]))]
    said = [_said(*hunk) for hunk in about or hunks]
    return one_line("; ".join(filter(None, said)), MAX_TEXT) or None


def _said(old: list[str], new: list[str]) -> str:
    before, after = (" ".join(filter(None, map(str.strip, lines))) for lines in (old, new))
    if before and after:
        return f"`{before}` became `{after}`"
    if after:
        return f"`{after}` was added"
    return f"`{before}` was taken out" if before else ""


def _hunks(before: Told, after: Told) -> list[tuple[list[str], list[str]]] | None:
    if before.code is None or after.code is None:
        return None
    old, new = before.code.splitlines(), after.code.splitlines()
    if max(len(old), len(new)) > MAX_LINES:
        return None
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(old[a:b], new[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
