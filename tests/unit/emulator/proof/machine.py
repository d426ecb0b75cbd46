"""The executor under proof, run on the definitions' waves: the only module here that knows it."""

from __future__ import annotations

import ctypes
import functools
import re
from array import array
from collections.abc import Sequence

import numpy as np
from support.emulator_step import State, StepRefused, step
from unit.emulator.proof.wave import LANES, VCC, Wave

from hkbench.emulator.executor import Memory
from hkbench.emulator.table import table

ARCHITECTURES = ("gfx942", "gfx950")
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
_ROOM = 4096  #: bytes behind and before a wave's memory that belong to nobody
_VECTORS = 256 * LANES
_M0, _EXEC = 124, 126

#: What LLVM assembles for one of the architectures alone.
_ONLY = {
    "gfx942": re.compile(r"v_mfma_\w+_xf32"),
    "gfx950": re.compile(
        r"v_(ashr_pk_|bitop3_|cvt_f32_bf16|cvt_pk_(bf16|f16)_f32|cvt_scalef32|cvt_sr_b?f16|dot2c?_f32_bf16|prng"
        r"|(pk_)?(max|min)imum3|permlane\d+_swap|mfma_\w+_f8f6f4|mfma_f32_(16x16x32|32x32x16)_b?f16"
        r"|mfma_i32_(16x16x64|32x32x32)_i8).*|ds_read_b\d+_tr_\w+|global_load_lds_dwordx[34]|buffer_atomic_pk_add_bf16"
    ),
}

Refused = StepRefused


@functools.cache
def mnemonics() -> tuple[str, ...]:
    """Return what the executor knows, without `_e32` and the like."""
    return tuple(sorted({name for arch in ARCHITECTURES for name in table(arch)} - {"?"}))


def architectures(mnemonic: str) -> list[str]:
    """Return the architectures that have the mnemonic."""
    others = {"gfx942": "gfx950", "gfx950": "gfx942"}
    return [arch for arch in ARCHITECTURES if not _ONLY[others[arch]].fullmatch(mnemonic)]


@functools.cache
def _arena() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(1 << 20)


def address() -> int:
    """Return where the waves' memory is: the host's address is the device's."""
    return (ctypes.addressof(_arena()) + _ROOM - 1) // _ROOM * _ROOM + _ROOM


def run(arch: str, text: Sequence[str], before: Wave) -> Wave:
    """Return the wave after the instructions. Raises Refused, ValueError: the executor or the assembler do."""
    state = State(
        sgpr=array("I", [word & 0xFFFFFFFF for word in before.sgpr]),
        vgpr=_words(before.vgpr),
        agpr=_words(before.agpr),
        exec_=before.exec,
        vcc=before.vcc,
        scc=before.scc,
        m0=before.m0,
        mode=before.mode,
        lds=bytearray(before.lds),
        memory=Memory(),
    )
    if before.memory:
        ctypes.memmove(before.address, bytes(before.memory), len(before.memory))
        state.memory.add(before.address, len(before.memory), "proof")
    state = step(arch, text, state)
    after = before.copy()
    after.sgpr = [*state.sgpr[:VCC], state.vcc & 0xFFFFFFFF, state.vcc >> 32, *before.sgpr[VCC + 2 :]]
    after.vgpr = np.frombuffer(state.vgpr, np.uint32)[:_VECTORS].reshape(256, LANES).copy()
    after.agpr = np.frombuffer(state.agpr, np.uint32)[:_VECTORS].reshape(256, LANES).copy()
    after.exec, after.scc, after.m0, after.mode = state.exec_, state.scc, state.m0, state.mode
    after.lds = state.lds
    if before.memory:
        after.memory = bytearray(ctypes.string_at(before.address, len(before.memory)))
    return after


def _words(rows: np.typing.NDArray[np.uint32]) -> array[int]:
    """Return the registers as the executor's state has them, with room for twice as many."""
    words = array("I", rows.tobytes())
    words.frombytes(bytes(words.itemsize * len(words)))
    return words
