"""The process that is the emulated device: it executes what a runner launches, and tells the evaluator what happened.

It is the evaluator's, as a GPU is the driver's. A runner has a socket to it and shares its memory, and learns only
whether a launch went through; which kernels ran, what they wrote and what was wrong is told on the evaluator's socket.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from hkbench.emulator import arena
from hkbench.emulator.arena import Range
from hkbench.emulator.link import (
    AddRange,
    Answer,
    LaunchKernel,
    Left,
    LoadCode,
    Malformed,
    ReadVariable,
    RefusedName,
    RemoveRange,
    Request,
    WriteVariable,
    answer,
    receive,
)
from hkbench.emulator.report import Ask, Begin, CallOptions, Report, ShareMemory, Told, Waited
from hkbench.emulator.written import Written
from hkbench.protocol import wire
from hkbench.protocol.codec import decode, encode

MAX_MODULES = 256
MAX_CODE_BYTES = 128 << 20  #: of all code objects together
MAX_RANGES = 1 << 16
MAX_TOLD = 64  #: faults and refusals of one call that are described; of the others the number is told
MAX_KERNELS = 1024  #: of one call, that are told by name; further ones count as `FURTHER`
FURTHER = "further kernels"
MAX_WAITS = 256  #: of one call, that are told of
DRAINED = 1 << 16  #: frames of a runner that are read before the evaluator is answered
SILENT_SECONDS = 5.0  #: in the middle of a frame
_SAID = b"the emulated device does not do this; the verdict says why"
_WITHOUT = "do without it, or judge the candidate on a GPU"
_MODULE = struct.Struct("<I")


class Argument(Protocol):
    """An argument of a kernel, within the block of its arguments."""

    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def hidden(self) -> bool: ...


class Kernel(Protocol):
    """What a launch has to know of a kernel (kernels.py)."""

    @property
    def lds_bytes(self) -> int: ...
    @property
    def max_workgroup_size(self) -> int: ...
    @property
    def vgprs(self) -> int: ...
    @property
    def arguments(self) -> Sequence[Argument]: ...
    @property
    def kernarg_size(self) -> int: ...


class Module(Protocol):
    """A code object that was loaded (program.py)."""

    @property
    def kernels(self) -> Mapping[str, Kernel]: ...


Loaded = TypeVar("Loaded", bound=Module)


@dataclass(frozen=True)
class Ran:
    """What became of a launch."""

    instructions: int = 0
    faults: Sequence[Told] = ()
    refusal: Told | None = None
    written: Sequence[Range] = ()
    waits: Sequence[Waited] = ()


class Engine(Protocol[Loaded]):
    """Decodes and executes code objects (engine.py)."""

    def load(self, code: bytes) -> Loaded:
        """Return a code object. Raises anything for what is none for this device."""

    def add(self, memory: Range, name: str) -> None:
        """Let kernels use a stretch of memory. Raises ValueError where it meets another one."""

    def remove(self, memory: Range) -> None:
        """Withdraw it."""

    def launch(self, module: Loaded, request: LaunchKernel, options: CallOptions) -> Ran:
        """Execute a kernel."""

    def write(self, module: Loaded, variable: str, offset: int, data: bytes) -> None:
        """Write to a variable of a code object. Raises ValueError: there is none, or it is not so large."""

    def read(self, module: Loaded, variable: str, offset: int, size: int) -> bytes:
        """Return bytes of one. Raises ValueError as `write` does."""

    def begin(self) -> None:
        """Forget whose bytes they are: a call begins."""

    def kept(self, place: Range) -> int:
        """Return how many bytes at a place kernels wrote since `begin`, and nobody else after them."""

    def host_bytes(self) -> int:
        """Return how many bytes kernels read since `begin` that the host had written."""

    def host_made(self) -> array[int]:
        """Return pairs (number, bytes) of the chunks of these, each number once, in ascending order."""

    def numbers(self, place: Range) -> array[int]:
        """Return such pairs of what lies at a place."""

    def left(self, place: Range) -> array[int]:
        """Return those of them that are of no kernel's bytes."""


