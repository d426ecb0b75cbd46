"""What the rest of hkbench knows of a model: it is asked with a prompt and gives a reply."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from hkbench.errors import InternalError
from hkbench.records import Advice, CallKey, Reply


@dataclass(frozen=True)
class Retry:
    """A try failed, and another one follows."""

    cause: str
    tries: int  #: made so far
    wait: float  #: seconds until the next one
    limit: float | None  #: seconds for which an outage is waited out, from its first failure; None: it is no outage
    max_tries: int | None  #: of a call whose answers cannot be used; None: the time is the limit


class Permit(Protocol):
    """What a client asks before it calls the service.

    `begin` and `wait` raise `RunStopped` once no call may be begun any more.
    """

    def begin(self) -> None:
        """Prepare for a try, when nothing else is waited for."""
        ...

    def retrying(self, retry: Retry) -> None:
        """Note a failed try that another one follows, before the wait."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait before another try; return early only by raising."""
        ...


class Always:
    """The permit of a single call, which nothing ends."""

    def begin(self) -> None:
        """Grant the call, always."""

    def retrying(self, retry: Retry) -> None:
        """Do nothing: nobody observes a single call."""

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


ALWAYS = Always()


class ModelClient(Protocol):
    """Anything that answers prompts: a service, or a folder of recorded replies."""

    async def complete(
        self,
        key: CallKey,
        prompt: str,
        form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        """Return the reply to one prompt. Safe to call many times at once. What `permit` raises passes through.

        `prompt` is the user's message, `system` the system message before it.

        `form`: the endpoint is asked to answer with JSON of this form, where it offers that; the reply may be
        anything still (see `read_answer`).

        A refusal or an empty answer of the model is a reply, not an error.

        Raises:
            ModelUnavailable: the service refused or kept failing. AccessRefused and ServiceOutage are those that the
                next call would meet, too.
            ReplayMissing: nothing is recorded for `key`.
        """
        ...

    async def close(self) -> None:
        """Give connections back. The client is not used afterwards."""
        ...


class NobodyClient:
    """The client of a run that asks no model: its strategy has no use for one."""

    async def complete(
        self,
        key: CallKey,
        prompt: str,  # noqa: ARG002
        form: type[Advice] | None = None,  # noqa: ARG002
        permit: Permit = ALWAYS,  # noqa: ARG002
        system: str | None = None,  # noqa: ARG002
    ) -> Reply:
        """Raise InternalError: whoever has this client asks nothing."""
        raise InternalError(f"{key}: a model was asked in a run that has none")

    async def close(self) -> None:
        """Close nothing: nothing is open."""
