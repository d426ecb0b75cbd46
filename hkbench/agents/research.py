"""Research: what is known here of an error that came again. Files are read; no network, no model.

Asked are earlier runs, the prompts' hints and cards, the headers that kernels include, and the examples that are
shipped. Each finding says where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hkbench.agents.shelves import Shelf
from hkbench.experience.fingerprint import fingerprint
from hkbench.prompts import PromptBook
from hkbench.prompts.error_classes import classify
from hkbench.prompts.text import clean
from hkbench.records import BackendName, Failure, Record, Remedy

MAX_FINDINGS = 8
MAX_LENGTH = 500  #: characters of a finding
MAX_SYMBOLS = 3
_EACH = 2  #: findings of a symbol on a shelf
_AROUND = 2  #: lines after the one that names the symbol
_WORDS = frozenset(
    {"error", "expected", "int", "float", "void", "const", "auto", "this", "ModelNew", "forward", "self"}
)
_QUOTED = re.compile(r"['\"`]([A-Za-z_][\w:.]{2,80})(?:<[^'\"`]*>)?['\"`]")
_CALLED = re.compile(r"\b((?:[A-Za-z_]\w*::)+[A-Za-z_]\w*|__\w{3,})\b")
_DEFINES = r"\b(struct|class|using|typedef|define|def|template|concept|enum|__device__|inline|static|constexpr)\b"


class Finding(Record):
    """Something that is said of the error, and where."""

    where: str  #: a file and line, or the run that it comes from
    text: str


class Research(Record):
    """What was found."""

    version: Literal[1] = 1
    symbols: tuple[str, ...]  #: that were looked up
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        """The findings for a prompt."""
        return "\n".join(f"- {one.where}: {one.text}" for one in self.findings)


@dataclass(frozen=True)
class ResearchTask:
    """What the research is about, and where to look."""

    failure: Failure
    backend: BackendName
    book: PromptBook
    remedies: Sequence[Remedy] = ()  #: of earlier runs
    shelves: Sequence[Shelf] = ()


def research(task: ResearchTask) -> Research:
    """Return what is known of the error, at most `MAX_FINDINGS`; what earlier runs and hints say comes first."""
    symbols = symbols_of(task.failure)
    found = [Finding(where=f"{one.source.described} ({one.record})", text=_cut(one.text)) for one in task.remedies]
    found += _hinted(task)
    shelves = [list(_on_shelf(shelf, symbols)) for shelf in task.shelves]
    while any(shelves) and len(found) < MAX_FINDINGS:  # one of each shelf in turn
        found += [shelf.pop(0) for shelf in shelves if shelf]
    return Research(symbols=symbols, findings=tuple(dict.fromkeys(found))[:MAX_FINDINGS])


def symbols_of(failure: Failure) -> tuple[str, ...]:
    """Return the names that an error speaks of, the one that it is about first."""
    text = clean(f"{failure.message}\n{failure.detail or ''}").replace("\u2018", "'").replace("\u2019", "'")
    errors = "\n".join(line for line in text.splitlines() if "rror" in line) or text
    first = fingerprint(failure).symbol
    named = [*([first] if first is not None else []), *_QUOTED.findall(errors), *_CALLED.findall(errors)]
    return tuple(dict.fromkeys(name for name in named if name not in _WORDS))[:MAX_SYMBOLS]


def _hinted(task: ResearchTask) -> Iterator[Finding]:
    """Yield the hints for the classes of the error, with the keys that they stand under."""
    for key in classify(clean(f"{task.failure.detail or ''}\n{task.failure.message}")):
        for said in task.book.class_hints((key,), task.backend):
            yield Finding(where=f"{task.book.folder.name}/config.json, build_error.{key}", text=_cut(said))


def _on_shelf(shelf: Shelf, symbols: Iterable[str]) -> Iterator[Finding]:
    """Yield the places at which a shelf's files name the symbols: definitions before uses, few of each."""
    wanted = [(re.compile(rf"(?<!\w){re.escape(_last(name))}(?!\w)"), name) for name in symbols]
    places: dict[str, list[tuple[bool, Finding]]] = {name: [] for _, name in wanted}
    for path in shelf.files():
        text = _text(path)
        for pattern, name in wanted:
            hit = pattern.search(text) if text is not None else None
            if hit is not None and text is not None:
                places[name].append(_place(shelf, path, text, hit.start(), pattern))
    for found in places.values():
        for _, finding in sorted(found, key=lambda one: not one[0])[:_EACH]:
            yield finding


def _place(shelf: Shelf, path: Path, text: str, first: int, pattern: re.Pattern[str]) -> tuple[bool, Finding]:
    """Return the line of a file that says most of a name, and whether it defines it."""
    lines = text.splitlines()
    start = text.count("\n", 0, first)
    defining = re.compile(rf"{_DEFINES}[^;]*{pattern.pattern}\s*[\[(<={{:]|{_DEFINES}[^;]*{pattern.pattern}\s*$")
    number = next((at for at in range(start, len(lines)) if defining.search(lines[at])), None)
    at = number if number is not None else start
    shown = "\n  ".join(line.strip() for line in lines[at : at + 1 + _AROUND] if line.strip())
    return number is not None, Finding(where=f"{shelf.name_of(path)}:{at + 1}", text=_cut(shown))


def _last(name: str) -> str:
    """Return the part of a name behind its namespaces and modules."""
    return re.split(r"::|\.(?!h\b|cuh\b|hpp\b)", name)[-1]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None  # it went away, or nobody may read it: one place less to look at


def _cut(text: str) -> str:
    text = clean(text).strip()
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 4]} ..."
