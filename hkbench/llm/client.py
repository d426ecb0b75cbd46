"""What the rest of hkbench knows of a model: it is asked with a prompt and gives a reply."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hkbench.records import Advice, CallKey, Reply


class Permit(Protocol):
    """What a client asks before it calls the service. Both raise `RunStopped` once no call may be begun any more."""

    def begin(self) -> None:
        """Before each try, when nothing else is waited for."""
        ...

    async def wait(self, seconds: float) -> None:
        """Before another try; returns early only by raising."""
        ...


class Always:
    """The permit of a single call, which nothing ends."""

    def begin(self) -> None:
        """Always granted."""

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
        """The reply to one prompt. Safe to call many times at once. What `permit` raises passes through.

        `prompt` is the user's message, `system` the system message before it.

        `form`: the endpoint is asked to answer with JSON of this form, where it offers that; the reply may be
        anything still (see `read_answer`).

        Raises ModelUnavailable when the service refused or kept failing, ReplayMissing when nothing is
        recorded for `key`. A refusal or an empty answer of the model is a reply, not an error.
        """
        ...

    async def close(self) -> None:
        """Give connections back. The client is not used afterwards."""
        ...
