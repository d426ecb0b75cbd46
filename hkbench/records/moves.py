"""What moves of a search came to: global_tactic_graph.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hkbench.records.base import Record
from hkbench.records.bottleneck import Bottleneck

CONFIRM = "confirm"  #: names an attempt that measures a kernel again; it is no move


def move_of(step: str) -> str:
    """Return the move of a step's description, which may say what it changed in brackets."""
    return step.partition(" (")[0]


class MoveGain(Record):
    """What a move came to, over all kernels of a run that wait for the same."""

    move: str
    bottleneck: Bottleneck | None = None  #: of the kernels that it was made from; `None`: not known
    tried: Annotated[int, Field(ge=0)]
    failed: Annotated[int, Field(ge=0)]  #: the kernel was not correct
    gained: Annotated[
        int, Field(ge=0)
    ]  #: it was faster than the one that it was made from, by more than their intervals
    log_gain: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.0  #: sum of the log speed-ups of those
    mean_gain: float | None = None  #: geometric mean of the speed-ups over the parent, of those that were correct


class MoveGains(Record):
    """What each move brought, and which followed which on the way to the best kernels."""

    schema_version: Literal[1] = 1
    moves: tuple[MoveGain, ...]
    paths: dict[str, tuple[str, ...]] = {}  #: by problem: the moves from the start to its best kernel
