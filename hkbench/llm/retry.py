"""Which failures of a service are worth another try, and how long to wait before it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from tenacity import RetryCallState, wait_exponential, wait_random

from hkbench.llm.client import Retry
from hkbench.llm.settings import ModelSettings

RETRIED_STATUS = frozenset({408, 409, 425, 429})
#: A server between gave up waiting: the model may have written its reply, and be paid for it.
_TOO_SLOW = frozenset({408, 504, 524})
_NO_ACCESS = frozenset({401, 402})
#: Codes and types of errors that come with 429 and do not pass: those of OpenAI and of services that copy them.
_NO_QUOTA = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance", "quota_exceeded"}
)

_TRUSTED = 2  #: tries after which a service's "no wait at all" is not taken for granted any more


class Transient(Exception):
    """One try failed in a way that another may mend."""

    def __init__(
        self, cause: str, wait: float | None = None, *, outage: bool = False, slow: bool = False, mute: bool = False
    ) -> None:
        """Take `wait`: seconds that the service asked. `outage`: it did no work for this try, so tries cost nothing.

        `slow`: nothing came in the time that a call may take. `mute`: without a stream the service may say why.
        """
        super().__init__(cause)
        self.wait = wait
        self.outage = outage
        self.slow = slow
        self.mute = mute


def refuses_access(status: int, codes: tuple[str | None, ...] = ()) -> bool:
    """Return whether a status, with the error's `code` and `type`, says that no call with this key will be served."""
    return status in _NO_ACCESS or (status == 429 and not _NO_QUOTA.isdisjoint(codes))


def is_retried(status: int) -> bool:
    """Return whether an HTTP status is worth another try."""
    return status in RETRIED_STATUS or status >= 500


def is_outage(status: int) -> bool:
    """Return whether a status that is retried says that the service did not begin to work on the request."""
    return is_retried(status) and status not in _TOO_SLOW


def requested_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` (seconds or HTTP date) asks for; else None.

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


class Patience:
    """For how long, how often and how soon one call is tried again. One for each call."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        # Half of each wait is fixed and half random: callers that failed together do not return together.
        self._backoff = wait_exponential(
            multiplier=settings.first_wait / 2, max=settings.longest_backoff / 2
        ) + wait_random(0, settings.first_wait / 2)
        self.first_failure: float | None = None  #: by the monotonic clock
        self._spoilt = 0  #: tries whose answer broke off or could not be used

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds: what the service asked for, up to a limit, else exponential with jitter.

        They are no longer than `outage`.
        """
        error = _error(state)
        if self.first_failure is None:
            self.first_failure = time.monotonic()
        self._spoilt += not error.outage
        asked = self._backoff(state)
        if error.wait is not None:
            named = min(error.wait, self._settings.longest_wait)
            asked = named if state.attempt_number <= _TRUSTED else max(named, asked)
        return max(0.0, min(asked, self._left())) if error.outage else asked

    def stop(self, state: RetryCallState) -> bool:
        """Return whether that was the last try. Asked after `wait`."""
        return self._left() <= 0 if _error(state).outage else self._spoilt >= self._settings.max_tries

    def told(self, state: RetryCallState) -> Retry:
        """Return the failed try, for the monitor."""
        error = _error(state)
        wait = state.next_action.sleep if state.next_action is not None else 0.0
        limits = (self._settings.outage, None) if error.outage else (None, self._settings.max_tries)
        return Retry(str(error), state.attempt_number, wait, *limits)

    def _left(self) -> float:
        begun = time.monotonic() if self.first_failure is None else self.first_failure
        return begun + self._settings.outage - time.monotonic()


def _error(state: RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, Transient)
    return error
