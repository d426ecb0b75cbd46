"""What LOG_LEVEL asks for: calls, retries and timings on standard error, by the logging module."""

from __future__ import annotations

import logging
import os
import sys

from hkbench.errors import UsageError
from hkbench.llm.key import KEY_VARIABLES, redact
from hkbench.store.sanitize import strip_escapes

VARIABLE = "LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
ROOT = "hkbench"  #: what other packages log may hold keys, and stays theirs


class _Lines(logging.Handler):
    """Write lines to what is standard error at the time, without keys and without terminal escapes."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        for name in KEY_VARIABLES:
            text = redact(text, os.environ.get(name, "").strip())
        sys.stderr.write(strip_escapes(text) + "\n")


def log_as_asked() -> None:
    """Log what LOG_LEVEL asks for; nothing where it is not set. Raises UsageError for another word."""
    asked = os.environ.get(VARIABLE, "").strip().upper()
    if asked and asked not in LEVELS:
        raise UsageError(f"{VARIABLE} is {asked!r}: set it to one of {', '.join(LEVELS)}, or leave it out")
    logger = logging.getLogger(ROOT)
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)
    logger.propagate = False
    lines: logging.Handler = _Lines() if asked else logging.NullHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(lines)
    logger.setLevel(asked or logging.WARNING)
