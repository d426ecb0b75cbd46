"""Failures as fingerprints: the same for the same mistake, whatever paths, numbers and addresses it came with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from hkbench.records import Failure, FailureKind

LENGTH = 16  #: characters of a digest
MAX_TEXT = 300  #: characters of the normalised message

#: Kinds whose message is the reason; of the others the kind alone says what the mistake is.
_SPEAKING = frozenset(
    {
        FailureKind.NO_CODE,
        FailureKind.SYNTAX_ERROR,
        FailureKind.BUILD_ERROR,
        FailureKind.LOAD_ERROR,
        FailureKind.RUNTIME_ERROR,
        FailureKind.CRASH,
        FailureKind.WRONG_PARAMETERS,
        FailureKind.NOT_OWN,
        FailureKind.DEVICE_ERROR,
        FailureKind.UNSUPPORTED,
        FailureKind.FORBIDDEN,
    }
)
#: The line of a compiler's, a linker's or Python's error, in the text that a tool printed.
_ERROR = re.compile(
    r"\b(?:fatal )?error\s*:|undefined (?:hidden )?(?:symbol|reference)|multiple definition of|\bcannot find "
    r"|^[\w.]*(?:Error|Exception)\b"
)
_NORMALISED = (
    (re.compile(r"[\u2018\u2019`]"), "'"),  # typographic quotes, by the locale
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"(?:[A-Za-z]:)?(?:\.{0,2}/)[\w.+@~-]*(?:/[\w.+@~-]+)*(?::\d+)*"), "PATH"),
    (re.compile(r"\b[\w-]+\.(?:cu|cpp|hip|cc|c|cuh|hpp|h|py|so|o|ll|s)\b(?:[:(]\d+[:,)\d]*)*"), "FILE"),
    (re.compile(r"\b(?:[0-9a-f]{12,}|tmp\w{6,}|(?:\w*_)?v\d+(?=_ext\b))"), "NAME"),
    (re.compile(r"(?<!\w)\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)
_SYMBOLS = tuple(
    re.compile(pattern)
    for pattern in (
        r"undefined (?:hidden )?(?:symbol|reference)[^']*?:? '?(?P<symbol>[A-Za-z_][\w:~]*)",
        r"has no attribute '(?P<symbol>\w+)'",
        r"(?:no (?:member|type|template) named|identifier|unknown type name|name|function for call to|module named"
        r"|call to|member|argument) '(?P<symbol>[A-Za-z_][\w:.]*)",
        r"'(?P<symbol>__builtin_\w+)'",
        r"'(?P<symbol>[A-Za-z_][\w:]*)' (?:was not declared|has not been declared|does not name|is not a member|is not"
        r" defined|is ambiguous|undeclared)",
        r"unexpected keyword argument '(?P<symbol>\w+)'",
        r'identifier "(?P<symbol>\w+)"',
        r"'(?P<symbol>[\w./-]+\.(?:h|cuh|hpp))' file not found|(?P<header>[\w./-]+\.(?:h|cuh|hpp)): No such file",
    )
)


@dataclass(frozen=True)
class Fingerprint:
    """What a failure is recognised by."""

    digest: str
    text: str  #: that the digest is of: stage, kind, normalised message
    symbol: str | None  #: the name that the message speaks of; `None`: of none
    by_message: bool  #: two that are equal have the same message; else only the same stage and kind


def fingerprint(failure: Failure) -> Fingerprint:
    """Return what a failure is recognised by."""
    said = _said(failure)
    text = f"{failure.stage}/{failure.kind}: {normalised(said)}" if said else f"{failure.stage}/{failure.kind}"
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]
    return Fingerprint(digest, text, symbol_of(said), bool(said))


def normalised(text: str) -> str:
    """Return a message without what differs from one machine and build to the next."""
    for pattern, word in _NORMALISED:
        text = pattern.sub(word, text)
    return text.strip()[:MAX_TEXT]


def symbol_of(text: str) -> str | None:
    """Return the name that a message speaks of, the most telling one; `None` where it names none."""
    text = text.replace("\u2018", "'").replace("\u2019", "'")
    for pattern in _SYMBOLS:
        found = pattern.search(text)
        if found is not None:
            return next(name for name in found.groupdict().values() if name)
    return None


def _said(failure: Failure) -> str:
    """Return the line that says what is wrong: the first error of the tool's text, else the message's first line."""
    if failure.kind not in _SPEAKING:
        return ""
    for text in (failure.message, failure.detail or ""):
        found = next((line for line in text.splitlines() if _ERROR.search(line)), None)
        if found is not None:
            return found.strip()
    return next((line.strip() for line in failure.message.splitlines() if line.strip()), "")
