"""The useful part of what compilers and linkers print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

SHOWN_LINES = 14
_LINE_LIMIT = 400  #: characters; the name of a template's instance can have thousands
_SNIPPET_LINES = 4
_NOTE_SNIPPET_LINES = 2
_SAID_NOTES = 4  #: notes besides the one that leads to the candidate's line

#: gcc/clang "file:1:2: error: ...", nvcc "file(1): error: ...", linkers, and drivers and passes that name no place.
_ERROR = re.compile(
    r"[^\s:][^:]*:\d+(?::\d+)?: (?:fatal |internal compiler )?error: "
    r"|[^\s(][^(]*\(\d+\): (?:fatal )?error\b"
    r"|.*\b[uU]ndefined reference to "
    r"|(?:\S*/)?ld(?:\.\w+)?: cannot find "
    r"|(?:nvcc|ptxas|nvlink)[^:]* (?:error|fatal) *: "  # nvcc's own tools put blanks before the colon
    r"|[\w./+-]+: (?:fatal |internal compiler )?error: "  # drivers and passes
    r"|(?:fatal )?error: "
)
_QUOTES = str.maketrans("\u2018\u2019", "''")
_COMMAND = re.compile(r"\[\d+/\d+\] |ninja: |FAILED: ")
_MAX_LINE_LENGTH = 2000  #: characters; what is longer is a command
_WARNING = re.compile(r"(^|[\s:])warning: ")
_PLACE = re.compile(r"(?:In file included from |\s+from )?(?P<file>[^\s:(][^:(\n]*)[:(](?P<line>\d+)[:),]")
_MESSAGE = re.compile(r"^(?:.*?[:(]\d+(?::\d+)?\)?: *)?(?:fatal |internal compiler )?error *: *")
#: The folder of the candidate's own file, which says nothing.
_OWN_FOLDER = re.compile(
    r"^(In file included from |\s+from )?(?:/[^\s:(/]+)*/(?=[^\s:(/]+\.(?:cu|hip|cpp|cc|cxx|c)(?:[:(]\d|: In ))"
)
_INCLUDED = re.compile(r"In file included from |\s+from \S+:\d+[:,]")
#: What g++ says before an error: where it is, and who instantiated it.
_SCOPE = re.compile(r"[^\s:]+: (In |At )|[^\s:]+:\d+:\d+:   required |.*\[ skipping \d+ ")
_REQUIRED = re.compile(r":\d+:   required ")
_FUNCTION = re.compile(r": In (?!instantiation|substitution)")
_INSTANCE_OF = re.compile(r": In instantiation of ")
_REQUESTED = re.compile(r": note: (in instantiation of .* requested here|while substituting .*|called by )")
_CLOSING = re.compile(
    r"\d+ (errors?|warnings?)\b.* generated|\d+ errors? detected|clang(\+\+)?(-\d+)?: |compilation terminated"
)
#: Notes that say nothing about the mistake while others do.
_EMPTY_NOTE = re.compile(
    r"couldn't infer template argument|expanded from macro|template argument deduction/substitution failed"
)
_NOTE = re.compile(r"[^\s].*: note: ")
_LABEL = re.compile(r"(cuda_sources|cpp_sources|hip_source)(\[\d+\])?|bindings")
_SOURCE_SUFFIXES = frozenset({".cu", ".hip", ".cpp", ".cc", ".cxx", ".c"})
_UNRESOLVED = re.compile(r"undefined reference to `(?P<name>.+)'\s*$")

# What only PyTorch's ROCm build, ROCm's libraries or the interpreter define: a machine without them cannot tell.
_RESOLVED_ELSEWHERE = re.compile(
    r"(c10|at|torch)::(native::)?(cuda|hip)\b|.*\bfor (c10|at)::(cuda|hip)::|_?Py[A-Z_]|__?hip|hip[A-Z]"
    r"|roc\w+_|rocblas|hipblas|hipsparse|hipsolver|hiprand|miopen|nccl"
)


def first_error(output: str) -> str | None:
    """Return the first error, cut as `errors` does; None when there is no error line."""
    return next(errors(output), None)


def first_error_line(output: str) -> str | None:
    """Return the first line of a build's output that is an error, the folder of its file left out."""
    line = next(filter(_is_error, output.translate(_QUOTES).splitlines()), None)
    return None if line is None else re.sub(r"^(?:/[^\s:(]*/)+", "", line.strip())


def begins_at_own_line(output: str) -> bool:
    """Return whether the first error is at a line of the candidate's own source, not in a header that it includes."""
    line = next(filter(_is_error, output.splitlines()), None)
    return line is not None and _is_ours(line)


def without_commands(output: str, limit: int) -> str:
    """Return the lines of a build's output that are neither a command nor ninja's, up to `limit` characters."""
    lines = [line for line in output.splitlines() if not _COMMAND.match(line) and len(line) < _MAX_LINE_LENGTH]
    text = "\n".join(lines)
    return text if len(text) <= limit else text[:limit] + "\n[... cut ...]"


def errors(output: str) -> Iterator[str]:
    """Yield each error of clang, g++, nvcc or a linker, in order, in at most SHOWN_LINES lines (`Diagnostic.shown`)."""
    return (one.shown() for one in diagnostics(output))


