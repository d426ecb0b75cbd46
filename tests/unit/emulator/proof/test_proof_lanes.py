"""Movements between lanes: the executor against formulas and, for permutes, the pseudocode."""

from __future__ import annotations

import numpy as np
import pytest
from unit.emulator.proof import inputs, lanes, machine
from unit.emulator.proof.wave import ALL_LANES, LANES, Wave

_CONTROLS = (
    *("quad_perm:[3,2,1,0]", "quad_perm:[1,1,3,0]", "row_shl:1", "row_shl:15", "row_shr:1", "row_shr:8", "row_ror:3"),
    *("wave_shl:1", "wave_shr:1", "wave_rol:1", "wave_ror:1", "row_mirror", "row_half_mirror"),
    *("row_bcast:15", "row_bcast:31", "row_newbcast:7"),
)
_PARTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
_SOME = 0xFFF7_FFFF_0FF0_FFFE


def _wave(active: int = ALL_LANES) -> Wave:
    wave = Wave(exec=active)
    rng = np.random.default_rng(11)
    wave.vgpr[:] = rng.integers(0, 1 << 32, wave.vgpr.shape, dtype=np.uint32)
    wave.sgpr[:102] = rng.integers(0, 1 << 32, 102).tolist()
    return wave


def _row(wave: Wave, register: int) -> list[int]:
    return [int(word) for word in wave.vgpr[register]]


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("control", _CONTROLS)
def test_dpp(control: str, arch: str) -> None:
    for active in (ALL_LANES, _SOME):
        for masks in ((15, 15), (10, 15), (15, 5), (7, 14)):
            for zero in (False, True):
                wave = _wave(active)
                expected = lanes.dpp(_row(wave, 2), _row(wave, 1), active, control, zero=zero, masks=masks)
                text = f"v_mov_b32_dpp v1, v2 {control} row_mask:{masks[0]:#x} bank_mask:{masks[1]:#x}"
                after = machine.run(arch, [text + (" bound_ctrl:0" if zero else "")], wave)
                assert _row(after, 1) == expected, text


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_dpp_takes_the_first_source_of_an_addition(arch: str) -> None:
    wave = _wave()
    moved = lanes.dpp(_row(wave, 2), [0] * LANES, ALL_LANES, "row_shr:1", zero=True, masks=(15, 15))
    text = "v_add_u32_dpp v1, v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0"
    after = machine.run(arch, [text], wave)
    assert _row(after, 1) == [(a + b) & 0xFFFFFFFF for a, b in zip(moved, _row(wave, 3), strict=True)]


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("signed", [False, True])
def test_sdwa_sources(arch: str, signed: bool) -> None:
    wave = _wave(_SOME)
    for first in _PARTS:
        for second in _PARTS[::3]:
            sources = "sext(v2), sext(v3)" if signed else "v2, v3"
            text = (
                f"v_add_u32_sdwa v1, {sources} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{first} src1_sel:{second}"
            )
            after = machine.run(arch, [text], wave)
            for lane in wave.lanes():
                a = lanes.sdwa_select(int(wave.vgpr[2, lane]), first, signed)
                b = lanes.sdwa_select(int(wave.vgpr[3, lane]), second, signed)
                assert int(after.vgpr[1, lane]) == (a + b) & 0xFFFFFFFF, (text, lane)


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("unused", ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"])
def test_sdwa_destinations(arch: str, unused: str) -> None:
    wave = _wave(_SOME)
    for part in _PARTS:
        text = f"v_xor_b32_sdwa v1, v2, v3 dst_sel:{part} dst_unused:{unused} src0_sel:DWORD src1_sel:DWORD"
        after = machine.run(arch, [text], wave)
        for lane in range(LANES):
            old = int(wave.vgpr[1, lane])
            result = int(wave.vgpr[2, lane] ^ wave.vgpr[3, lane])
            active = wave.exec >> lane & 1
            expected = lanes.sdwa_merge(result, old, part, unused) if active else old
            assert int(after.vgpr[1, lane]) == expected, (text, lane)


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_swizzles(arch: str) -> None:
    rng = inputs.generator("swizzle")
    offsets = [0x8000 | rng.getrandbits(8) for _ in range(4)] + [rng.getrandbits(15) for _ in range(8)]
    offsets += [0x401F, 0x201F, 0x001E, 0x03E0]
    for active in (ALL_LANES, _SOME):
        for offset in offsets:
            wave = _wave(active)
            source = lanes.swizzle_source(offset)
            after = machine.run(arch, [f"ds_swizzle_b32 v1, v2 offset:{offset}", machine.WAIT], wave)
            for lane in range(LANES):
                from_lane = source(lane)
                assert from_lane is not None
                value = int(wave.vgpr[2, from_lane]) if active >> from_lane & 1 else 0
                assert int(after.vgpr[1, lane]) == (value if active >> lane & 1 else int(wave.vgpr[1, lane])), offset


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("active", [ALL_LANES, _SOME])
def test_permutes(arch: str, active: int) -> None:
    wave = _wave(active)
    after = machine.run(arch, ["ds_bpermute_b32 v1, v2, v3 offset:8", machine.WAIT], wave)
    for lane in range(LANES):
        source = (int(wave.vgpr[2, lane]) + 8) // 4 % LANES
        value = int(wave.vgpr[3, source]) if active >> source & 1 else 0
        assert int(after.vgpr[1, lane]) == (value if active >> lane & 1 else int(wave.vgpr[1, lane]))
    after = machine.run(arch, ["ds_permute_b32 v1, v2, v3", machine.WAIT], wave)
    pushed = [0] * LANES
    for lane in wave.lanes():
        pushed[int(wave.vgpr[2, lane]) // 4 % LANES] = int(wave.vgpr[3, lane])
    for lane in range(LANES):
        assert int(after.vgpr[1, lane]) == (pushed[lane] if active >> lane & 1 else int(wave.vgpr[1, lane]))


@pytest.mark.parametrize("size", [16, 32])
def test_permlane_swaps(size: int) -> None:
    wave = _wave()
    after = machine.run("gfx950", [f"v_permlane{size}_swap_b32 v1, v2"], wave)
    assert (_row(after, 1), _row(after, 2)) == lanes.permlane_swap(_row(wave, 1), _row(wave, 2), size)


@pytest.mark.parametrize(("bits", "size"), [(16, 64), (8, 64), (6, 96), (4, 64)])
def test_transposed_reads_of_lds(bits: int, size: int) -> None:
    wave = _wave()
    rng = np.random.default_rng(bits)
    wave.lds[:] = rng.integers(0, 256, len(wave.lds), dtype=np.uint8).tobytes()
    addresses = rng.permutation(LANES) * 16 + 1024
    wave.vgpr[2] = addresses
    program = [f"ds_read_b{size}_tr_b{bits} v[4:{3 + size // 32}], v2 offset:16", machine.WAIT]
    after = machine.run("gfx950", program, wave)
    read = [int.from_bytes(wave.lds[a + 16 : a + 16 + size // 8], "little") for a in addresses.tolist()]
    for lane in range(LANES):
        for item in range(size // bits):
            source, at = lanes.transposed_source(bits, lane, item)
            expected = read[source] >> at * bits & (1 << bits) - 1
            assert after.vector(4, lane, size) >> item * bits & (1 << bits) - 1 == expected, (lane, item)


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_values_that_cross_between_vector_and_scalar_registers(arch: str) -> None:
    for active in (ALL_LANES, _SOME, 0, 1 << 63):
        wave = _wave(active)
        wave.sgpr[20] = 0xABC4  # lane 4: six bits count
        program = ["v_readfirstlane_b32 s0, v1", "v_readlane_b32 s1, v2, s20", "v_readlane_b32 s2, v2, 63"]
        program += ["v_writelane_b32 v3, s21, 17", "s_mov_b32 m0, s20", "v_writelane_b32 v4, s21, m0"]
        after = machine.run(arch, program, wave)
        first = (active & -active).bit_length() - 1 if active else 0
        assert after.sgpr[0] == int(wave.vgpr[1, first])
        assert after.sgpr[1:3] == [int(wave.vgpr[2, 4]), int(wave.vgpr[2, 63])]
        for register, lane in ((3, 17), (4, 4)):
            expected = _row(wave, register)
            expected[lane] = wave.sgpr[21]
            assert _row(after, register) == expected


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_moves_between_kinds_of_vector_registers(arch: str) -> None:
    wave = _wave(_SOME)
    after = machine.run(
        arch, ["v_accvgpr_write_b32 a3, v1", "v_accvgpr_read_b32 v5, a3", "v_accvgpr_mov_b32 a4, a3"], wave
    )
    for lane in range(LANES):
        active = _SOME >> lane & 1
        assert int(after.agpr[3, lane]) == int(after.agpr[4, lane]) == (int(wave.vgpr[1, lane]) if active else 0)
        assert int(after.vgpr[5, lane]) == int(wave.vgpr[1 if active else 5, lane])


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_packed_moves_take_halves_by_op_sel(arch: str) -> None:
    for select in range(4):
        wave = _wave(_SOME)
        text = f"v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[{select & 1},{select >> 1}]"
        after = machine.run(arch, [text], wave)
        for lane in wave.lanes():
            expected = [int(wave.vgpr[2 + (select & 1), lane]), int(wave.vgpr[4 + (select >> 1), lane])]
            assert after.vgpr[10:12, lane].tolist() == expected, text
