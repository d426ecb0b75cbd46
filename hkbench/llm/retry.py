"""Which failures of a service are worth another try, and how long to wait before it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from tenacity import RetryCallState, wait_exponential, wait_random
from tenacity.wait import wait_base

from hkbench.llm.settings import ModelSettings

RETRIED_STATUS = frozenset({408, 409, 429})


class Transient(Exception):
    """One try failed in a way that another may mend. `wait`: seconds the service asked for."""

    def __init__(self, cause: str, wait: float | None = None) -> None:
        super().__init__(cause)
        self.wait = wait


def is_retried(status: int) -> bool:
    """Whether an HTTP status is worth another try."""
    return status in RETRIED_STATUS or status >= 500


def requested_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds or HTTP date) asks for; None when neither does.

    `headers` are looked up by lower-case names. `now`: seconds since the epoch, for dates.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


class PoliteWait(wait_base):
    """The wait that the service asked for, up to a limit; else exponential with jitter."""

    def __init__(self, settings: ModelSettings) -> None:
        self._longest = settings.longest_wait
        # Half of each wait is fixed and half random: callers that failed together do not return together.
        self._backoff = wait_exponential(
            multiplier=settings.first_wait / 2, max=settings.longest_backoff / 2
        ) + wait_random(0, settings.first_wait / 2)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        if isinstance(error, Transient) and error.wait is not None:
            return min(error.wait, self._longest)
        return self._backoff(retry_state)