class Device(Generic[Loaded]):
    """The state of the device. `handle` is given what a runner says, the rest what the evaluator does."""

    def __init__(self, engine: Engine[Loaded], room: Sequence[Range], lds_bytes: int) -> None:
        """`room`: where a runner's allocations may lie."""
        self._engine = engine
        self._room = tuple(room)
        self._lds_bytes = lds_bytes
        self._modules: list[Loaded] = []
        self._code_bytes = 0
        self._ranges: dict[int, Range] = {}
        self._allocations = 0
        self.begin(CallOptions())

    def begin(self, options: CallOptions) -> None:
        """Forget what was observed: a call begins."""
        self._options = options
        self._ends = time.monotonic() + options.seconds
        self._engine.begin()
        self._kernels: dict[str, int] = {}
        self._count = self._instructions = 0
        self._faults: list[Told] = []
        self._fault_count = 0
        self._refusals: list[Told] = []
        self._violation: str | None = None
        self._written = Written()
        self._waits: dict[tuple[str, str, str], bool] = {}

    def report(self, outputs: Sequence[Range]) -> Report:
        """Return what was observed since `begin`, and how many bytes of each output kernels wrote."""
        return Report(
            kernels=self._kernels,
            launch_count=self._count,
            faults=self._faults,
            fault_count=self._fault_count,
            refusals=self._refusals,
            violation=self._violation,
            written=[min(self._written.within(one), self._engine.kept(one)) for one in outputs],
            waits=[
                Waited(kernel=kernel, text=text, line=line, used=used)
                for (kernel, text, line), used in self._waits.items()
            ],
            host_made=self._engine.host_bytes(),
        )

    def host_made(self, outputs: Sequence[Range]) -> tuple[array[int], array[int], array[int]]:
        """Return pairs (number, bytes): what kernels read of the host's, the outputs, what of these no kernel wrote."""
        lie, left = array("Q"), array("Q")
        for one in outputs:
            if any(known.holds(one) for known in self._ranges.values()):
                lie += self._engine.numbers(one)
                left += self._engine.left(one)
        return self._engine.host_made(), lie, left

    def violated(self, why: str) -> None:
        """Note that the runner sent what a runner never sends."""
        self._violation = self._violation or why

    def handle(self, request: Request) -> bytes | None:
        """Do what a runner asks; return the answer where it waits for one."""
        match request:
            case LoadCode(code):
                return self._load(code)
            case LaunchKernel():
                return self._launch(request)
            case AddRange(address, size):
                self._add(Range(address, size))
            case RemoveRange(address):
                self._remove(address)
            case RefusedName(name):
                self._unsupported(f"{name} is not there on the emulated device: {_WITHOUT}")
            case WriteVariable() | ReadVariable():
                return self._variable(request)
        return None

    def _in_time(self) -> bool:
        if time.monotonic() < self._ends:
            return True
        self._refuse(Told(kind="budget", message=f"the device had work for more than {self._options.seconds:g} s"))
        return False

    def _load(self, code: bytes) -> bytes:
        if not self._in_time():
            return answer(Answer.UNSUPPORTED, _SAID)
        self._code_bytes += len(code)
        if len(self._modules) >= MAX_MODULES or self._code_bytes > MAX_CODE_BYTES:
            self._unsupported(f"more than {MAX_MODULES} code objects, or too large ones")
            return answer(Answer.UNSUPPORTED, _SAID)
        try:
            module = self._engine.load(code)
        except Exception as error:  # noqa: BLE001 - the code is the candidate's: whatever it breaks is its own loss
            self._unsupported(f"a code object cannot be loaded: {error}")
            return answer(Answer.UNSUPPORTED, _SAID)
        self._modules.append(module)
        lines = "\n".join(_described(name, kernel) for name, kernel in module.kernels.items())
        return answer(Answer.DONE, _MODULE.pack(len(self._modules) - 1) + lines.encode())

    def _variable(self, request: WriteVariable | ReadVariable) -> bytes:
        if request.module >= len(self._modules):
            return answer(Answer.INVALID, b"no such code object")
        module = self._modules[request.module]
        try:
            if isinstance(request, ReadVariable):
                return answer(Answer.DONE, self._engine.read(module, request.variable, request.offset, request.size))
            self._engine.write(module, request.variable, request.offset, request.data)
        except ValueError:
            return answer(Answer.INVALID, b"no such variable, or it is not so large")
        return answer(Answer.DONE)

    def _launch(self, request: LaunchKernel) -> bytes:
        if not self._in_time():
            return answer(Answer.UNSUPPORTED, _SAID)
        module = self._modules[request.module] if request.module < len(self._modules) else None
        kernel = None if module is None else module.kernels.get(request.kernel)
        if module is None or kernel is None:
            return answer(Answer.INVALID, b"no such kernel")
        threads = request.block[0] * request.block[1] * request.block[2]
        if kernel.lds_bytes + request.dynamic_lds > self._lds_bytes or threads > kernel.max_workgroup_size:
            return answer(Answer.INVALID, b"too many threads, or too much LDS")
        if len(request.kernarg) > kernel.kernarg_size:
            return answer(Answer.INVALID, b"more arguments than the kernel has")
        try:
            left = max(1, self._options.max_instructions - self._instructions)
            seconds = self._ends - time.monotonic()
            ran = self._engine.launch(module, request, replace(self._options, max_instructions=left, seconds=seconds))
        except Exception as error:  # noqa: BLE001 - as above
            self._unsupported(f"{request.kernel}: the executor failed: {error!r}")
            return answer(Answer.UNSUPPORTED, _SAID)
        self._observe(request, ran)
        return answer(Answer.DONE) if ran.refusal is None else answer(Answer.UNSUPPORTED, _SAID)

    def _observe(self, request: LaunchKernel, ran: Ran) -> None:
        self._count += 1
        self._instructions += ran.instructions
        self._fault_count += len(ran.faults)
        self._faults = _foremost([*self._faults, *ran.faults])
        if ran.refusal is not None:
            self._refuse(ran.refusal)
        for one in ran.written:
            self._written.add(one)
        for wait in ran.waits:
            key = wait.kernel, wait.text, wait.line
            if key in self._waits or len(self._waits) < MAX_WAITS:
                self._waits[key] = self._waits.get(key, False) or wait.used
        name = request.kernel if request.kernel in self._kernels or len(self._kernels) < MAX_KERNELS else FURTHER
        self._kernels[name] = self._kernels.get(name, 0) + ran.instructions

    def _unsupported(self, message: str) -> None:
        self._refuse(Told(kind="unsupported", message=message))

    def _refuse(self, refusal: Told) -> None:
        if len(self._refusals) < MAX_TOLD:
            self._refusals.append(refusal)

    def _add(self, wanted: Range) -> None:
        if not wanted.size or not any(room.holds(wanted) for room in self._room):
            self.violated(f"an allocation at {wanted.begin:#x} outside of the device's memory")
        elif wanted.begin in self._ranges or len(self._ranges) >= MAX_RANGES:
            self.violated(f"an allocation at {wanted.begin:#x} that is there already, or one too many")
        else:
            self._allocations += 1
            self.announce(wanted, f"allocation {self._allocations}")

    def announce(self, wanted: Range, name: str) -> None:
        """Let kernels use a stretch of memory, which a report calls `name`."""
        try:
            self._engine.add(wanted, name)
        except ValueError as error:
            self.violated(str(error))
        else:
            self._ranges[wanted.begin] = wanted

    def withdraw(self, known: Range) -> None:
        """Let kernels use a stretch no more that was announced."""
        if self._ranges.get(known.begin) == known:
            del self._ranges[known.begin]
            self._engine.remove(known)

    def _remove(self, address: int) -> None:
        found = self._ranges.pop(address, None)
        if found is None:
            self.violated(f"no allocation begins at {address:#x}")
        else:
            self._engine.remove(found)


