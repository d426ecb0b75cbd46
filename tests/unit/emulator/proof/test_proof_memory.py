"""Memory instructions: the executor against AMD's pseudocode, with addresses as the manual has them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from unit.emulator.proof import compare, inputs, machine, memory, pseudocode
from unit.emulator.proof.memory import Access
from unit.emulator.proof.wave import LANES, Memory, Wave

_INACTIVE = 0b1001 << 20
_FORMS = {"GLOBAL": ("global", "saddr"), "FLAT": ("flat",), "MUBUF": ("buffer",)}
_ROUNDS = 6 if inputs.FULL else 2


def _prepared(mnemonic: str, form: str, turn: int) -> tuple[Wave, Access]:
    rng = random.Random(f"{mnemonic} {form} {turn}")
    words = np.random.default_rng(rng.getrandbits(32))
    wave = Wave(exec=~_INACTIVE & (1 << LANES) - 1, memory=bytearray(8192), lds=bytearray(16384))
    wave.address = machine.address()
    wave.vgpr[:] = words.integers(0, 1 << 32, wave.vgpr.shape, dtype=np.uint32)
    entry = next(e for e in pseudocode.entries()[mnemonic].values() if form in memory.forms(e))
    access = memory.access(entry, wave, rng, form)
    memory.fill(wave, access, rng)
    return wave, access


def _tried(mnemonic: str) -> bool:
    return memory.covers(mnemonic) and not mnemonic.startswith("scratch_")


@pytest.mark.parametrize("mnemonic", [m for m in machine.mnemonics() if m.startswith("scratch_")])
def test_scratch(mnemonic: str) -> None:
    """Four words are stored before, and read again after the instruction."""
    entry = pseudocode.entries()[mnemonic]["SCRATCH"]
    before = Wave(exec=~_INACTIVE & (1 << LANES) - 1)
    before.vgpr[:] = np.random.default_rng(4).integers(0, 1 << 32, before.vgpr.shape, dtype=np.uint32)
    access = memory.private(entry, before)
    after = before.copy()
    after.memory = bytearray(LANES * memory.SCRATCH_BYTES)
    for lane in after.lanes():
        at = access.addresses[lane]
        after.memory[at : at + 16] = before.vector(40, lane, 128).to_bytes(16, "little")
    memory.apply(after, access, machine.ARCHITECTURES[-1])
    for lane in after.lanes():
        at = access.addresses[lane]
        after.vgpr[48:52, lane] = np.frombuffer(after.memory[at : at + 16], np.uint32)
    after.memory = bytearray()
    program = ["scratch_store_dwordx4 v8, v[40:43], off offset:32", machine.WAIT, access.text, machine.WAIT]
    program += ["scratch_load_dwordx4 v[48:51], v8, off offset:32", machine.WAIT]
    for arch in machine.architectures(mnemonic):
        found = compare.differences(after, machine.run(arch, program, before))
        assert not found, f"{arch}: {access.text}\n  " + "\n  ".join(found)


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_scratch_is_addressed_by_a_scalar_register_too(arch: str) -> None:
    wave = Wave()
    wave.vgpr[1] = np.arange(LANES)
    program = ["s_mov_b32 s0, 48", "v_mov_b32 v2, 32", "scratch_store_dword v2, v1, off offset:16", machine.WAIT]
    program += ["scratch_load_dword v3, off, s0", "scratch_load_dword v4, v2, s0 offset:-32", machine.WAIT]
    after = machine.run(arch, program, wave)
    assert after.vgpr[3].tolist() == after.vgpr[4].tolist() == list(range(LANES))


@pytest.mark.parametrize("mnemonic", [m for m in machine.mnemonics() if _tried(m)])
def test_memory(mnemonic: str) -> None:
    for entry in pseudocode.entries()[mnemonic].values():
        for form in memory.forms(entry):
            for turn in range(_ROUNDS):
                before, access = _prepared(mnemonic, form, turn)
                after = before.copy()
                floats = memory.apply(after, access, machine.ARCHITECTURES[-1])
                for arch in machine.architectures(mnemonic):
                    actual = machine.run(arch, [access.text, machine.WAIT], before)
                    memory.forgive_nans(after, actual, access, floats)
                    found = compare.differences(after, actual)
                    assert not found, f"{arch}: {access.text}\n  " + "\n  ".join(found)


@pytest.mark.parametrize("mnemonic", [m for m in machine.mnemonics() if memory.direct(m)])
def test_loads_straight_to_lds(mnemonic: str) -> None:
    """Each lane's words go to M0, plus the offset, plus its number times their size."""
    size = memory.direct(mnemonic)
    for arch in machine.architectures(mnemonic):
        wave = Wave(memory=bytearray(8192), lds=bytearray(16384))
        wave.address = machine.address()
        wave.memory[:] = np.random.default_rng(size).integers(0, 256, 8192, dtype=np.uint8).tobytes()
        wave.m0 = 512
        places = np.random.default_rng(1).permutation(LANES) * 64
        expected = bytearray(wave.lds)
        for lane, place in enumerate(places.tolist()):
            part = wave.memory[place + 32 : place + 32 + size]
            word = int.from_bytes(part, "little", signed=mnemonic.endswith(("sbyte", "sshort")))
            at = 512 + 32 + lane * max(4, size)
            expected[at : at + max(4, size)] = (word & (1 << 8 * max(4, size)) - 1).to_bytes(max(4, size), "little")
        after = machine.run(arch, [memory.direct_text(mnemonic, wave, places.tolist()), machine.WAIT], wave)
        assert after.lds == expected, arch


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_atomic_additions_of_all_lanes_to_one_place_add_up(arch: str) -> None:
    wave = Wave(lds=bytearray(4096))
    wave.vgpr[0], wave.vgpr[1] = 64, np.arange(LANES, dtype=np.uint32)
    after = machine.run(arch, ["ds_add_u32 v0, v1", machine.WAIT], wave)
    assert int.from_bytes(after.lds[64:68], "little") == sum(range(LANES))


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_flat_addresses_in_the_aperture_are_lds(arch: str) -> None:
    wave = Wave(lds=bytearray(np.random.default_rng(5).integers(0, 256, 4096, dtype=np.uint8).tobytes()))
    wave.vgpr[4] = np.arange(LANES) * 16
    program = [
        "s_mov_b64 s[0:1], src_shared_base",
        "v_mov_b32 v5, s1",
        "flat_load_dwordx2 v[6:7], v[4:5]",
        machine.WAIT,
    ]
    after = machine.run(arch, program, wave)
    memory_ = Memory(wave.lds, 0)
    for lane in range(LANES):
        assert after.vector(6, lane, 64) == memory_.element(lane * 16).read(0, 64)
