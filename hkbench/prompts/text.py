"""Text that others wrote (models, compilers, profilers), made safe and short enough to put into a prompt."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC with their text
    r"|\x1b[ -/]*[0-~]",  # two- and three-character escapes
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ERROR_LINE = re.compile(
    r"\berror\s*:|\bfatal error\b|undefined (?:hidden )?(?:symbol|reference)|static assertion|static_assert"
    r"|\bCompilationError\b|ld(?:\.lld)?: |cannot find -l|multiple definition"
)
_LINE_LIMIT = 400  # characters; the command that ninja echoes is often longer than all the errors


def clean(text: str) -> str:
    """Return `text` without terminal escapes and control characters; newlines and tabs stay.

    Lone surrogates, which no UTF-8 file can hold, become "?".
    """
    text = _ESCAPES.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode("utf-8")


def fenced(text: str, language: str = "") -> str:
    """Return `text` as a code block whose fence is longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def first_errors(text: str, limit: int = 4000) -> str:
    """Return the first errors of a compiler's output with the lines around them, at most `limit` characters.

    Output without a recognisable error line is cut to its end, where tools usually say why they stopped.
    """
    lines = [
        line if len(line) <= _LINE_LIMIT else f"{line[: _LINE_LIMIT - 20]} [... line cut]"
        for line in clean(text).splitlines()
    ]
    hits = [number for number, line in enumerate(lines) if _ERROR_LINE.search(line)]
    if not hits:
        return ending("\n".join(lines), limit)
    kept: list[str] = []
    done = 0  # lines before this one are kept or passed over
    used = 0
    for hit in hits:
        start, stop = max(done, hit - 2), min(len(lines), hit + 6)
        window = ([f"[... {start - done} lines left out]"] if start > done else []) + lines[start:stop]
        size = sum(len(line) + 1 for line in window)
        if kept and used + size > limit - 40:
            break
        kept += window
        used += size
        done = max(done, stop)
    if done < len(lines):
        kept.append(f"[... {len(lines) - done} lines left out]")
    return "\n".join(kept)[:limit]


def ending(text: str, limit: int = 4000) -> str:
    """Return the last `limit` characters of `text`, from the start of a line, saying how much was cut."""
    text = clean(text).strip("\n")
    if len(text) <= limit:
        return text
    note = "[... beginning left out]\n"
    tail = text[-(limit - len(note)) :]
    return note + tail[tail.find("\n") + 1 :]
