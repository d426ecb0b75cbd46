"""What the engine and its evaluator processes say to each other: one class a frame, on a private socket.

A frame goes as its fields beside `frame`, the name of its class in small letters. Here and not beside the runner's
messages, because frames hold records, which a runner must not import.

Two workers serve a candidate. Both are told to `Evaluate` it. One has it built and loaded; its last frame is `Ready`
when there is something to measure. The other one stays with a device (`ServeDevice`); what it is to measure is handed
to it by a door (`TakeEvaluation`).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from hkbench import errors
from hkbench.audit.records import ProblemAudit
from hkbench.evaluation.job import EvaluateJob
from hkbench.protocol import wire
from hkbench.protocol.codec import NotOfForm, class_of_answer, decode, encode
from hkbench.records import DeviceFacts, DeviceKind, Problem, ProblemFacts, SizeSet, Stage, Verdict

Answer = TypeVar("Answer", covariant=True)


class Frame:
    """Anything that goes between the two."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Frame):
    """The last frame of a worker whose work failed; `error` is the name of a class of hkbench/errors.py."""

    error: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered(Frame):
    """A stage has begun."""

    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped(Frame):
    """A step within a stage has begun, in words: "trial 2 of 5"."""

    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerWanted(Frame):
    """A runner is to be forked for a profiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerWanted(Frame):
    """Another runner is to be forked for the candidate; its channel and control follow by the socket for those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Frame):
    """There is something to measure, and what is known so far lies in the memory file of the evaluation (`Loaded`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchesCompiled:
    """What Triton would have launched: see evaluation/launches.py."""

    kernels: list[dict[str, object]]  #: as the candidate's process describes them, with `image` in base64
    notes: list[str]  #: for the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Built(Frame):
    """What came of a build that is not measured."""

    extensions: list[object]  #: recorded calls, as the candidate's process told them
    launched: LaunchesCompiled | None
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Frame):
    """The verdict; `stays`: this process may measure again, else `left_behind` says what keeps it from that."""

    verdict: Verdict
    stays: bool = False
    left_behind: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound(Frame):
    devices: list[DeviceFacts]
    properties: dict[str, object] = field(default_factory=dict)  #: of the first GPU, as PyTorch names them


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsFound(Frame):
    facts: ProblemFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited(Frame):
    audit: ProblemAudit


class Job(Frame, Generic[Answer]):
    """The one job of a worker that answers once; `Answer` is the class of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Job[DevicesFound]):
    """Say which devices there are; `kind` None asks for the best one."""

    kind: DeviceKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindFacts(Job[FactsFound]):
    """Find the shapes and dtypes of a problem, by running its own code. The process ends itself after `seconds`."""

    problem: Problem
    sizes: SizeSet
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Job[Audited]):
    """Find which null controls pass a problem's checks. The process ends itself after `seconds`."""

    problem: Problem
    sizes: SizeSet
    device: DeviceKind
    index: int
    trials: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate(Frame):
    """Evaluate one candidate; `memory_bytes`: that its runner may take."""

    job: EvaluateJob
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeDevice(Frame):
    """Stay with a device and measure what comes by the door, which is the socket of this frame.

    Beside the door the process has channel and control of a runner for the baseline, which stays too.
    """

    facts: DeviceFacts
    shared: str | None = None  #: the folder of the locks of those that use the device too


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulate(Frame):
    """Be the emulated GPU of one evaluation, until its evaluators have closed the socket beside that of this frame."""

    arch: str
    folder: str  #: for temporary files
    readable: list[str]  #: beyond the system: LLVM's tools
    objdump: str
    cache: str  #: the user's folder, where the executor is
    layers: list[str]  #: of confinement, those that work here


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeEvaluation(Frame):
    """Take an evaluation's channel to the engine, its sockets and its files, which follow this frame."""


_CLASSES: dict[str, type[Frame]] = {
    kind.__name__.lower(): kind
    for kind in (
        Failed, Entered, Stepped, ProfilerWanted, RunnerWanted, Ready, Built, Judged, DevicesFound, FactsFound,
        Audited, Describe, FindFacts, Audit, Evaluate, ServeDevice, Emulate, TakeEvaluation,
    )
}  # fmt: skip


def written(frame: Frame) -> wire.Message:
    """Return a frame as it goes by the wire."""
    return {"frame": type(frame).__name__.lower(), **encode(frame)}


def read(message: Mapping[str, object]) -> Frame:
    """Return the frame that a message is.

    Raises:
        NotOfForm: it is none.
    """
    kind = _CLASSES.get(str(message.get("frame")))
    if kind is None:
        raise NotOfForm(f"there is no frame {str(message.get('frame'))[:40]!r}")
    return decode(kind, {key: value for key, value in message.items() if key != "frame"})


def send(sock: socket.socket, frame: Frame) -> None:
    """Send a frame. Raises what `wire.send` raises."""
    wire.send(sock, written(frame), wire.MAX_TRUSTED_BODY)


def receive(sock: socket.socket) -> Frame:
    """Wait for a frame. Raises what `wire.receive` raises, and NotOfForm where the message is none."""
    return read(wire.receive(sock))


def answer_to(job: Job[Answer], frame: Frame) -> Answer:
    """Return a worker's answer to its job.

    Raises:
        HkbenchError: the work failed, or the frame is no answer to that.
    """
    if isinstance(frame, class_of_answer(job)):
        return cast("Answer", frame)
    raise failure(frame)


def failure(frame: Frame) -> errors.HkbenchError:
    """Return what went wrong where this frame came in place of the one that was wanted."""
    if not isinstance(frame, Failed):
        return errors.WorkerLost(f"an evaluator process said {type(frame).__name__}, which was not asked")
    kind = getattr(errors, frame.error, None)
    if isinstance(kind, type) and issubclass(kind, errors.HkbenchError):
        return kind(frame.message)
    return errors.InternalError(frame.message)
