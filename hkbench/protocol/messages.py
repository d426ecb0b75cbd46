"""What an evaluator asks of a runner, and what a runner answers: one class an operation and one an answer.

The name of an operation is that of its class in small letters. A request goes as its fields beside `op`, an answer as
its fields beside `ok`, which is false where an exception is the answer (`Raised`).

What a runner says of a candidate's kernels and outputs stays JSON values here: who uses them checks them, with failures
of their own (evaluation/form.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Generic, TypeVar, cast

from hkbench.protocol.codec import NotOfForm, Range, class_of_answer, decode, encode
from hkbench.protocol.places import Argument, Place

MAX_ADDRESS = 1 << 63  #: no device and no process has one beyond
MAX_KERNELS = 256  #: that a forward pass launches

Answer = TypeVar("Answer", covariant=True)
Object = dict[str, object]
#: What stands for a part of an exception that a runner does not tell.
_USUAL = {"error": "Exception", "message": "", "traceback": ""}
Address = Annotated[int, Range(0, MAX_ADDRESS - 1)]


class Request(Generic[Answer]):
    """What a runner is asked; `Answer` is the class of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An exception in the runner, as the answer to any request."""

    error: str = "Exception"  #: the name of its class, with its module
    message: str = ""
    traceback: str = ""
    syntax: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing else is to be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLoaded:
    has_class: bool
    extensions: list[object]  #: recorded calls, of a `capture`


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentGpu:
    """A GPU that is compiled for; sizes are in bytes."""

    name: str
    arch: str
    compute_units: int
    memory: int
    lds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedGpu:
    """A GPU whose kernels a process of its own executes."""

    gpu: AbsentGpu
    libraries: str  #: the folder of hkbench/toolchain/emulated.py
    hip: str  #: version
    base: int  #: the address of its memory
    size: int  #: of that, in bytes
    inbox: int  #: the address of the region
    outbox: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Request[CandidateLoaded]):
    """Import the candidate, or the problem with its sizes in force.

    On an `emulated` GPU the socket to its process and the file of its memory follow.
    """

    path: str
    class_: str
    capture: bool
    overrides: Object
    text: str | None = None
    gpu: AbsentGpu | None = None  #: for which Triton's launches are recorded
    emulated: EmulatedGpu | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What became of Triton's launches: see evaluation/launches.py."""

    stage: str
    raised: Raised | None  #: what ended the forward pass early
    kernels: Annotated[list[Object], Range(0, MAX_KERNELS)]
    refused: Annotated[list[Object], Range(0, MAX_KERNELS)]
    idle: Annotated[list[str], Range(0, MAX_KERNELS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(Request[Launched]):
    """Make ModelNew and call it once on tensors without contents."""

    seed: int
    init_inputs: list[Argument]
    inputs: list[Argument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearse(Request[Done]):
    """Make ModelNew and call it once, on tensors without contents and before the device is taken, for what is built."""

    device: str
    gpu: Object  #: properties, as PyTorch names them; none on a CPU
    threads: int
    modules: list[str]  #: to import first
    init_inputs: list[Argument]
    inputs: list[Argument]
    seconds: float  #: that it may take beside its builds


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePart:
    part: str  #: base64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Request[CodePart]):
    """Return a part of a code object, from an offset in bytes."""

    number: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyGpu:
    """The one GPU that a process is to see."""

    visible: str  #: its place in the user's CUDA_VISIBLE_DEVICES, or its number
    uuid: str  #: says whether it is the right one


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(Request[Done]):
    """Take a device."""

    device: str
    threads: int
    only: OnlyGpu | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionsMapped:
    process: Annotated[int, Range(0, MAX_ADDRESS - 1)] | None = None  #: its number; said without a gate
    outbox: Address | None = None  #: said with a gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions(Request[RegionsMapped]):
    """Map the two regions, and the page of a `gate`. Regions and gate are given by their bytes."""

    inbox: int
    outbox: int
    shared: bool  #: they lie on the device
    sent: bool  #: their files follow the message, and the gate's follows them
    left: bool  #: outputs stay where they lie, for the evaluator to read
    flush_bytes: int
    gate: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPlaced:
    process: Annotated[int, Range(0, MAX_ADDRESS - 1)]
    address: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Here(Request[TextPlaced]):
    """Keep a text in memory and say where."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateForm:
    """One parameter or buffer."""

    name: str
    shape: list[int]
    dtype: str
    parameter: bool
    same: str  #: the first name of the tensor, its own as a rule


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMade:
    state: list[StateForm]


@dataclass(frozen=True, slots=True, kw_only=True)
class Construct(Request[ModelMade]):
    """Make the model under a seed."""

    seed: int
    init_inputs: list[Argument]
    draws: bool = True  #: random initial values, in place of whatever memory holds until values are loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters(Request[Done]):
    """Load the values that lie in the inbox, by the model's own names."""

    state: dict[str, Place]
    also: dict[str, str] = field(default_factory=dict)  #: further names, each with the one whose values it gets


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Request[Done]):
    """Write parameters and buffers, as they are now, back to where they came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(Request[Done]):
    """Fix where inputs lie in the inbox and where outputs go in the outbox."""

    inputs: list[Argument]
    outputs: dict[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Request[Done]):
    """Begin or end the strict mode of the trials."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Request[Done]):
    """Clear the memory that the next call may get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The outputs of a forward pass, and seconds by the runner's clock unless the call was gated."""

    device_error: str | None
    leaves: list[Object]
    seconds: float | None = None
    idle_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Request[Called]):
    """Make one forward pass; `gate`: the number of a call whose inputs the evaluator releases.

    `variant`: by another way to compute the same, that a `Variant` has made.
    """

    gate: int | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Null(Request[Called]):
    """Make a gated call without a forward pass; it has the last call's outputs."""

    gate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantMade:
    graphs: Annotated[int, Range(0, 1 << 31)]  #: that torch.compile has compiled so far
    notes: list[str]  #: what is not compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Request[VariantMade]):
    """Make another way to compute what the model does, unless it is made, and warm it up."""

    variant: str  #: "compile" or "best"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A call, with the kernel trace of it: see runner/trace.py."""

    device_error: str | None
    leaves: list[Object]
    seconds: float
    idle_seconds: float
    trace: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(Request[Traced]):
    """Make the same call while the kernel trace records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead(Request[Done]):
    """Copy the inputs that lie in the inbox, for a later call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Successive(Request[Done]):
    """Make calls that follow one another at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    leaves: list[Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Request[HandedOver]):
    """Hand over the result of one of the successive calls."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    wall_seconds: float
    kernels: list[Object]
    on_gpu: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Request[Profiled]):
    """Make forward passes under torch's profiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnded:
    returncode: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Request[CommandEnded]):
    """Run a profiler around a process of its own."""

    command: list[str]
    environment: dict[str, str]
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHeld:
    """Bytes that a runner has after a reset: of the device by torch's allocator, and of the host."""

    device_bytes: int
    host_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(Request[MemoryHeld]):
    """Forget the model, and give back what it had; the class stays where another shape of the problem follows."""

    keep_class: bool = False


