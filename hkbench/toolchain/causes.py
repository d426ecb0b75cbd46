"""The distinct causes among the errors of a build: what a model has to know to fix all of them at once.

A mistake that stands at ten lines is one cause with ten places. Errors that only follow from another one, such as the
use of a variable whose declaration was refused, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from hkbench.toolchain.diagnostics import Diagnostic, diagnostics

CAUSES_LIMIT = 3900  #: characters of `causes_text`: a next prompt shows 4000 of a tool's words
_SHORT_LINE = 240  #: characters of a cause that is told in one line
_MAX_PLACES = 12
#: Errors of one output that are read: each is compared with those before it, and a candidate may print any number.
MAX_READ_BYTES = 200
_MATCHED = 400  #: characters of a source line that are searched for a declaration
ONE_LINE = 3  #: the level of `Cause.text` that takes least

#: The folders of a header but the last two: where it is installed helps nobody.
_HEADER_FOLDERS = re.compile(
    r"^(In file included from )?(?:/[^\s:(/]+)+/(?=(?:[^\s:(/]+/){2}[^\s:(/]+[:(]\d)", re.MULTILINE
)
#: What a driver or linker adds at the end to errors that were told before.
_SUMMARY = re.compile(
    r"too many errors emitted|ld returned \d+ exit status|linker command failed|error limit reached|command failed"
    r"|compilation terminated",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(r"too many errors emitted|error limit reached", re.IGNORECASE)
_NO_MATCH = re.compile(r"\bno match")
_UNDECLARED = re.compile(
    r"(?:undeclared identifier|unknown type name|error: identifier) [\"'](\w+)[\"']"
    r"|'(\w+)' (?:was not declared|does not name)"
)
_SUGGESTED = re.compile(r"did you mean (?:simply )?'(?P<name>\w+)'")
#: A parser that lost its way: on a line with another error it says nothing of its own.
_LOST = re.compile(r"expected |template argument \d+ is invalid|invalid template-id")
_NO_DECLARATION = r"(?<!\breturn)(?<!\belse)(?<!\bcase)(?<!\bthrow)(?<!\bnew)"


@dataclass
class Cause:
    """One mistake: the first error that speaks of it, and how many do, at which of the candidate's lines."""

    first: Diagnostic
    places: list[str] = field(default_factory=list)
    errors: int = 0

    def add(self, other: Diagnostic) -> None:
        self.errors += 1
        place = other.place or other.where
        if place is not None and place not in self.places:
            self.places.append(place)

    def text(self, level: int) -> str:
        """Return the cause for a prompt: 0 with all notes, 1 with one, 2 with the source line alone, 3 in one line."""
        one = self.first
        if level == 0:
            shown = one.shown()
        elif level < ONE_LINE:
            shown = one.shown(2 - level, scopes=False)
        else:
            shown = one.error if one.place is None else f"{one.place}: error: {one.message}"
            shown = shown if len(shown) <= _SHORT_LINE else shown[: _SHORT_LINE - 3] + "..."
        shown = _HEADER_FOLDERS.sub(lambda found: found[1] or "", shown)
        if len(self.places) <= 1:
            return shown
        others = [place.rpartition(":")[2] for place in self.places[1:]]
        more = f" and {len(others) - _MAX_PLACES} more" if len(others) > _MAX_PLACES else ""
        return f"{shown}\n(also at line{'s' if len(others) > 1 else ''} {', '.join(others[:_MAX_PLACES])}{more})"


def causes(output: str) -> list[Cause]:
    """Return the distinct causes, those at the candidate's own lines first, each group in the compiler's order."""
    found: dict[tuple[str, ...], Cause] = {}
    seen: list[Diagnostic] = []
    told: set[str] = set()
    for one in islice(diagnostics(output), MAX_READ_BYTES):
        if _SUMMARY.search(one.error) or one.error in told or _follows(one, seen):
            continue
        seen.append(one)
        told.add(one.error)
        found.setdefault(_kind(one), Cause(one)).add(one)
    if not found:  # only summaries: the first of these is the cause
        return [Cause(one, errors=1) for one in islice(diagnostics(output), 1)]
    return sorted(found.values(), key=lambda cause: cause.first.place is None)


