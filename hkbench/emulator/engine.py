"""The executor as the device's process uses it."""

from __future__ import annotations

import ctypes
import struct
from array import array
from pathlib import Path

from hkbench.emulator import executor
from hkbench.emulator.arena import Range
from hkbench.emulator.build import core
from hkbench.emulator.device import Ran
from hkbench.emulator.explain import explained, plain, refused, written_waits
from hkbench.emulator.link import LaunchKernel
from hkbench.emulator.program import Program
from hkbench.emulator.report import CallOptions, Told, Waited
from hkbench.emulator.trace import Trace

_LEAST = 0.01  #: seconds
GARBLED = 0x3C  #: a byte of numbers that are small and finite in every format
_WORD = struct.Struct("<Q")


class ExecutorEngine:
    """Code objects of one architecture, and the memory that their kernels may touch."""

    def __init__(self, arch: str, objdump: Path) -> None:
        """Load the executor. Raises ToolchainUnavailable where it is not built and cannot be."""
        core()
        self._arch = arch
        self._objdump = objdump
        self._memory = executor.Memory()
        self._trace = Trace()

    def load(self, code: bytes) -> Program:
        """Decode a code object. Raises ValueError for another architecture's, and what `Program.load` raises."""
        program = Program.load(code, objdump=self._objdump)
        self._trace.spoken(code)
        if program.arch != self._arch:
            raise ValueError(f"it is for {program.arch}, and this device is a {self._arch}")
        return program

    def add(self, memory: Range, name: str) -> None:
        """Let kernels use a stretch of memory. Raises ValueError where it meets another one."""
        self._memory.add(memory.begin, memory.size, name)

    def remove(self, memory: Range) -> None:
        """Withdraw it."""
        self._memory.remove(memory.begin)
        self._trace.forget(memory.begin)

    def begin(self) -> None:
        """Forget whose bytes they are."""
        self._trace.begin()

    def kept(self, place: Range) -> int:
        """Return how many bytes at a place kernels wrote since `begin`, and nobody else after them."""
        return self._trace.kept(place)

    def host_bytes(self) -> int:
        """Return how many bytes kernels read since `begin` that the host had written."""
        return self._trace.host_bytes()

    def host_made(self) -> array[int]:
        """Return what kernels read since `begin` and the host had written: see `Trace.host_made`."""
        return self._trace.host_made()

    def left(self, place: Range) -> array[int]:
        """Return the numbers of what lies at a place and is no kernel's."""
        return self._trace.left(place)

    def numbers(self, place: Range) -> array[int]:
        """Return the numbers of what lies at a place."""
        return self._trace.numbers(place)

    def write(self, module: Program, variable: str, offset: int, data: bytes) -> None:
        """Write to a variable of a code object. Raises ValueError: there is none, or it is not so large."""
        module.write(variable, offset, data)
        self._trace.spoken(data)

    def read(self, module: Program, variable: str, offset: int, size: int) -> bytes:
        """Return bytes of one. Raises ValueError as `write` does."""
        return module.read(variable, offset, size)

    def launch(self, module: Program, request: LaunchKernel, options: CallOptions) -> Ran:
        """Execute a kernel."""
        launch = executor.Launch(request.kernel, request.grid, request.block, request.dynamic_lds, request.kernarg)
        how = executor.Options(
            options.check, options.late, options.seed, options.max_instructions, max(options.seconds, _LEAST)
        )
        self._trace.spoken(self._said(request))
        outcome = executor.launch(module, launch, self._memory, how, self._trace)
        if options.garble:
            for address, size in outcome.written:
                ctypes.memset(address, GARBLED, size)
        faults = explained(outcome.faults, module)
        refusal = None if outcome.refusal is None else refused(outcome.refusal)
        return Ran(
            instructions=outcome.instructions,
            faults=[Told(kind=fault.kind, message=str(fault)) for fault in faults],
            refusal=None if refusal is None else Told(kind=refusal.kind, message=str(refusal)),
            written=[Range(address, size) for address, size in outcome.written],
            waits=[
                Waited(kernel=plain(request.kernel), text=place.text, line=place.source, used=used)
                for place, used in written_waits(outcome.waits, module)
            ],
        )

    def _said(self, request: LaunchKernel) -> bytes:
        """Return all that a launch says; of a pointer, where in its range it points to."""
        numbers = (*request.grid, *request.block, request.dynamic_lds, len(request.kernarg))
        words = bytearray(struct.pack("<8I", *numbers) + request.kernel.encode())
        words += bytes(-len(words) % 16)
        for at in range(0, len(request.kernarg), 8):
            part = request.kernarg[at : at + 8]
            offset = self._memory.offset(_WORD.unpack(part)[0]) if len(part) == 8 else None
            words += part if offset is None else _WORD.pack(offset)
        return bytes(words)
