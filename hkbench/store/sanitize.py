"""Text of models and of the tools they ran, made safe to show on a terminal."""

from __future__ import annotations

import re

# ECMA-48: strings (OSC, DCS, SOS, PM, APC) up to their terminator, control sequences, then two-byte escapes.
_ESCAPES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x1b\x07\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
# What is left of the control characters (but not tab and newline), and the marks that reverse reading order.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def strip_escapes(text: str) -> str:
    """Return `text` without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, without escapes; an ellipsis marks a cut."""
    flat = " ".join(strip_escapes(text).split())
    return flat if len(flat) <= width else flat[: max(0, width - 1)].rstrip() + "…"
