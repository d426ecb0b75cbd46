"""A dispatch mode that does not cost its process torch's compiler."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class QuickDispatchMode(TorchDispatchMode):
    """See every operator below it; nothing is compiled there."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: else torch imports its compiler at the first operator, over a second in each worker process.

        torch's FlopCounterMode has no such way out.
        """
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