@dataclass(frozen=True)
class Diagnostic:
    """One error of clang, g++, nvcc or a linker, with the lines that belong to it."""

    error: str  #: the error's own line
    before: tuple[str, ...]  #: the chain of includes, g++'s scopes and instantiations
    snippet: tuple[str, ...]  #: the compiler's source line and caret line
    notes: tuple[tuple[str, ...], ...]  #: each note with the source lines below it

    @property
    def place(self) -> str | None:
        """The candidate's own line that it leads to, as "main.cpp:12"; None where it leads to none."""
        for line in (self.error, *(note[0] for note in self.requested), *self.required, *self.before):
            if (place := _place(line)) is not None and _is_ours(line):
                return f"{PurePath(place['file']).name}:{place['line']}"
        return None

    @property
    def where(self) -> str | None:
        """The line that the message itself names, in any file."""
        place = _place(self.error)
        return None if place is None else f"{place['file']}:{place['line']}"

    @property
    def message(self) -> str:
        """What is wrong, without the place."""
        return _MESSAGE.sub("", self.error)

    @property
    def requested(self) -> list[tuple[str, ...]]:
        """Notes of clang that say who instantiated the place of the error."""
        return [note for note in self.notes if _REQUESTED.search(note[0])]

    @property
    def required(self) -> list[str]:
        """g++'s lines of the same."""
        return [line for line in self.before if _REQUIRED.search(line)]

    @property
    def said(self) -> list[tuple[str, ...]]:
        """The other notes: why a function was not viable, where a name is declared."""
        said = [note for note in self.notes if not _REQUESTED.search(note[0])]
        return [note for note in said if not _EMPTY_NOTE.search(note[0])] or said

    def shown(self, most_notes: int = _SAID_NOTES, *, scopes: bool = True) -> str:
        """Return the error in at most SHOWN_LINES lines.

        Kept are the error with its source lines, the innermost place in the candidate's own source that led there (by
        instantiation, else by inclusion), and what the compiler says about rejected functions: `most_notes` of that.
        The other steps through headers are left out, and without `scopes` the function that g++ names.
        """
        requested = self.requested
        ours = next((note for note in requested if _is_ours(note[0])), requested[-1] if requested else ())
        mine = next((line for line in self.required if _is_ours(line)), None)
        shown: list[str] = []
        if mine is not None:
            shown += [*[line for line in self.before if _INSTANCE_OF.search(line)][:1], mine]
        elif not ours:
            shown += _leading([line for line in self.before if _INCLUDED.match(line)])
            shown += [line for line in self.before if _FUNCTION.search(line)][-1:] if scopes else []
        shown += [self.error, *self.snippet[:_SNIPPET_LINES], *ours[: 1 + _NOTE_SNIPPET_LINES]]
        for note in self.said[:most_notes]:
            shown += note[: 1 + _NOTE_SNIPPET_LINES] if _is_ours(note[0]) or "<inline asm>" in note[0] else note[:1]
        return "\n".join(
            _shortened(_OWN_FOLDER.sub(lambda found: found[1] or "", line)) for line in shown[:SHOWN_LINES]
        )


def diagnostics(output: str) -> Iterator[Diagnostic]:
    """Yield the errors of a build's output, in order, with plain quotes where g++ writes typographic ones."""
    lines = output.translate(_QUOTES).splitlines()
    for index, line in enumerate(lines):
        if _is_error(line):
            snippet, notes = _notes(_after(lines, index))
            kept = tuple(tuple(note) for note in notes)
            yield Diagnostic(line, tuple(_before(lines, index)), tuple(snippet), kept)


def _is_error(line: str) -> bool:
    return _ERROR.match(line) is not None and _WARNING.search(line) is None and not _REQUESTED.search(line)


def _before(lines: Sequence[str], index: int) -> list[str]:
    """Return the lines of context that precede an error: the chain of includes, g++'s scopes and instantiations."""
    begin = index
    while begin > 0 and (_INCLUDED.match(lines[begin - 1]) or _SCOPE.match(lines[begin - 1])):
        begin -= 1
    return list(lines[begin:index])


def _after(lines: Sequence[str], index: int) -> list[str]:
    """Return the source lines and notes that follow an error."""
    end = index + 1
    while end < len(lines):
        line = lines[end]
        begins_another = _is_error(line) or _WARNING.search(line) or _INCLUDED.match(line) or _SCOPE.match(line)
        if begins_another or not line.strip() or _CLOSING.match(line):
            break
        end += 1
    return list(lines[index + 1 : end])


def _notes(after: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return what follows an error, taken apart: its own source lines, and each note with those of its own."""
    snippet: list[str] = []
    notes: list[list[str]] = []
    for line in after:
        if _NOTE.match(line):
            notes.append([line])
        elif notes:
            notes[-1].append(line)
        else:
            snippet.append(line)
    return snippet, notes


def _leading(chain: Sequence[str]) -> list[str]:
    """Return a chain of includes' line in the candidate's source, or its first line where none is."""
    for line in chain:
        if _is_ours(line):
            return [f"In file included from {line.split('from ', 1)[1].rstrip(',:')}:"]
    return list(chain[:1])


def _place(line: str) -> re.Match[str] | None:
    return _PLACE.match(line)


def _is_ours(line: str) -> bool:
    """Return whether a message's place is the candidate's own source: a `#line` mark of a build, or no header."""
    place = _place(line)
    if place is None:
        return False
    return bool(_LABEL.fullmatch(place["file"])) or PurePath(place["file"]).suffix in _SOURCE_SUFFIXES


def _shortened(line: str) -> str:
    if len(line) <= _LINE_LIMIT:
        return line
    return f"{line[: _LINE_LIMIT - 110]} [...] {line[-100:]}"


def unresolved_symbols(output: str) -> tuple[str, ...]:
    """Return the symbols, each once, that the linker did not resolve and no library of a ROCm machine has."""
    names: dict[str, None] = {}
    for line in output.splitlines():
        match = _UNRESOLVED.search(line)
        if match and not _RESOLVED_ELSEWHERE.match(match["name"]):
            names[match["name"]] = None
    return tuple(names)
