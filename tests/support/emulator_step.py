"""Run a few instructions on one wave whose registers are given: for tests and proofs of the executor."""

from __future__ import annotations

import ctypes
import mmap
import re
import subprocess
from array import array
from collections.abc import Sequence
from ctypes import c_uint32, c_uint64
from dataclasses import dataclass, field
from functools import lru_cache

from hkbench.emulator import encode, records
from hkbench.emulator.build import core
from hkbench.emulator.executor import Memory
from hkbench.emulator.listing import MC, Line, tool
from hkbench.emulator.operands import EXEC, M0, SGPRS, VCC

LANES = 64
ALL_LANES = (1 << LANES) - 1
MODE = 0xF0  #: round to the nearest, keep denormals
_ROOM = 512 * LANES
_SECONDS = 60.0
_FAULTS = 64


class StepRecord(ctypes.Structure):
    """One wave's registers and LDS."""

    _fields_ = [
        ("sgpr", c_uint64), ("vgpr", c_uint64), ("agpr", c_uint64), ("lds", c_uint64), ("lds_size", c_uint32),
        ("scc", c_uint32), ("mode", c_uint32), ("spare", c_uint32),
    ]  # fmt: skip


class StepRefused(Exception):
    """The instructions were not executed to their end. The message says why."""


@dataclass
class State:
    """A wave: register `v7` of lane 3 is `vgpr[7 * 64 + 3]`. Of vgpr and agpr the first 256 registers exist."""

    sgpr: array[int] = field(default_factory=lambda: array("I", bytes(4 * SGPRS)))
    vgpr: array[int] = field(default_factory=lambda: array("I", bytes(4 * _ROOM)))
    agpr: array[int] = field(default_factory=lambda: array("I", bytes(4 * _ROOM)))
    exec_: int = ALL_LANES
    vcc: int = 0
    scc: int = 0
    m0: int = 0
    mode: int = MODE
    lds: bytearray = field(default_factory=bytearray)
    memory: Memory = field(default_factory=Memory)

    def copy(self) -> State:
        """Return a state of its own; the memory is the same."""
        return State(
            self.sgpr[:],
            self.vgpr[:],
            self.agpr[:],
            self.exec_,
            self.vcc,
            self.scc,
            self.m0,
            self.mode,
            self.lds[:],
            self.memory,
        )


@lru_cache(maxsize=4096)
def assemble(arch: str, text: tuple[str, ...]) -> tuple[Line, ...]:
    """Return the instructions as llvm-mc encodes and prints them. Raises ValueError: it refuses one."""
    command = [str(tool(MC)), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-show-encoding"]
    done = subprocess.run(
        command, input="\n".join(text) + "\n", capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"{arch}: {done.stderr.strip()[:400]}")
    lines: list[Line] = []
    address = 0
    for printed in done.stdout.splitlines():
        match = re.fullmatch(r"\t(.+?)\s*; encoding: \[(.+)\]", printed)
        if match is not None:
            data = bytes(int(byte, 16) for byte in match[2].split(","))
            words = tuple(int.from_bytes(data[n : n + 4], "little") for n in range(0, len(data), 4))
            lines.append(Line(address, match[1].replace("\t", " ").strip(), words, "", ""))
            address += len(data)
    return tuple(lines)


@lru_cache(maxsize=4096)
def _linked(arch: str, lines: tuple[Line, ...]) -> tuple[encode.Code, ctypes.Array[ctypes.c_char]]:
    address = lines[-1].address + 4 * len(lines[-1].words)
    code = encode.encode([*lines, Line(address, "s_endpgm", (0xBF810000,), "", "")], arch)
    buffer = ctypes.create_string_buffer(bytes(code.records), len(code.records))
    if core().hkbench_emulator_link(buffer, len(code.lines)) != len(code.lines):
        raise AssertionError(f"the decoder let an operand out of bounds: {lines}")
    return code, buffer


def step(arch: str, text: Sequence[str], state: State) -> State:
    """Assemble `text`, decode it as a launch does, execute it on one wave, and return the state after it.

    Raises:
        StepRefused: an instruction is not understood or not known.
        ValueError: llvm-mc refuses the text.
    """
    lines = assemble(arch, tuple(text))
    if not lines:
        return state.copy()
    code, buffer = _linked(arch, lines)
    after = state.copy()
    after.sgpr[VCC], after.sgpr[VCC + 1] = state.vcc & 0xFFFFFFFF, state.vcc >> 32
    after.sgpr[EXEC], after.sgpr[EXEC + 1] = state.exec_ & 0xFFFFFFFF, state.exec_ >> 32
    after.sgpr[M0] = state.m0
    lds = (ctypes.c_char * max(len(after.lds), 1)).from_buffer(after.lds if after.lds else bytearray(1))
    record = StepRecord(
        sgpr=after.sgpr.buffer_info()[0],
        vgpr=after.vgpr.buffer_info()[0],
        agpr=after.agpr.buffer_info()[0],
        lds=ctypes.addressof(lds),
        lds_size=len(after.lds),
        scc=state.scc,
        mode=state.mode,
    )
    image = mmap.mmap(-1, mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(image))
    launch = records.LaunchRecord(
        image=base, grid=(1, 1, 1), block=(LANES, 1, 1), lds=len(after.lds), scratch=4096, mode=state.mode,
        threads=1, shift=1, budget=1 << 40,
    )  # fmt: skip
    found = state.memory.ranges()
    ranges = (records.RangeRecord * len(found))(
        *(records.RangeRecord(begin=begin, end=begin + size, writable=1) for begin, size, _ in found)
    )
    outcome, faults = records.OutcomeRecord(), (records.FaultRecord * _FAULTS)()
    core().hkbench_emulator_step(
        buffer, len(code.lines), ctypes.byref(launch), ranges, len(ranges), ctypes.byref(outcome), faults,
        ctypes.c_uint64(_FAULTS), ctypes.byref(record),
    )  # fmt: skip
    if outcome.refused:
        at = code.lines[outcome.refused_at].text if outcome.refused_at < len(code.lines) else "the end"
        why = code.reasons[outcome.detail] if outcome.refused == 1 else f"refusal {outcome.refused}"
        raise StepRefused(f"{at}: {why}")
    if outcome.faults:
        raise StepRefused(f"{code.lines[faults[0].use].text}: fault {faults[0].kind} at {faults[0].address:#x}")
    after.scc, after.mode = record.scc, record.mode
    after.vcc = after.sgpr[VCC] | after.sgpr[VCC + 1] << 32
    after.exec_ = after.sgpr[EXEC] | after.sgpr[EXEC + 1] << 32
    after.m0 = after.sgpr[M0]
    return after
