"""An exception as an answer."""

from __future__ import annotations

import traceback

from hkbench.protocol.messages import Raised

TEXT_LIMIT = 64 * 1024  #: characters of a message, and of a traceback


def raised(error: BaseException) -> Raised:
    """Return what the evaluator is told of an exception."""
    text = "".join(traceback.format_exception(error))
    if len(text) > TEXT_LIMIT:
        half = TEXT_LIMIT // 2
        text = f"{text[:half]}\n[... {len(text) - TEXT_LIMIT} characters left out ...]\n{text[-half:]}"
    kind = type(error)
    return Raised(
        error=f"{kind.__module__}.{kind.__qualname__}",
        message=str(error)[:TEXT_LIMIT],
        traceback=text,
        syntax=isinstance(error, SyntaxError),
    )
