"""Damaged code objects and wild arguments: whatever they hold, the executor refuses or goes on, and lives."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled, device_code, run

from hkbench.emulator.executor import SCRATCH_LIMIT, Memory, Options
from hkbench.emulator.program import BadCodeObject, Program

SOURCE = """
#include <hip/hip_runtime.h>
__global__ void k(const float *a, float *o, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  float x = 0;
  for (int i = 0; i < n; ++i) x += s[(threadIdx.x * 7 + i) & 255] / (i + 1.5f);
  atomicAdd(o + (threadIdx.x & 3), x);
}
"""


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_damaged_code_objects_do_not_end_the_process(arch: str, tmp_path: Path) -> None:
    hip_or_skip("no damaged code was executed")
    whole = device_code(SOURCE, arch, tmp_path)
    text = whole.find(bytes.fromhex("0000 81bf".replace(" ", "")))  # s_endpgm: the code lies before it
    assert text > 0
    data = np.zeros(1024, np.float32)
    loaded = 0
    for seed in range(12):
        draw = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 4, 30))):
            damaged[draw.randrange(text - 500, text) if seed % 4 else draw.randrange(len(whole))] = draw.randrange(256)
        try:
            program = Program.load(bytes(damaged))
        except BadCodeObject:
            continue
        if not program.kernels:
            continue
        address = draw.choice((data.ctypes.data, 64, 2**63))
        arguments = struct.pack("<QQi4x", address, data.ctypes.data, 9) + bytes(256)
        options = Options(max_instructions=100_000, late=bool(seed & 1), seed=seed)
        outcome = run(program, (2,), 256, arguments, [data], options=options)
        assert all(str(fault) for fault in outcome.faults)
        loaded += 1
    assert loaded > 3


@pytest.mark.hipcc
def test_a_wild_pointer_is_a_fault_with_its_line(tmp_path: Path) -> None:
    hip_or_skip("no wild pointer was followed")
    program = Program.load(device_code(SOURCE, "gfx942", tmp_path))
    data = np.zeros(200, np.float32)  # the kernel reads 256
    out = np.zeros(4, np.float32)
    arguments = struct.pack("<QQi4x", data.ctypes.data, out.ctypes.data, 3)
    (fault,) = run(program, (1,), 256, arguments, [data, out]).faults
    assert fault.kind == "out_of_bounds"
    assert fault.use.source.endswith("kernel.hip:5")
    assert "behind the end of array 0" in fault.detail or "array 1" in fault.detail


@pytest.mark.hipcc
def test_an_endless_loop_meets_its_budget(tmp_path: Path) -> None:
    hip_or_skip("no endless loop was ended")
    source = "#include <hip/hip_runtime.h>\n__global__ void k(volatile int *p) { while (*p == 0) {} }"
    program = Program.load(device_code(source, "gfx942", tmp_path))
    data = np.zeros(16, np.int32)
    options = Options(max_instructions=200_000)
    outcome = run(program, (1,), 64, struct.pack("<Q", data.ctypes.data), [data], options=options)
    assert outcome.refusal is not None and outcome.refusal.kind == "budget"


def _elf(program_headers: bytes, count: int, tail: bytes) -> bytes:
    """Return a code object that consists of program headers and what they point to."""
    head = struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, 0, 0x4C, 64, 56, count, 64, 0, 0)
    return b"\x7fELF\x02\x01\x01" + bytes(9) + head + program_headers + tail


@pytest.mark.parametrize("count", [65535, 1000])
def test_headers_without_number_are_refused_at_once(count: int) -> None:
    note = struct.pack("<III", 7, 1 << 16, 32) + b"AMDGPU\0\0" + b"\xdd" + struct.pack(">I", 65531) + bytes(65531)
    one = struct.pack("<IIQQQQQQ", 4, 4, 64 + 56 * count, 0, 0, len(note), len(note), 4)
    with pytest.raises(BadCodeObject, match="headers"):
        Program.load(_elf(one * count, count, note))


@pytest.mark.hipcc
def test_a_name_that_looks_like_an_instruction_is_none(tmp_path: Path) -> None:
    hip_or_skip("no name was disassembled")
    text = "v_mov_b32_e32 v1, 1.0 // 000000001404: 7E0202F2"
    harmless = f's_nop 0\n"evilXY{text}Zq":\nv_mov_b32_e32 v1, 0'
    program = assembled(harmless, tmp_path)
    assert [line.text for line in program.code.lines] == ["s_nop 0", "v_mov_b32_e32 v1, 0", "s_endpgm"]
    whole = (tmp_path / "kernel.elf").read_bytes()
    for address in (program.code.lines[1].address, program.code.lines[-1].address + 4):
        name = text.replace("1404", f"{address:04X}").encode()
        forged = whole.replace(b"evilXY" + text.encode() + b"Z", b"evil\n\t" + name + b"\n")
        assert forged != whole
        with pytest.raises(BadCodeObject, match=r"instructions at|does not lie there"):
            Program.load(forged)


@pytest.mark.hipcc
@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("s_branch 0x7ffe", {}, "branch to"),
        ("s_branch 0xffff", {}, "endless loop"),
        ("s_mov_b64 s[4:5], 64\ns_setpc_b64 s[4:5]", {}, "where no instruction begins"),
        ("s_getpc_b64 s[4:5]\ns_sub_u32 s4, s4, 8\ns_setpc_b64 s[4:5]", {}, "where no instruction begins"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0", {}, "MODE"),
        ("s_trap 2", {}, "gave up"),
        ("s_nop 0", {"scratch": SCRATCH_LIMIT + 4}, "scratch"),
        ("s_nop 0", {"lds": 65540}, "LDS"),
    ],
)
def test_code_that_goes_astray_is_refused_by_its_reason(
    text: str, more: dict[str, int], said: str, tmp_path: Path
) -> None:
    hip_or_skip("no code went astray")
    program = assembled(text, tmp_path, lds=more.get("lds", 0), scratch=more.get("scratch", 0))
    outcome = run(program, (2,), 64, bytes(64), [np.zeros(4, np.float32)], options=Options(max_instructions=100_000))
    assert outcome.refusal is not None and said in str(outcome.refusal)


@pytest.mark.hipcc
def test_a_grid_without_end_ends_in_time(tmp_path: Path) -> None:
    hip_or_skip("no grid was executed")
    program = assembled("s_nop 0", tmp_path)
    grid = (2**31 - 1, 2**31 - 1, 2**31 - 1)
    outcome = run(program, grid, 64, bytes(64), [np.zeros(4, np.float32)], options=Options(seconds=0.5))
    assert outcome.refusal is not None and outcome.refusal.kind == "budget"
    assert "time" in str(outcome.refusal)


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_heads_notes_and_descriptors_may_hold_anything(arch: str, tmp_path: Path) -> None:
    hip_or_skip("no damaged head was read")
    whole = device_code(SOURCE, arch, tmp_path)
    data = np.zeros(1024, np.float32)
    arguments = struct.pack("<QQi4x", data.ctypes.data, data.ctypes.data, 9) + bytes(256)
    descriptor = Program.load(whole).kernels["_Z1kPKfPfi"].entry  # lies behind it
    note = whole.index(b"AMDGPU\0")
    places = [range(64), range(64, 64 + 8 * 56), range(note - 12, note + 900), range(0x400, min(descriptor, 0x1000))]
    launched = refused = 0
    for seed in range(60):
        draw = random.Random(seed)
        damaged = bytearray(whole)
        where = places[seed % len(places)]
        for _ in range(draw.choice((1, 2, 8))):
            at = draw.randrange(where.start, min(where.stop, len(whole)))
            damaged[at] = draw.choice((0, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            program = Program.load(bytes(damaged))
        except BadCodeObject:
            refused += 1
            continue
        for name in program.kernels:
            options = Options(max_instructions=50_000, seconds=2.0, seed=seed)
            run(program, (2,), 256, arguments, [data], kernel=name, options=options)
            launched += 1
    assert launched > 3 and refused > 3


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (1 << 40, "first + 0"),
        ((1 << 40) + 99, "first + 99"),
        ((1 << 40) + 104, "4 bytes behind the end of first (100 bytes)"),
        ((1 << 40) + 4092, "4 bytes before the beginning of second"),
        ((1 << 40) - 8, "8 bytes before the beginning of first"),
        (1 << 46, f"address {1 << 46:#x}, far from all memory"),
        (64, "address 0x40, far from all memory"),
    ],
)
def test_a_place_is_told_by_the_memory_that_is_near(address: int, told: str) -> None:
    memory = Memory()
    memory.add(1 << 40, 100, "first")
    memory.add((1 << 40) + 4096, 100, "second")
    assert memory.describe(address) == told
    assert "far" in Memory().describe(address)
