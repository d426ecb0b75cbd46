"""Pack decoded instructions for the executor: the layout of `Instruction` in core/abi.h."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hkbench.emulator.decode import Decoded, decode
from hkbench.emulator.listing import Line
from hkbench.emulator.operands import SGPRS, Kind, NotUnderstood, Operand
from hkbench.emulator.table import table

_RECORD = struct.Struct("<QHBBBBBBHBBBBBBIiiiII" + 6 * "HBBHHQ" + "20Q")
SIZE = _RECORD.size
_BITS = (1 << 64) - 1


@dataclass
class Code:
    """The instructions of a code object, as the executor has them."""

    lines: list[Line]
    records: bytearray = field(default_factory=bytearray)  #: one more than lines: running off the end refuses
    reasons: list[str] = field(default_factory=list)  #: why a marked instruction is not understood; `imm` counts them
    index: dict[int, int] = field(default_factory=dict)  #: address -> instruction


def encode(lines: Sequence[Line], arch: str) -> Code:
    """Return the code for the executor. What is not understood is marked, and refuses when it is executed."""
    code = Code(list(lines))
    code.index = {line.address: number for number, line in enumerate(code.lines)}
    known: dict[str, Decoded | str] = {}
    rows = table(arch)
    for line in code.lines:
        decoded = known.get(line.text)
        if decoded is None:
            try:
                decoded = decode(line.text, rows)
            except NotUnderstood as error:
                decoded = str(error)
            known[line.text] = decoded
        code.records += _pack(code, line, decoded)
    code.reasons.append("the code ends here, and nothing stopped it")
    code.records += _marked(code, code.lines[-1].address + 4 if code.lines else 0)
    return code


def _marked(code: Code, address: int) -> bytes:
    return _fields(Decoded(imm=len(code.reasons) - 1), address, 0)


def _pack(code: Code, line: Line, decoded: Decoded | str) -> bytes:
    if isinstance(decoded, str):
        code.reasons.append(decoded)
        return _marked(code, line.address)
    target = 0
    if decoded.branch is not None:
        address = line.address + 4 * len(line.words) + 4 * decoded.branch
        if address not in code.index:
            code.reasons.append(f"branch to {address:#x}, where no instruction begins")
            return _marked(code, line.address)
        target = code.index[address]
    return _fields(decoded, line.address, target)


def _fields(decoded: Decoded, address: int, target: int) -> bytes:
    m = decoded.modifiers
    slots: list[int] = []
    for o in decoded.slots:
        slots += (o.index, o.kind, o.width, o.flags, 0, o.value)
    return _RECORD.pack(
        0, decoded.op, decoded.operands, m.omod, m.clamp, m.sdwa, m.dst_sel, m.dst_unused, m.dpp_ctrl, m.dpp,
        m.row_mask, m.bank_mask, m.bound_ctrl, decoded.flight, decoded.sink, decoded.flags, decoded.offset,
        decoded.offset1, target, decoded.imm, address, *slots, *_set(decoded.reads), *_set(decoded.writes),
    )  # fmt: skip


def _set(operands: Sequence[Operand]) -> list[int]:
    """Return the bit set of registers: 0..127 the scalar ones, then the vector ones."""
    bits = 0
    for operand in operands:
        if operand.kind in (Kind.VGPR, Kind.SGPR):
            first = operand.index + (SGPRS if operand.kind is Kind.VGPR else 0)
            bits |= ((1 << operand.width) - 1) << first
    return [bits >> 64 * n & _BITS for n in range(10)]
