"""Branches, calls, the program counter, MODE, and instructions that change nothing that a program sees."""

from __future__ import annotations

import pytest
from unit.emulator.proof import compare, definitions, inputs, machine
from unit.emulator.proof.wave import ALL_LANES, Wave

_MARK, _SKIPPED = "s_mov_b32 s0, 1", "s_mov_b32 s1, 2"
ARCHITECTURES = pytest.mark.parametrize("arch", machine.ARCHITECTURES)


def _taken(arch: str, branch: str, wave: Wave) -> bool:
    """Say whether the branch skips the next instruction, and goes on right behind it."""
    after = machine.run(arch, [branch, _SKIPPED, _MARK], wave)
    assert after.sgpr[0] == 1
    return after.sgpr[1] == 0


@ARCHITECTURES
def test_branches_on_conditions(arch: str) -> None:
    assert _taken(arch, "s_branch 1", Wave())
    for scc in (0, 1):
        assert _taken(arch, "s_cbranch_scc0 1", Wave(scc=scc)) == (scc == 0)
        assert _taken(arch, "s_cbranch_scc1 1", Wave(scc=scc)) == (scc == 1)
    for bits in (0, 1, 1 << 63, ALL_LANES):
        wave = Wave()
        wave.vcc = bits
        assert _taken(arch, "s_cbranch_vccz 1", wave) == (bits == 0)
        assert _taken(arch, "s_cbranch_vccnz 1", wave) == (bits != 0)
        assert _taken(arch, "s_cbranch_execz 1", Wave(exec=bits)) == (bits == 0)
        assert _taken(arch, "s_cbranch_execnz 1", Wave(exec=bits)) == (bits != 0)


@ARCHITECTURES
def test_branches_backwards_make_loops(arch: str) -> None:
    program = ["s_add_u32 s0, s0, 1", "s_cmp_lt_u32 s0, 10", "s_cbranch_scc1 65533"]  # three words back
    assert machine.run(arch, program, Wave()).sgpr[0] == 10


@ARCHITECTURES
def test_the_program_counter_is_read_and_set(arch: str) -> None:
    program = [
        "s_getpc_b64 s[4:5]",  # of the next instruction
        "s_add_u32 s6, s4, 20",
        "s_addc_u32 s7, s5, 0",
        "s_swappc_b64 s[8:9], s[6:7]",  # to the fifth word after the first
        _SKIPPED,
        _SKIPPED,
        _MARK,
    ]
    after = machine.run(arch, program, Wave())
    assert (after.sgpr[0], after.sgpr[1]) == (1, 0)
    assert after.scalar(8, 64) - after.scalar(4, 64) == 12
    program[3] = "s_setpc_b64 s[6:7]"
    after = machine.run(arch, program, Wave())
    assert (after.sgpr[0], after.sgpr[1]) == (1, 0)
    after = machine.run(arch, ["s_getpc_b64 s[4:5]", "s_call_b64 s[8:9], 1", _SKIPPED, _MARK], Wave())
    assert (after.sgpr[0], after.sgpr[1]) == (1, 0)
    assert after.scalar(8, 64) - after.scalar(4, 64) == 4


@ARCHITECTURES
def test_nothing_runs_after_the_end(arch: str) -> None:
    after = machine.run(arch, [_MARK, "s_endpgm", _SKIPPED], Wave())
    assert (after.sgpr[0], after.sgpr[1]) == (1, 0)


_TEXTS = {
    "s_nop": "s_nop 7",
    "s_sleep": "s_sleep 3",
    "s_setprio": "s_setprio 2",
    "s_waitcnt": "s_waitcnt vmcnt(0) lgkmcnt(0) expcnt(0)",
    "buffer_wbl2": "buffer_wbl2 sc0 sc1",
    "buffer_inv": "buffer_inv sc0 sc1",
}


@ARCHITECTURES
@pytest.mark.parametrize("mnemonic", sorted(definitions.NO_EFFECT & set(machine.mnemonics())))
def test_these_change_nothing_that_a_program_sees(mnemonic: str, arch: str) -> None:
    wave = Wave(exec=0xFFFF0000FFFF0001, scc=1, m0=77)
    rng = inputs.generator(mnemonic)
    wave.sgpr[:102] = [rng.getrandbits(32) for _ in range(102)]
    wave.vgpr[:8] = [[rng.getrandbits(32) for _ in range(64)] for _ in range(8)]
    after = machine.run(arch, [_TEXTS.get(mnemonic, mnemonic)], wave)
    assert not compare.differences(wave, after)


@ARCHITECTURES
def test_mode_is_read_and_written_by_fields(arch: str) -> None:
    program = ["s_getreg_b32 s0, hwreg(HW_REG_MODE)", "s_getreg_b32 s1, hwreg(HW_REG_MODE, 4, 4)"]
    program += ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0", "s_getreg_b32 s2, hwreg(HW_REG_MODE, 4, 4)"]
    program += ["s_mov_b32 s5, 3", "s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s5", "s_getreg_b32 s3, hwreg(HW_REG_MODE)"]
    wave = Wave()
    after = machine.run(arch, program, wave)
    assert after.sgpr[0] & 0x3FF == wave.mode & 0x3FF
    assert after.sgpr[1:3] == [0xF, 0xC]
    assert after.sgpr[3] == after.sgpr[0]


@ARCHITECTURES
def test_denormal_numbers_are_flushed_where_mode_says(arch: str) -> None:
    tiny, flushed = 0x00400000, machine.run
    for mode, expected in ((0xF0, tiny), (0xC0, 0)):
        wave = Wave(mode=mode)
        wave.vgpr[1], wave.vgpr[2] = tiny, 0
        assert int(flushed(arch, ["v_add_f32 v0, v1, v2"], wave).vgpr[0, 0]) == expected


@ARCHITECTURES
@pytest.mark.parametrize("mnemonic", sorted(definitions.CLOCK & set(machine.mnemonics())))
def test_the_clock_does_not_go_back(mnemonic: str, arch: str) -> None:
    program = [f"{mnemonic} s[0:1]", machine.WAIT, "s_nop 7", f"{mnemonic} s[2:3]", machine.WAIT]
    after = machine.run(arch, program, Wave())
    assert after.scalar(0, 64) <= after.scalar(2, 64)


@ARCHITECTURES
@pytest.mark.parametrize("mnemonic", sorted(definitions.TRAPS & set(machine.mnemonics())))
def test_traps_are_refused(mnemonic: str, arch: str) -> None:
    with pytest.raises(machine.Refused):
        machine.run(arch, [f"{mnemonic} 1"], Wave())
