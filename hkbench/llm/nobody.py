"""The client of a run that asks no model."""

from __future__ import annotations

from hkbench.errors import InternalError
from hkbench.llm.client import ALWAYS, Permit
from hkbench.records import Advice, CallKey, Reply


class NobodyClient:
    """Answer nothing: the strategy has no use for a model."""

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
