"""What became of a compile command's quick way. Standard library only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ERRORS = 1  #: the exit status of gcc and clang for errors in a source
_ERROR = re.compile(r"(.*?):\d+:\d+: (?:fatal )?error: ")


@dataclass(frozen=True)
class CompileAttempt:
    """One attempt. `final`: it failed, and the command itself would, with the same words."""

    status: int
    output: str
    final: bool = False


def run(
    words: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> CompileAttempt:
    """Run one command to its end. Raises OSError and subprocess.TimeoutExpired."""
    done = subprocess.run(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    return CompileAttempt(done.returncode, done.stdout)


def is_source_error(tried: CompileAttempt, source: str) -> bool:
    """Return whether gcc or clang found errors, the first at a line of the source itself, not in a header."""
    first = next(filter(None, map(_ERROR.match, tried.output.splitlines())), None)
    return tried.status == ERRORS and first is not None and first[1] == source
