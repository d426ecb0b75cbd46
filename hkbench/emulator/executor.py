"""Launch a kernel on the emulated device, and say what came of it."""

from __future__ import annotations

import bisect
import ctypes
import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hkbench.emulator import encode, records
from hkbench.emulator.build import core
from hkbench.emulator.faults import Fault, Place, Refusal
from hkbench.emulator.kernels import Kernel, hidden_values, kernarg_block
from hkbench.emulator.operands import SGPRS
from hkbench.emulator.program import Program
from hkbench.emulator.trace import Trace, shadow_memory

LDS_BYTES = {"gfx942": 64 << 10, "gfx950": 160 << 10}
MAX_THREADS = 1024  #: of a workgroup
FAR = 1 << 32  #: bytes from memory, from which on an address has nothing to do with it
SCRATCH_LIMIT = 131056  #: bytes a lane: what LLVM lets a kernel have
_FAULTS = 64
_RUNS = 1 << 16  #: of written bytes that are told
_NOWHERE = 0xFFFFFFFF
_KINDS = {1: "wait", 2: "race", 3: "out_of_bounds", 4: "uninitialized"}
_EXECUTED, _USED, _WRITTEN = 1, 2, 4  # Waited of core/abi.h
_SPACES = ("global memory", "LDS", "scratch memory", "constants")
_BYTEWISE = ("_u8", "_i8", "_b8", "byte")


@dataclass(frozen=True)
class Launch:
    """One launch; `kernarg` holds the explicit arguments, the hidden ones are filled in."""

    kernel: str
    grid: tuple[int, int, int]  #: workgroups
    block: tuple[int, int, int]  #: threads
    dynamic_lds: int
    kernarg: bytes


@dataclass(frozen=True)
class Options:
    """How a launch is executed."""

    check: bool = True  #: waits, races, registers never written; bounds are always checked
    late: bool = False  #: results of loads arrive when a wait proves them, not before
    seed: int | None = None  #: draws the order of waves and workgroups; None: in turn
    max_instructions: int = 20_000_000_000  #: of all waves
    seconds: float = 0.0  #: in which it has to end; 0: however long it takes
    threads: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Outcome:
    """What came of a launch."""

    instructions: int  #: of all waves
    faults: tuple[Fault, ...]
    refusal: Refusal | None
    written: tuple[tuple[int, int], ...]  #: (address, size) of what the kernel wrote, in pieces of two bytes
    waits: Mapping[int, bool] = field(
        default_factory=dict
    )  #: those of the source, by instruction: whether what it proved was needed


class Memory:
    """Ranges of this process's memory that kernels may touch: an address of the device is one of the host."""

    def __init__(self) -> None:
        """Start with none."""
        self._begins: list[int] = []
        self._ranges: dict[int, tuple[int, str]] = {}

    def add(self, address: int, size: int, name: str) -> None:
        """Announce a range. Raises ValueError where it is empty or meets another one."""
        at = bisect.bisect_right(self._begins, address)
        before = self._begins[at - 1] if at else None
        if size <= 0 or address <= 0 or (before is not None and before + self._ranges[before][0] > address):
            raise ValueError(f"{name}: {size} bytes at {address:#x} are empty or meet another range")
        if at < len(self._begins) and self._begins[at] < address + size:
            raise ValueError(f"{name}: {size} bytes at {address:#x} meet another range")
        self._begins.insert(at, address)
        self._ranges[address] = (size, name)

    def remove(self, address: int) -> None:
        """Take a range back. Raises KeyError: none begins there."""
        del self._ranges[address]
        self._begins.remove(address)

    def ranges(self) -> list[tuple[int, int, str]]:
        """Return (address, size, name), in order."""
        return [(begin, *self._ranges[begin]) for begin in self._begins]

    def offset(self, address: int) -> int | None:
        """Return how far into a range an address points; `None`: into none."""
        at = bisect.bisect_right(self._begins, address)
        begin = self._begins[at - 1] if at else 0
        return address - begin if at and address < begin + self._ranges[begin][0] else None

    def describe(self, address: int) -> str:
        """Return which range an address is in, or else which end of one is nearest, where one is near."""
        at = bisect.bisect_right(self._begins, address)
        near: list[tuple[int, str]] = []
        if at:
            begin = self._begins[at - 1]
            size, name = self._ranges[begin]
            if address < begin + size:
                return f"{name} + {address - begin}"
            near.append((address - begin - size, f"bytes behind the end of {name} ({size} bytes)"))
        if at < len(self._begins):
            begin = self._begins[at]
            near.append((begin - address, f"bytes before the beginning of {self._ranges[begin][1]}"))
        distance, where = min(near, default=(FAR, ""))
        return f"{distance} {where}" if distance < FAR else f"address {address:#x}, far from all memory"