def _foremost(faults: Sequence[Told]) -> list[Told]:
    """Return those that are told, in their order: an access out of bounds before others, which may be forgiven."""
    number = range(len(faults))
    chosen = sorted(number, key=lambda one: faults[one].kind != "out_of_bounds")[:MAX_TOLD]
    return [faults[one] for one in sorted(chosen)]


def _described(name: str, kernel: Kernel) -> str:
    """Return the line by which the runner's runtime packs arguments (native/launch.c)."""
    places = [one for one in kernel.arguments if not one.hidden]
    numbers = [kernel.kernarg_size, kernel.lds_bytes, kernel.max_workgroup_size, kernel.vgprs, len(places)]
    return " ".join([name, *map(str, numbers), *(f"{one.offset} {one.size}" for one in places)])


class Server(Generic[Loaded]):
    """Serves one evaluator and one runner, until the evaluator leaves."""

    def __init__(self, control: socket.socket, engine: Engine[Loaded], lds_bytes: int) -> None:
        self._control = control
        self._mapped: list[Range] = []  # inputs and outputs
        self._announced: list[Range] = []  # the inputs
        self._heap = arena.make_heap()
        room = arena.map_at(self._heap, arena.HEAP, arena.HEAP_BYTES)
        self._runner, self._runners_end = socket.socketpair()
        self._device = Device(engine, [room], lds_bytes)
        self._runner.settimeout(SILENT_SECONDS)
        self._handlers: dict[str, Callable[[wire.Message], wire.Message]] = {
            "attach": self._attach, "heap": self._nothing, "memory": self._memory, "begin": self._begin,
            "report": self._report, "host_made": self._host_made,
        }  # fmt: skip

    def run(self) -> None:
        """Answer until the evaluator's end is closed."""
        threading.Thread(target=_end_with, args=(self._control,), daemon=True).start()
        with suppress(wire.PeerClosed):
            while True:
                ready, _, _ = select.select([self._control, *self._listened()], [], [])
                if self._control not in ready:
                    self._answer_runner()
                    continue
                message = wire.receive(self._control)
                self._drain()
                operation = str(message.pop("op"))
                wire.send(self._control, self._handlers[operation](message))
                self._after(operation)

    def _listened(self) -> list[socket.socket]:
        return [] if self._runner.fileno() < 0 else [self._runner]

    def _answer_runner(self) -> None:
        try:
            said = self._device.handle(receive(self._runner))
            if said is not None:
                self._runner.sendall(said)
        except Left:
            self._runner.close()
        except (Malformed, OSError) as error:
            self._device.violated(str(error))
            self._runner.close()

    def _drain(self) -> None:
        """Read what a runner had said before the evaluator asked."""
        for _ in range(DRAINED):
            if not self._listened() or not select.select([self._runner], [], [], 0)[0]:
                return
            self._answer_runner()

    # What the evaluator asks.

    def _attach(self, _message: wire.Message) -> wire.Message:
        """Hand over the runner's end and the heap, once."""
        return {"base": arena.HEAP, "size": arena.HEAP_BYTES, "inbox": arena.INBOX, "outbox": arena.OUTBOX}

    def _after(self, operation: str) -> None:
        if operation == "attach":
            wire.send_descriptors(self._control, [self._runners_end.fileno(), self._heap])
            self._runners_end.close()
        elif operation == "heap":
            wire.send_descriptors(self._control, [self._heap])
        elif operation == "host_made":
            wire.send_descriptors(self._control, self._tables)
            for table in self._tables:
                os.close(table)

    def _nothing(self, _message: wire.Message) -> wire.Message:
        return {}

    def _memory(self, message: wire.Message) -> wire.Message:
        """Map inputs and outputs, whose files follow, in place of those before; let kernels use what is in them."""
        for known in self._announced:
            self._device.withdraw(known)
        for mapped in self._mapped:
            arena.unmap(mapped)
        asked = decode(ShareMemory, message)
        files = wire.receive_descriptors(self._control, 2)
        places = ((arena.INBOX, asked.inbox), (arena.OUTBOX, asked.outbox))
        self._mapped = []
        for (address, size), file in zip(places, files, strict=True):
            self._mapped.append(arena.map_at(file, address, size))
            os.close(file)
        self._announced = [one.range for one in asked.ranges]
        for one in asked.ranges:
            self._device.announce(one.range, one.name)
        return {}

    def _begin(self, message: wire.Message) -> wire.Message:
        self._device.begin(decode(Begin, message).options)
        return {}

    def _report(self, message: wire.Message) -> wire.Message:
        return encode(self._device.report(decode(Ask, message).outputs))

    def _host_made(self, message: wire.Message) -> wire.Message:
        """Put the two tables into files that follow."""
        self._tables = [_file(table) for table in self._device.host_made(decode(Ask, message).outputs)]
        return {}


def _file(table: array[int]) -> int:
    made = os.memfd_create("table", os.MFD_CLOEXEC)
    with open(made, "wb", closefd=False) as file:
        table.tofile(file)
    return made


def _end_with(control: socket.socket) -> None:
    """End this process when the evaluator has left, also in the middle of a launch."""
    poll = select.poll()
    poll.register(control, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    poll.poll()
    os._exit(0)
