"""Prints what the decoder understood of an ALU instruction, from its record alone."""

from __future__ import annotations

import re

from hkbench.emulator.decode import Decoded
from hkbench.emulator.modifiers import Modifiers
from hkbench.emulator.operands import EXEC, M0, PRIVATE_BASE, SELECTIONS, SHARED_BASE, VCC, Flag, Kind, Operand

_SHORT = re.compile(r"s_(movk|cmovk|cmpk_\w\w|addk|mulk)_")
_SPECIAL = ("src_vccz", "src_execz", "src_scc")
_NAMED = {(VCC, 2): "vcc", (VCC, 1): "vcc_lo", (VCC + 1, 1): "vcc_hi", (EXEC, 2): "exec", (EXEC, 1): "exec_lo"}
_NAMED |= {(EXEC + 1, 1): "exec_hi", (M0, 1): "m0"}
_CONTROLS = {0x100: "row_shl", 0x110: "row_shr", 0x120: "row_ror", 0x150: "row_newbcast"}
_WHOLE = {0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1", 0x140: "row_mirror"}
_WHOLE |= {0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31"}
_SELECTED = {number: name for name, number in SELECTIONS.items()}
_BASES = {SHARED_BASE: "src_shared_base", PRIVATE_BASE: "src_private_base"}
_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def printed(mnemonic: str, tokens: tuple[str, ...], decoded: Decoded) -> str:
    """Return the instruction in the assembler's words. `mnemonic` with the suffix of its encoding."""
    types = [token.partition(":")[2] for token in tokens if ":" in token]
    operands = [_operand(o, type_) for o, type_ in zip(decoded.slots, types, strict=False)]
    if _SHORT.match(mnemonic):  # a number of 16 bits in the instruction
        operands[-1] = str(decoded.slots[len(types) - 1].value & 0xFFFF)
    text = f"{mnemonic} {', '.join(operands)}" if operands else mnemonic
    words = _modifiers(decoded.modifiers)
    if "bitop3" in mnemonic:
        words.append(f"bitop3:{decoded.imm:#x}")
    return " ".join([text, *words])


def _operand(operand: Operand, type_: str) -> str:
    if operand.kind is Kind.CONSTANT:
        text = _BASES.get(operand.value) or _constant(operand.value, type_)
    elif operand.kind is Kind.SPECIAL:
        text = _SPECIAL[operand.index]
    else:
        text = _register(operand)
    if operand.flags & Flag.SEXT:
        text = f"sext({text})"
    if operand.flags & Flag.ABS and type_ != "mix":
        text = f"|{text}|"
    return f"-{text}" if operand.flags & Flag.NEG and type_ not in ("mix", "pkf", "p64") else text


def _constant(bits: int, type_: str) -> str:
    """Return a constant: a small integer, or its bits (of a double the upper half), as the assembler takes them."""
    wide = type_ in ("f64", "i64", "u64", "b64")
    signed = bits - (1 << (64 if wide else 32)) if bits >> (63 if wide else 31) else bits
    if -16 <= signed <= 64:
        return str(signed)
    return f"{bits >> 32:#x}" if type_ == "f64" else f"{bits:#x}"


def _register(operand: Operand) -> str:
    if operand.kind is Kind.SGPR and (operand.index, operand.width) in _NAMED:
        return _NAMED[operand.index, operand.width]
    file, first = "s" if operand.kind is Kind.SGPR else "av"[operand.index < 256], operand.index % 256
    return f"{file}{first}" if operand.width == 1 else f"{file}[{first}:{first + operand.width - 1}]"


def _modifiers(m: Modifiers) -> list[str]:
    words = [
        f"{name}:[{','.join(map(str, values))}]"
        for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
        if (values := getattr(m, name)) is not None
    ]
    words += ["clamp"] if m.clamp else []
    if m.sdwa:
        words += [f"dst_sel:{_SELECTED[m.dst_sel]}", f"dst_unused:{_UNUSED[m.dst_unused]}"]
        words += [f"src{n}_sel:{_SELECTED[part]}" for n, part in sorted(m.selections.items())]
    if m.dpp:
        words += [_control(m.dpp_ctrl), f"row_mask:{m.row_mask:#x}", f"bank_mask:{m.bank_mask:#x}"]
    return words + (["bound_ctrl:1"] if m.bound_ctrl else [])


def _control(bits: int) -> str:
    if bits < 0x100:
        return f"quad_perm:[{','.join(str(bits >> 2 * n & 3) for n in range(4))}]"
    return _WHOLE.get(bits) or f"{_CONTROLS[bits & ~15]}:{bits & 15}"
