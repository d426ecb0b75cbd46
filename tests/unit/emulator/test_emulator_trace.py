"""Whose bytes they are: what kernels wrote and kept, and what they read of the host's."""

from __future__ import annotations

import struct
import threading
from array import array
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import assembled

from hkbench.emulator import trace
from hkbench.emulator.arena import Range
from hkbench.emulator.executor import Launch, Memory, Options, launch
from hkbench.emulator.program import Program
from hkbench.emulator.trace import Trace

pytestmark = pytest.mark.hipcc
#: y[lane] = x[lane], of 64 numbers.
COPY = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
global_store_dword v1, v2, s[6:7]
"""
#: The same, by an atomic operation.
ADD = COPY.replace("global_store_dword v1, v2", "global_atomic_add v1, v2")
MANY = 40  #: times that a host's thread tries to come between an access and the note of it


class _Ran:
    """Arrays of 64 numbers, of which a program takes two."""

    def __init__(self, text: str, folder: Path) -> None:
        hip_or_skip("no kernel was traced")
        self.program: Program = assembled(text, folder)
        self.memory, self.trace = Memory(), Trace()

    def array(self, fill: int) -> np.ndarray:
        made = np.full(64, fill, np.int32)
        self.memory.add(made.ctypes.data, made.nbytes, "array")
        return made

    def launch(self, x: np.ndarray, y: np.ndarray, seconds: float = 0.0) -> None:
        arguments = struct.pack("<QQ", x.ctypes.data, y.ctypes.data)
        one = Launch("k", (1, 1, 1), (64, 1, 1), 0, arguments)
        outcome = launch(self.program, one, self.memory, Options(seconds=seconds), self.trace)
        assert outcome.refusal is None and not outcome.faults

    def kept(self, one: np.ndarray) -> int:
        return self.trace.kept(Range(one.ctypes.data, one.nbytes))

    def made(self) -> int:
        return self.trace.host_bytes()


def _numbers(pairs: array[int]) -> set[int]:
    return set(pairs[0::2])


@pytest.mark.parametrize("text", [COPY, ADD])
def test_what_a_kernel_wrote_is_kept_until_the_host_changes_it(text: str, tmp_path: Path) -> None:
    ran = _Ran(text, tmp_path)
    x, y = ran.array(7), ran.array(0)
    ran.launch(x, y)
    assert (ran.kept(x), ran.kept(y)) == (0, y.nbytes)
    y[:16] = 5
    assert ran.kept(y) == y.nbytes - 64
    left = ran.trace.left(Range(y.ctypes.data, y.nbytes))
    assert left[1::2] == array("Q", 4 * (16,)) and left == ran.trace.numbers(Range(y.ctypes.data, 64))
    ran.trace.begin()
    assert ran.kept(y) == 0


def test_what_was_read_is_the_hosts_unless_a_kernel_wrote_it(tmp_path: Path) -> None:
    ran = _Ran(COPY, tmp_path)
    x, y, z = ran.array(7), ran.array(0), ran.array(0)
    ran.launch(x, y)
    assert ran.made() == x.nbytes
    ran.launch(y, z)
    assert ran.made() == x.nbytes
    y[:] = np.arange(100, 164)  # over what the kernel wrote
    ran.launch(y, z)
    assert ran.made() == x.nbytes + y.nbytes
    lies = ran.trace.numbers(Range(z.ctypes.data, z.nbytes))
    assert _numbers(lies) <= _numbers(ran.trace.host_made())


def test_what_passes_through_one_buffer_counts_each_time(tmp_path: Path) -> None:
    ran = _Ran(COPY, tmp_path)
    x, y = ran.array(0), ran.array(0)
    for number in range(5):
        x[:] = np.arange(64) + 64 * number
        ran.launch(x, y)
    assert len(_numbers(ran.trace.host_made())) == 5 * 16


def _change_meanwhile(ran: _Ran, x: np.ndarray, y: np.ndarray, changed: np.ndarray) -> None:
    """Launch the kernel, and write 9 to `changed` as soon as all of y is what lies in x."""

    def answer() -> None:
        while (x != y).any():  # without rest: it is to come as soon after the kernel's access as it can
            pass
        changed[:] = 9

    helper = threading.Thread(target=answer)
    helper.start()
    ran.launch(x, y, seconds=60.0)
    helper.join()


def test_what_the_host_changes_while_a_kernel_reads_counts(tmp_path: Path) -> None:
    ran = _Ran(COPY + "v_cmp_eq_u32_e32 vcc, 0, v2\ns_cbranch_vccnz 0xfff9\n", tmp_path)  # back to the load
    x, y = ran.array(0), ran.array(1)
    for _ in range(MANY):
        ran.trace.begin()
        x[:], y[:] = 0, 1
        _change_meanwhile(ran, x, y, x)
        assert (y == 9).all()
        assert ran.made() > x.nbytes


def test_what_the_host_writes_over_a_kernels_at_once_is_not_kept(tmp_path: Path) -> None:
    until = "s_waitcnt vmcnt(0)\nglobal_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
    until += "v_cmp_ne_u32_e32 vcc, 9, v3\ns_cbranch_vccnz 0xfffb\n"  # back to the load
    ran = _Ran(COPY + until, tmp_path)
    x, y = ran.array(7), ran.array(1)
    for _ in range(MANY):
        ran.trace.begin()
        y[:] = 1
        _change_meanwhile(ran, x, y, y)
        assert ran.kept(y) == 0


def test_nobody_finds_two_chunks_of_one_number_without_the_key() -> None:
    first, second = (Trace() for _ in range(2))
    for one in (first, second):
        one.spoken(b"what a launch says")
        one.spoken(b"what a launch says")
    assert first.host_made()[1::2] == second.host_made()[1::2] == array("Q", (16, 16))
    assert not _numbers(first.host_made()) & _numbers(second.host_made())


def test_what_comes_again_is_kept_once_and_what_is_too_much_is_new_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_USUAL", 64)
    monkeypatch.setattr(trace, "MAX_CHUNKS", 100)
    again, much = trace.Trace(), trace.Trace()
    for number in range(2000):
        again._keep(array("Q", (number % 50, 16)))
        much._keep(array("Q", (number, 16)))
    assert _numbers(again.host_made()) == set(range(50))
    assert len(again.host_made()) < 600
    assert sum(much.host_made()[1::2]) == 2000 * 16
    assert sum(number >= 2000 for number in _numbers(much.host_made())) > 0  # by no number that comes again
