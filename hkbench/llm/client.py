"""What the rest of hkbench knows of a model: it is asked with a prompt and gives a reply."""

from __future__ import annotations

from typing import Protocol

from hkbench.records import Reply, SampleKey


class ModelClient(Protocol):
    """Anything that answers prompts: a service, or a folder of recorded replies."""

    async def complete(self, key: SampleKey, prompt: str) -> Reply:
        """The reply to one prompt. Safe to call many times at once.

        Raises ModelUnavailable when the service refused or kept failing, ReplayMissing when nothing is
        recorded for `key`. A refusal or an empty answer of the model is a reply, not an error.
        """
        ...

    async def close(self) -> None:
        """Give connections back. The client is not used afterwards."""
        ...
