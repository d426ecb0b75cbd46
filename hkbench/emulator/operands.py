"""Operands of AMD's assembly language as LLVM prints it: registers, constants, and what modifies them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

SGPRS = 128
VCC, M0, EXEC = 106, 124, 126
SHARED_BASE = 0x00010000 << 32  #: the executor's places.h has the same
PRIVATE_BASE = 0x00020000 << 32


class NotUnderstood(Exception):
    """An instruction has a form that the decoder does not know. The message says which."""


class Kind(IntEnum):
    """Where an operand is."""

    ABSENT = 0
    VGPR = 1
    SGPR = 2
    CONSTANT = 3
    SPECIAL = 4


class Flag(IntFlag):
    """What modifies an operand."""

    NEG = 1
    ABS = 2
    OP_SEL = 4
    OP_SEL_HI = 8
    NEG_HI = 16
    SEXT = 32


SELECT_SHIFT = 8  #: of SDWA's selection in the flags
SELECTIONS = {name: n for n, name in enumerate(("DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"))}


@dataclass(frozen=True)
class Operand:
    """One operand; a constant's value is as wide as the operand's type."""

    kind: Kind = Kind.ABSENT
    index: int = 0
    width: int = 0  #: registers
    flags: int = 0
    value: int = 0

    def with_flags(self, flags: int) -> Operand:
        return Operand(self.kind, self.index, self.width, self.flags | flags, self.value)


ABSENT = Operand()
# Registers of each type, and how a number in the text becomes its bits.
WIDTH = dict.fromkeys(("f32", "i32", "u32", "b32", "m32", "f16", "bf16", "h16", "s16", "mix", "pkf", "k16", "sel"), 1)
WIDTH |= dict.fromkeys(("f64", "i64", "u64", "b64", "p64"), 2)
FLOATS = frozenset({"f32", "m32", "f16", "f64", "p64", "mix", "pkf"})  #: those that NEG and ABS apply to
HALVES = frozenset({"f16", "h16", "s16", "bf16"})
_NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "exec": (EXEC, 2), "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1), "m0": (M0, 1), "flat_scratch": (102, 2), "flat_scratch_lo": (102, 1),
    "flat_scratch_hi": (103, 1), "xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1),
}  # fmt: skip
_SPECIAL = {"src_vccz": 0, "src_execz": 1, "src_scc": 2, "vccz": 0, "execz": 1, "scc": 2}
_BASES = {
    "src_shared_base": SHARED_BASE, "src_private_base": PRIVATE_BASE,
    "src_shared_limit": SHARED_BASE | 0xFFFFFFFF, "src_private_limit": PRIVATE_BASE | 0xFFFFFFFF,
}  # fmt: skip
_ONE = re.compile(r"(?P<file>[vsa]|ttmp)(?P<first>\d{1,3})")
_MANY = re.compile(r"(?P<file>[vsa]|ttmp)\[(?P<first>\d{1,3}):(?P<last>\d{1,3})\]")
_INTEGER = re.compile(r"-?\d{1,10}")
_HEX = re.compile(r"0x[0-9a-f]{1,16}")
_LITERAL = re.compile(r"lit(?:64)?\((0x[0-9a-f]{1,16})\)")
_FLOAT = re.compile(r"-?\d{1,6}\.\d{1,20}(?:e[-+]?\d{1,3})?")
_LIMIT = {"v": 256, "a": 256, "s": 102, "ttmp": 16}
_TTMP = 108


def register(text: str) -> Operand | None:
    """Return the registers that `text` names, or None when it names none. Raises NotUnderstood: there are none such."""
    if text in _NAMED:
        index, width = _NAMED[text]
        return Operand(Kind.SGPR, index, width)
    match = _ONE.fullmatch(text) or _MANY.fullmatch(text)
    if match is None:
        return None
    file, first = match["file"], int(match["first"])
    last = int(match.groupdict().get("last") or first)
    if last < first or last >= _LIMIT[file] or last - first >= 32:
        raise NotUnderstood(f"there are no registers {text}")
    if file in "va":
        return Operand(Kind.VGPR, first + (256 if file == "a" else 0), last - first + 1)
    return Operand(Kind.SGPR, first + (_TTMP if file == "ttmp" else 0), last - first + 1)


def constant(text: str, type_: str) -> int | None:
    """Return the bits that a number in the text stands for in an operand of a type, or None for no number.

    Raises NotUnderstood where its meaning is not certain.
    """
    wide = WIDTH.get(type_) == 2
    if _INTEGER.fullmatch(text):
        value = int(text)
        if not -16 <= value <= 64:
            raise NotUnderstood(f"{text} is no inline constant")
        if type_ == "p64":
            return value & 0xFFFFFFFF
        return value & (0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF)
    literal = _LITERAL.fullmatch(text)
    if literal is not None or _HEX.fullmatch(text):
        value = int(literal[1] if literal else text, 16)
        if value > 0xFFFFFFFF:
            raise NotUnderstood(f"{text}: a literal has 32 bits")
        if type_ == "f64":  # the literal is the upper half
            return value << 32
        if type_ == "i64" and value >> 31:
            raise NotUnderstood(f"{text}: a literal for a signed operand of 64 bits")
        if type_ == "p64":
            raise NotUnderstood(f"{text}: a literal for a packed operand")
        return value
    if _FLOAT.fullmatch(text):
        return _float_bits(float(text), type_, text)
    return None


def _float_bits(value: float, type_: str, text: str) -> int:
    if type_ in ("f16", "pkf", "h16", "b16"):
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if type_ in ("f64", "b64", "u64", "i64"):
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    if type_ in ("f32", "m32", "b32", "u32", "i32", "p64"):
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    raise NotUnderstood(f"{text} for an operand of type {type_}")


def source(text: str, type_: str, roles: str) -> Operand:
    """Return a source operand. `roles`: "x" any, "c" scalar or constant, "k" constant. Raises NotUnderstood."""
    flags = 0
    inner = text
    if inner.startswith("sext(") and inner.endswith(")"):
        flags, inner = Flag.SEXT, inner[5:-1]
    value = None if flags else constant(inner, type_)
    if value is None and inner.startswith("neg(") and inner.endswith(")"):
        flags, inner = flags | Flag.NEG, inner[4:-1]
    if value is None and inner.startswith("-") and not _INTEGER.fullmatch(inner) and not _FLOAT.fullmatch(inner):
        flags, inner = flags | Flag.NEG, inner[1:]
    if value is None and inner.startswith("|") and inner.endswith("|") and len(inner) > 2:
        flags, inner = flags | Flag.ABS, inner[1:-1]
    if flags & (Flag.NEG | Flag.ABS) and type_ not in FLOATS:
        raise NotUnderstood(f"{text}: a sign on an operand of type {type_}")
    width = WIDTH[type_]
    value = constant(inner, type_) if value is None else value
    if value is not None:
        return Operand(Kind.CONSTANT, 0, width, flags, value)
    if roles == "k":
        raise NotUnderstood(f"{text} is no constant")
    if inner in _SPECIAL:
        return Operand(Kind.SPECIAL, _SPECIAL[inner], width, flags)
    if inner in _BASES:
        bits = _BASES[inner]
        return Operand(Kind.CONSTANT, 0, width, flags, bits if width == 2 else bits & 0xFFFFFFFF)
    found = register(inner)
    if found is None:
        raise NotUnderstood(f"operand {text!r}")
    if found.width != width:
        raise NotUnderstood(f"{text} has {found.width} registers, and the operand {width}")
    if roles == "c" and found.kind is Kind.VGPR:
        raise NotUnderstood(f"{text} where a scalar register is expected")
    return found.with_flags(flags)


def destination(text: str, type_: str, kind: Kind) -> Operand:
    """Return a destination operand. Raises NotUnderstood."""
    found = register(text)
    if found is None or found.kind is not kind or found.width != WIDTH[type_]:
        raise NotUnderstood(f"destination {text!r}")
    return found