def causes_text(output: str, limit: int = CAUSES_LIMIT) -> str | None:
    """Return the distinct causes in at most `limit` characters, blank lines between them; None without an error.

    Where they do not fit with all their notes, the last ones lose theirs first.
    """
    found = causes(output)
    if not found:
        return None
    summary = _summary(found, output)
    texts = _fitted(found, limit - len(summary) - 2)
    left = len(found) - len(texts)
    if left:
        texts.append(f"[{left} more {'causes' if left > 1 else 'cause'} left out]")
    return "\n\n".join([*texts, summary] if summary else texts)


def _fitted(found: Sequence[Cause], limit: int) -> list[str]:
    """Return the causes' texts, each as long as the limit allows; the first ones are served first."""
    texts: list[str] = []
    free = limit - 40  # for the line that says how many are left out
    for cause in found:
        short = cause.text(ONE_LINE)
        if texts and len(short) + 2 > free:
            break
        texts.append(short)
        free -= len(short) + 2
    for level in reversed(range(ONE_LINE)):
        for number, text in enumerate(texts):
            longer = found[number].text(level)
            if len(longer) - len(text) <= free:
                texts[number] = longer
                free -= len(longer) - len(text)
    return texts


def _summary(found: Sequence[Cause], output: str) -> str:
    errors = sum(cause.errors for cause in found)
    stopped = any(_CUT_OFF.search(line) for line in output.splitlines() if len(line) < 2 * _SHORT_LINE)
    more = next(islice(diagnostics(output), MAX_READ_BYTES, None), None) is not None
    if len(found) == 1 and not stopped and not more:
        return ""
    of = f" of {len(found)} cause{'s' if len(found) > 1 else ''}" if errors > len(found) else ""
    said = f"{errors} errors{of}"
    if more:
        return f"[{said} among the first {MAX_READ_BYTES} that were printed]"
    return f"[{said}{'; the compiler stopped there, and there may be more' if stopped else ''}]"


def _kind(one: Diagnostic) -> tuple[str, ...]:
    """Return what errors of one cause have in common."""
    if one.place is not None and one.where is not None and one.place.rpartition(":")[2] != one.where.rpartition(":")[2]:
        return (one.where,)  # one line of a header, reached from several lines of the candidate
    if _NO_MATCH.search(one.message) and one.said:
        reasons = [line[0].partition(": note: ")[2] for line in one.said[:2]]
        return (one.message, *reasons)
    return (one.message,)


def _follows(one: Diagnostic, earlier: Sequence[Diagnostic]) -> bool:
    """Return whether an error only follows from one that was told before."""
    name = _undeclared(one)
    source = next(iter(one.snippet), "")
    for other in earlier:
        if name is not None and name != (unknown := _undeclared(other)):
            if _declares(next(iter(other.snippet), ""), name):
                return True  # its declaration was refused
            if (
                unknown is not None
                and _declares(source, name)
                and re.search(rf"\b{unknown}\b.*\b{name}\b", source[:_MATCHED])
            ):
                return True  # its declaration has a type that is not known
        if one.where is None or one.where != other.where:
            continue
        suggested = _SUGGESTED.search(other.error)
        if suggested is not None and f"'{suggested['name']}'" in one.message:
            return True  # of the name that the compiler went on with
        if _LOST.match(one.message):
            return True
    return False


def _undeclared(one: Diagnostic) -> str | None:
    """Return the name that an error says is not declared."""
    found = _UNDECLARED.search(one.error)
    return None if found is None else next(name for name in found.groups() if name is not None)


def _declares(line: str, name: str) -> bool:
    """Return whether a source line is the declaration of this name."""
    line = line[:_MATCHED]
    return name in line and re.search(rf"[\w>*&\]]{_NO_DECLARATION}[\s*&]+{name}\s*([=;{{,\[():]|$)", line) is not None