def launch(program: Program, launch: Launch, memory: Memory, options: Options, trace: Trace | None = None) -> Outcome:
    """Execute a kernel; with `trace`, note whose bytes it read and wrote.

    A launch that cannot be executed is refused in the outcome; nothing is raised for it.
    """
    kernel = program.kernels.get(launch.kernel)
    refusal = _impossible(program, kernel, launch)
    if kernel is None or refusal is not None:
        reason = refusal or "the code object has no such kernel"
        return Outcome(0, (), Refusal("unsupported", launch.kernel, None, reason), ())
    return _Run(program, kernel, memory, trace).launch(launch, options)


def _impossible(program: Program, kernel: Kernel | None, launch: Launch) -> str | None:
    if kernel is None:
        return None
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if min(*launch.grid, *launch.block) < 1 or max(launch.grid) >= 1 << 31:
        return f"a grid of {launch.grid} workgroups of {launch.block} threads"
    if threads > min(MAX_THREADS, kernel.max_workgroup_size):
        most = min(MAX_THREADS, kernel.max_workgroup_size)
        return f"a workgroup of {threads} threads (the kernel is built for {most} at most)"
    lds = kernel.lds_bytes + launch.dynamic_lds
    if launch.dynamic_lds < 0 or lds > LDS_BYTES[program.arch]:
        return f"{lds} bytes of LDS ({program.arch} has {LDS_BYTES[program.arch]})"
    if kernel.mode & 0xF or kernel.mode >> 6 & 3 != 3:
        return f"MODE {kernel.mode:#x}: rounding other than to the nearest, or denormals of halves flushed"
    if kernel.scratch_bytes > SCRATCH_LIMIT:
        return f"{kernel.scratch_bytes} bytes of scratch memory a lane (at most {SCRATCH_LIMIT})"
    if kernel.entry not in program.code.index:
        return "its entry is no instruction"
    return None


