"""Movements between lanes as formulas: DPP, SDWA, swizzles, permutes, transposed reads of LDS.

Each gives the lane from which a lane takes its value (None: from none), after the text of AMD's CDNA manuals.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from unit.emulator.proof.values import mask
from unit.emulator.proof.wave import LANES

Source = Callable[[int], int | None]

_ROW = 16
_CONTROL = re.compile(r"(?P<name>[a-z_]+)(?::(?:\[(?P<list>[\d,]+)\]|(?P<count>\d+)))?")


def dpp_source(control: str) -> Source:
    """Return lane -> the lane that it reads, for `quad_perm:[3,2,1,0]`, `row_shr:1`, `row_bcast:15`, ..."""
    found = _CONTROL.fullmatch(control)
    assert found, control
    name, count = found["name"], int(found["count"] or 0)
    quad = [int(part) for part in (found["list"] or "0,0,0,0").split(",")]
    return {
        "quad_perm": lambda lane: lane // 4 * 4 + quad[lane % 4],
        "row_shl": lambda lane: _in_row(lane, lane % _ROW + count),
        "row_shr": lambda lane: _in_row(lane, lane % _ROW - count),
        "row_ror": lambda lane: _in_row(lane, (lane % _ROW - count) % _ROW),
        "wave_shl": lambda lane: lane + 1 if lane + 1 < LANES else None,
        "wave_shr": lambda lane: lane - 1 if lane else None,
        "wave_rol": lambda lane: (lane + 1) % LANES,
        "wave_ror": lambda lane: (lane - 1) % LANES,
        "row_mirror": lambda lane: _in_row(lane, _ROW - 1 - lane % _ROW),
        "row_half_mirror": lambda lane: lane // 8 * 8 + 7 - lane % 8,
        "row_bcast": lambda lane: _broadcast(lane, count),
        "row_newbcast": lambda lane: _in_row(lane, count),
    }[name]


def _in_row(lane: int, at: int) -> int | None:
    return lane // _ROW * _ROW + at if 0 <= at < _ROW else None


def _broadcast(lane: int, count: int) -> int | None:
    """Lane 15 of a row goes to the next row; lane 31 to the two rows of the upper half."""
    if count == 15:
        return lane // _ROW * _ROW - 1 if lane >= _ROW else None
    return 31 if lane >= 32 else None


def dpp_enabled(lane: int, row_mask: int, bank_mask: int) -> bool:
    """Say whether the masks let the lane be written: a bit for each row of 16, one for each 4 lanes of a row."""
    return bool(row_mask >> lane // _ROW & 1 and bank_mask >> lane % _ROW // 4 & 1)


def dpp(
    values: list[int], old: list[int], active: int, control: str, *, zero: bool, masks: tuple[int, int]
) -> list[int]:
    """Return what `v_mov_b32` with DPP leaves: `zero` (`bound_ctrl`) is what a lane without a source gets."""
    source = dpp_source(control)
    result = list(old)
    for lane in range(LANES):
        if not active >> lane & 1 or not dpp_enabled(lane, *masks):
            continue
        taken = source(lane)
        if taken is not None and active >> taken & 1:
            result[lane] = values[taken]
        elif zero:
            result[lane] = 0
    return result


def sdwa_select(word: int, part: str, signed: bool) -> int:
    """Return the part of a source that `src0_sel` picks, extended to 32 bits."""
    low, width = _part(part)
    bits = word >> low & mask(width)
    return (bits - (bits >> (width - 1) << width) if signed else bits) & mask(32)


def sdwa_merge(result: int, old: int, part: str, unused: str) -> int:
    """Return the destination: the result's low bits at `dst_sel`; the rest as `dst_unused` says."""
    low, width = _part(part)
    bits = result & mask(width)
    if unused == "UNUSED_PRESERVE":
        return old & ~(mask(width) << low) & mask(32) | bits << low
    above = mask(32) & ~mask(low + width) if unused == "UNUSED_SEXT" and bits >> (width - 1) else 0
    return bits << low | above


def _part(name: str) -> tuple[int, int]:
    if name == "DWORD":
        return 0, 32
    kind, _, at = name.partition("_")
    width = {"BYTE": 8, "WORD": 16}[kind]
    return int(at) * width, width


def swizzle_source(offset: int) -> Source:
    """Return the source lanes of `ds_swizzle_b32`: a permutation of quads, or and, or, xor within 32 lanes."""
    if offset >> 15:
        return lambda lane: lane // 4 * 4 + (offset >> 2 * (lane % 4) & 3)
    keep, put, flip = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return lambda lane: lane // 32 * 32 + ((lane % 32 & keep | put) ^ flip)


def transposed_source(bits: int, lane: int, item: int) -> tuple[int, int]:
    """Return the lane and the item from which `ds_read_b*_tr_b*` takes an item of a lane's result.

    Sixteen lanes read a block whose rows are shared by as many lanes as a row needs, and get its columns.
    """
    each = {16: 4, 8: 8, 6: 16, 4: 16}[bits]  # items that a lane reads
    lanes_of_row = _ROW // each
    column = lane % _ROW
    return lane // _ROW * _ROW + item * lanes_of_row + column // each, column % each


def permlane_swap(first: list[int], second: list[int], size: int) -> tuple[list[int], list[int]]:
    """Return both registers after `v_permlane16_swap` or `32_swap`.

    Groups of `size` lanes are counted from 0: odd ones of the first (vdst) change places with even ones of the second.
    """
    one, two = list(first), list(second)
    for lane in range(LANES):
        if lane // size % 2:
            one[lane], two[lane - size] = second[lane - size], first[lane]
    return one, two
