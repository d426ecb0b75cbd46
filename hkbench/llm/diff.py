"""Apply a model's unified diff to the code it was shown.

Models write the lines of a diff well and its numbers badly: counts in `@@` headers are often wrong and
positions drift. So the counts are not used and the position is only a first guess, while every context and
removed line has to be there, in order (spaces at the end of a line apart). Nothing is ever applied at a place
that merely resembles the one meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

DRIFT = 50  #: lines around the stated position where the nearest match is taken
MAX_HUNKS = 400  #: bounds the work on a hostile diff

_HEADER = re.compile(r"^@@+(?: -(\d+)(?:,(\d+))?)?.*")
_FILE_LINES = ("--- ", "+++ ", "diff ", "index ", "new file mode", "deleted file mode", "similarity index")


class DiffError(Exception):
    """The diff does not apply; the message names the hunk and why."""


@dataclass(frozen=True)
class _Hunk:
    number: int
    start: int | None  #: line of the old file, from 0; None when the header has no numbers
    lines: tuple[tuple[str, str], ...]  #: mark (" ", "-", "+") and text

    @property
    def old(self) -> list[str]:
        return [text.rstrip() for mark, text in self.lines if mark != "+"]


def looks_like_diff(text: str) -> bool:
    """Return whether a block is a unified diff, whatever its fence says."""
    return bool(re.search(r"^--- .*\n\+\+\+ .*\n@@", text, re.MULTILINE)) or text.lstrip().startswith("@@ -")


def apply_diff(diff: str, source: str) -> str:
    """Return `source` with all hunks of `diff` applied. Raises DiffError when one does not fit."""
    hunks = _parse(diff)
    if not hunks:
        raise DiffError("it holds no hunk with a changed line")
    if len(hunks) > MAX_HUNKS:
        raise DiffError(f"it holds {len(hunks)} hunks, more than {MAX_HUNKS}")
    if len(hunks) == 1 and hunks[0].start == -1 and not hunks[0].old:
        return "\n".join(text for _, text in hunks[0].lines) + "\n"  # "@@ -0,0": a new file
    lines = source.split("\n")
    bare = [line.rstrip() for line in lines]
    result: list[str] = []
    done, drift = 0, 0  # first line of `source` not yet written; how far the last hunk had moved
    for hunk in hunks:
        guess = None if hunk.start is None else hunk.start + drift
        at = _place(bare, hunk, done, guess)
        drift = 0 if hunk.start is None else at - hunk.start
        result += lines[done:at]
        done = at
        for mark, text in hunk.lines:
            if mark == "+":
                result.append(text)
                continue
            if mark == " ":
                result.append(lines[done])  # the source's own line, with the spaces that a model drops
            done += 1
    return "\n".join(result + lines[done:])


def _parse(diff: str) -> list[_Hunk]:
    """Return the hunks in order; without any `@@` line the whole text is one hunk without a position."""
    lines = diff.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("@@")]
    edges = [*starts, len(lines)]
    bodies = [(lines[a], lines[a + 1 : b]) for a, b in pairwise(edges)] or [("@@", lines)]
    hunks = []
    for number, (header, body) in enumerate(bodies, 1):
        marked = _marked(body)
        if any(mark != " " for mark, _ in marked):
            match = _HEADER.match(header)
            start = int(match[1]) - 1 if match and match[1] else None
            hunks.append(_Hunk(number, start, marked))
    return hunks


def _marked(body: list[str]) -> tuple[tuple[str, str], ...]:
    marked: list[tuple[str, str]] = []
    for i, line in enumerate(body):
        following = body[i + 1] if i + 1 < len(body) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            continue
        if line.startswith("\\") or (line.startswith(_FILE_LINES[1:]) and not _inside(body, i)):
            continue
        if line[:1] in {"+", "-", " "}:
            marked.append((line[0], line[1:]))
        else:
            marked.append((" ", line))  # the leading space was lost, as editors and models do
    while marked and marked[-1][0] == " " and not marked[-1][1].strip():
        marked.pop()  # blank lines before the closing fence
    while marked and marked[0][0] == " " and not marked[0][1].strip():
        marked.pop(0)
    return tuple(marked)


def _inside(body: list[str], i: int) -> bool:
    """Return whether `+++ x` at `i` is an added line: a file header follows `--- `."""
    return body[i].startswith("+++ ") and not (i > 0 and body[i - 1].startswith("--- "))


def _place(lines: list[str], hunk: _Hunk, first: int, guess: int | None) -> int:
    """Return the line (from 0) where the hunk's old lines stand, at or after `first`."""
    old = hunk.old
    if not any(old):
        raise DiffError(f"hunk {hunk.number} has no context to place it by")
    if guess is not None:
        for step in range(DRIFT + 1):
            for at in (guess - step, guess + step):
                if at >= first and lines[at : at + len(old)] == old:
                    return at
    text, wanted = "\n" + "\n".join(lines[first:]) + "\n", "\n" + "\n".join(old) + "\n"
    found = text.find(wanted)
    if found < 0:
        raise DiffError(f"hunk {hunk.number} does not match the parent's code: {_mismatch(lines, old)}")
    if text.find(wanted, found + 1) >= 0:
        raise DiffError(f"hunk {hunk.number} fits several places and its line number fits none")
    return first + text.count("\n", 0, found)


def _mismatch(lines: list[str], old: list[str]) -> str:
    known = set(lines)
    for line in old:
        if line and line not in known:
            return f"it has no line {line.strip()[:120]!r}"
    return "the lines are there, but not together and in this order"