#: The classes of requests by the names of their operations.
REQUESTS: dict[str, type[Request[object]]] = {
    kind.__name__.lower(): kind
    for kind in (
        Load, Device, Regions, Construct, Parameters, State, Bind, Watch, Prepare, Call, Variant, Null, Trace, Ahead,
        Successive, Result, Profile, Command, Launch, Rehearse, Part, Here, Reset,
    )
}  # fmt: skip


def name_of(request: Request[object]) -> str:
    """Return the name of the operation."""
    return type(request).__name__.lower()


def at_gate(request: Request[object], number: int) -> Request[object]:
    """Return a call whose inputs the evaluator releases, by the number of that call."""
    assert isinstance(request, Call | Null), f"{name_of(request)} has no gate"
    return replace(request, gate=number)


def read(message: Mapping[str, object]) -> Request[object]:
    """Return the request that a message is.

    Raises:
        NotOfForm: it is none.
    """
    kind = REQUESTS.get(str(message.get("op")))
    if kind is None:
        raise NotOfForm(f"there is no operation {message.get('op')!r}")
    return decode(kind, {key: value for key, value in message.items() if key != "op"})


def written(request: Request[object]) -> Object:
    """Return a request as it goes by the wire."""
    return {"op": name_of(request), **encode(request)}


def written_answer(answer: object) -> Object:
    """Return an answer as it goes by the wire."""
    return {"ok": not isinstance(answer, Raised), **encode(answer)}


def answer_to(request: Request[Answer], message: Mapping[str, object]) -> Answer | Raised:
    """Return what a runner answered to a request.

    Raises:
        NotOfForm: it is no such answer.
    """
    fields = {key: value for key, value in message.items() if key != "ok"}
    if message.get("ok") is True:
        return cast("Answer", decode(class_of_answer(request), fields))
    if message.get("ok") is False:
        return raised_by(fields)
    raise NotOfForm(f"the answer to {name_of(request)} is neither a result nor an error")


def raised_by(told: Mapping[str, object]) -> Raised:
    """Return an exception that a runner told of, as text whatever stands there: what matters is that there was one."""
    error, message, trace = (str(told.get(key, usual)) for key, usual in _USUAL.items())
    return Raised(error=error, message=message, traceback=trace, syntax=bool(told.get("syntax")))