class _Run:
    """The buffers of one launch."""

    def __init__(self, program: Program, kernel: Kernel, memory: Memory, trace: Trace | None) -> None:
        self.program, self.kernel, self.memory, self.trace = program, kernel, memory, trace
        self.dispatch = ctypes.create_string_buffer(64)
        self.queue = ctypes.create_string_buffer(256)
        self.keep: list[object] = []
        self.callers: Mapping[int, tuple[str, ...]] = {}

    def launch(self, launch: Launch, options: Options) -> Outcome:
        kernel = self.kernel
        lds = kernel.lds_bytes + launch.dynamic_lds
        hidden = hidden_values(launch.grid, launch.block, launch.dynamic_lds, ctypes.addressof(self.queue))
        try:
            block = kernarg_block(kernel, launch.kernarg, hidden)
        except ValueError as error:
            return Outcome(0, (), Refusal("unsupported", kernel.name, None, str(error)), ())
        kernarg = ctypes.create_string_buffer(bytes(block), len(block))
        struct.pack_into(
            "<HH3HH3III QQ", self.dispatch, 0, 0, 3, *launch.block, 0,
            *(g * b & _NOWHERE for g, b in zip(launch.grid, launch.block, strict=True)),
            kernel.scratch_bytes, lds, 0, ctypes.addressof(kernarg),
        )  # fmt: skip
        record = records.LaunchRecord(
            entry=self.program.code.index[kernel.entry],
            image=self.program.image,
            kernarg=ctypes.addressof(kernarg),
            dispatch=ctypes.addressof(self.dispatch),
            queue=ctypes.addressof(self.queue),
            grid=launch.grid,
            block=launch.block,
            lds=lds,
            scratch=kernel.scratch_bytes,
            mode=kernel.mode,
            user_sgprs=kernel.user_sgprs,
            properties=kernel.properties,
            ids=kernel.ids,
            check=options.check,
            late=options.late,
            threads=max(1, options.threads),
            shift=0 if self._bytewise() else 1,
            seed=0 if options.seed is None else options.seed % (1 << 63) + 1,
            budget=options.max_instructions,
            deadline=int((time.monotonic() + options.seconds) * 1e9) if options.seconds else 0,
        )
        waits = (ctypes.c_uint8 * (self.program.length + 1))()
        if options.check and not options.late:
            record.waits = ctypes.addressof(waits)
            for number in self.program.source_waits:
                waits[number] = _WRITTEN
        own = [(ctypes.addressof(kernarg), len(block), False), (ctypes.addressof(self.dispatch), 64, False)]
        own.append((ctypes.addressof(self.queue), 256, False))
        own += [(part.begin, part.size, part.writable) for part in self.program.ranges]
        ranges, asked = self.ranges(own)
        outcome, faults = records.OutcomeRecord(), (records.FaultRecord * _FAULTS)()
        core().hkbench_emulator_launch(
            self.program.records, self.program.length, ctypes.byref(record), ranges, len(ranges),
            ctypes.byref(outcome), faults, ctypes.c_uint64(_FAULTS),
        )  # fmt: skip
        self.callers = self.program.callers(self._addresses(faults[: outcome.faults]))
        if self.trace is not None:
            self.trace.changed(outcome.restless)
            self.trace.collect()
        told = tuple(self._fault(fault) for fault in faults[: outcome.faults])
        seen = {n: bool(waits[n] & _USED) for n in self.program.source_waits if waits[n] & _EXECUTED}
        return Outcome(outcome.instructions, told, self._refusal(outcome), written(ranges, asked), seen)

    def ranges(self, own: Sequence[tuple[int, int, bool]]) -> tuple[ctypes.Array[records.RangeRecord], list[int]]:
        """Return all ranges in order, and which of them are told where they were written."""
        found = [(begin, size, writable, False) for begin, size, writable in own]
        found += [(begin, size, True, True) for begin, size, _ in self.memory.ranges()]
        found.sort()
        table = (records.RangeRecord * len(found))()
        asked = []
        for n, (begin, size, writable, ask) in enumerate(found):
            table[n] = records.RangeRecord(begin=begin, end=begin + size, writable=writable)
            if ask:
                shadow = shadow_memory(_shadow_bytes(size))
                self.keep.append(shadow)
                table[n].written = ctypes.addressof(ctypes.c_char.from_buffer(shadow))
                asked.append(n)
                if self.trace is not None:
                    table[n].trace = self.trace.shadow(begin, size)
        return table, asked

    def _bytewise(self) -> bool:
        return any(
            line.text.startswith(("ds_", "flat_")) and any(part in line.text.partition(" ")[0] for part in _BYTEWISE)
            for line in self.program.code.lines
        )

    def place(self, index: int) -> Place | None:
        """Return the place of an instruction."""
        if index >= self.program.length:
            return None
        line = self.program.code.lines[index]
        return Place(line.text, line.place, line.address, self.callers.get(line.address, ()))

    def _addresses(self, faults: Sequence[records.FaultRecord]) -> set[int]:
        lines = self.program.code.lines
        return {lines[n].address for fault in faults for n in (fault.use, fault.cause) if n < self.program.length}

    def _fault(self, record: records.FaultRecord) -> Fault:
        kind = _KINDS[record.kind]
        use = self.place(record.use)
        if use is None:
            raise AssertionError("a fault of no instruction")
        return Fault(
            kind=kind,
            kernel=self.kernel.name,
            use=use,
            cause=self.place(record.cause),
            missing=_missing(kind, record),
            detail=self._detail(record),
            workgroup=(record.workgroup[0], record.workgroup[1], record.workgroup[2]),
            wave=record.wave,
            count=record.count,
        )

    def _detail(self, record: records.FaultRecord) -> str:
        if record.reg != _NOWHERE:
            return register_name(record.reg)
        where = f"{_SPACES[record.memory]} at {record.address:#x}"
        if record.kind == 3 and record.memory == 0:
            where = self.memory.describe(record.address)
        return f"{record.size} bytes at {where}" if record.kind == 3 else where

    def _refusal(self, outcome: records.OutcomeRecord) -> Refusal | None:
        if not outcome.refused:
            return None
        place = self.place(outcome.refused_at)
        detail = outcome.detail
        reasons = {
            1: self.program.code.reasons[detail] if detail < len(self.program.code.reasons) else "",
            2: f"more than {detail} instructions: an endless loop?",
            3: f"a jump to {detail:#x}, where no instruction begins",
            4: f"MODE {detail:#x}: rounding other than to the nearest, or denormals of halves flushed",
            5: f"trap {detail}: the kernel gave up (assert, abort)",
            6: "an operand that the emulated device does not know (lanes switched off, hardware register)",
            10: "a signalling NaN in a minimum or maximum of halves or of three numbers (MODE.IEEE)",
            8: f"a buffer resource to whose addresses the lanes add their numbers ({detail:#x})",
            9: "it was not done in the time that a call has: an endless loop, or very much work?",
        }
        return Refusal(
            "budget" if outcome.refused in (2, 9) else "unsupported", self.kernel.name, place, reasons[outcome.refused]
        )


def _shadow_bytes(size: int) -> int:
    """Return how long the record of a range's written bytes is: see `Range` of core/abi.h."""
    pieces = (size + 1) // 2
    return pieces + (pieces >> 14) + 1


def written(ranges: ctypes.Array[records.RangeRecord], asked: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return (address, size) of all that was written; of more than 65,536 pieces, the first of each range."""
    found: list[tuple[int, int]] = []
    runs = (ctypes.c_uint64 * (2 * _RUNS))()
    count = core().hkbench_emulator_written
    count.restype = ctypes.c_uint64
    for n in asked:
        some = min(count(ctypes.byref(ranges[n]), runs, ctypes.c_uint64(_RUNS)), _RUNS)
        found += [(runs[2 * k], runs[2 * k + 1]) for k in range(some)]
    return tuple(found)


def _missing(kind: str, record: records.FaultRecord) -> str:
    if kind == "race":
        return "a barrier"
    waits = [f"vmcnt({record.vm})"] if record.counters & 1 else []
    waits += [f"lgkmcnt({record.lgkm})"] if record.counters & 2 else []
    return " ".join(waits)


def register_name(number: int) -> str:
    """Return the name of a register as the executor counts them."""
    if number < SGPRS:
        return f"s{number}"
    number -= SGPRS
    return f"v{number}" if number < 256 else f"a{number - 256}"


assert ctypes.sizeof(records.FaultRecord) % 8 == 0 and encode.SIZE % 8 == 0
