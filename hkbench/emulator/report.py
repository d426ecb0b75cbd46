"""What the evaluator asks of the device for a call, and what it is told of it."""

from __future__ import annotations

from dataclasses import dataclass

from hkbench.emulator.arena import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How the launches of a call are executed; see `executor.Options`."""

    check: bool = True
    late: bool = False
    seed: int | None = None
    max_instructions: int = 4_000_000_000  #: of all launches together
    seconds: float = 600.0  #: of the call: after them nothing is loaded or launched
    garble: bool = False  #: what kernels wrote is replaced by one and the same number


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRange:
    """An input of the evaluator's."""

    range: Range
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemory:
    """Map inbox and outbox, of so many bytes; their files follow."""

    inbox: int
    outbox: int
    ranges: list[NamedRange]  #: what kernels may use in them


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Observe what follows as one call."""

    options: CallOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Say what was observed since `Begin`; `outputs` are where the outputs of the call lie."""

    outputs: list[Range]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something that a kernel did and may not, or that the device cannot do.

    Kinds of the first: "wait", "race", "out_of_bounds", "uninitialized"; of the second: "unsupported", "budget".
    """

    kind: str
    message: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """A wait of the kernel's source that was executed."""

    kernel: str
    text: str  #: the instruction
    line: str  #: "FILE:LINE"
    used: bool  #: something that it proved was touched before another wait of the source would have proved it


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Lists and names are of the first ones, counts are of all."""

    kernels: dict[str, int]  #: that were launched, by mangled names -> instructions of their waves
    launch_count: int
    faults: list[Told]
    fault_count: int
    refusals: list[Told]
    violation: str | None  #: what the runner sent that a runner never sends
    written: list[int]  #: bytes of each output asked for that kernels wrote, and nobody after them
    waits: list[Waited]
    host_made: int  #: bytes that kernels read and the host had written (or said), whatever they are
