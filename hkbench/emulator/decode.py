"""From the text of an instruction to what the executor runs, by the signature of its mnemonic.

What is not understood raises NotUnderstood; `encode` makes an instruction of it that refuses when it is executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hkbench.emulator import memory_forms
from hkbench.emulator.memory_forms import SINK_ADDRESS
from hkbench.emulator.modifiers import Modifiers, split
from hkbench.emulator.operands import (
    ABSENT,
    EXEC,
    HALVES,
    SELECT_SHIFT,
    VCC,
    Flag,
    Kind,
    NotUnderstood,
    Operand,
    destination,
    source,
)
from hkbench.emulator.table import Row

SUFFIXES = ("_e64_dpp", "_dpp", "_sdwa", "_e32", "_e64")
#: Those whose handlers saturate integers, or clamp on their own.
_CLAMPED = re.compile(r"v_(add|sub|subrev)_(u32|i32)|v_pk_\w+|v_fma_mix\w*|v_dot\w+")
_FLOAT_RESULTS = ("f32", "f16", "f64")
_PACKED = ("p64", "pkf", "k16", "mix")
_MEMORY = ("load", "store", "atomic", "lds", "ds", "smem", "none")
_HWREG = re.compile(r"hwreg\((?:HW_REG_)?(\w+)(?:, (\d+), (\d+))?\)")
_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_WAIT_VM, _WAIT_LGKM = 8, 16
#: Which lanes of their results depend on an unknown register is found by trying: they cross lanes, or choose.
_TRIED = 4
_TRIES = re.compile(
    r"v_(read|write)lane_b32|v_readfirstlane_b32|v_permlane\w+|v_mfma\w+|ds_b?permute_b32|ds_swizzle_b32"
    r"|v_(cndmask|and|or|perm|bfi|and_or)_b32|s_(and|andn2|or|orn2)_b(32|64)"
)
#: cbsz and blgp -> registers that 32 elements take: fp8, bf8, fp6, bf6, fp4.
SMALL_FORMATS = {"0": 8, "1": 8, "2": 6, "3": 6, "4": 4}


@dataclass
class Decoded:
    """One instruction, decoded; `op` 0 refuses."""

    op: int = 0
    operands: int = 0
    slots: list[Operand] = field(default_factory=lambda: [ABSENT] * 6)
    reads: list[Operand] = field(default_factory=list)
    writes: list[Operand] = field(default_factory=list)
    modifiers: Modifiers = field(default_factory=Modifiers)
    flags: int = 0  #: Modifier of abi.h
    offset: int = 0
    offset1: int = 0
    branch: int | None = None  #: in words, from the instruction after this
    imm: int = 0
    flight: int = 0
    sink: int = 0


def base_name(mnemonic: str) -> tuple[str, str]:
    """Return the mnemonic without the suffix of its encoding, and that."""
    for suffix in SUFFIXES:
        if mnemonic.endswith(suffix):
            return mnemonic.removesuffix(suffix), suffix
    return mnemonic, ""


def decode(text: str, table: dict[str, Row]) -> Decoded:
    """Return what the executor needs of an instruction. Raises NotUnderstood."""
    mnemonic, _, rest = text.partition(" ")
    name, suffix = base_name(mnemonic)
    row = table.get(name)
    if row is None or name == "?":
        raise NotUnderstood(f"{name} is not known")
    tokens = row.signature
    first = tokens[0] if tokens else ""
    operands, words = split(rest.strip(), expects_words=first in ("waitcnt", "hwreg") or "hwreg" in tokens)
    out = Decoded(op=row.op)
    if first == "waitcnt":
        _waitcnt(out, rest.strip())
    elif first == "branch":
        _branch(out, tokens, operands, words)
    elif first in _MEMORY:
        form = memory_forms.understand(name, tokens, operands, words)
        out.slots, out.operands = form.slots, 6
        out.reads, out.writes = form.reads, form.writes
        out.flags, out.offset, out.offset1 = form.flags, form.offset, form.offset1
        out.flight, out.sink = form.flight, form.sink
    elif first == "imm":
        if len(operands) != 1 or words or not re.fullmatch(r"\d{1,5}|0x[0-9a-f]{1,4}", operands[0]):
            raise NotUnderstood("an immediate is expected")
        out.imm = int(operands[0], 0)
    elif first == "small":
        _small_matrix(out, tokens, operands, words)
    elif first.startswith("mfma"):
        _matrix(out, first, tokens, operands, words)
    else:
        _registers(out, name, suffix, tokens, operands, words)
    if out.modifiers.dpp or _TRIES.fullmatch(name):
        out.sink = out.sink & ~SINK_ADDRESS | _TRIED if name == "ds_swizzle_b32" else out.sink | _TRIED
    return out


def _waitcnt(out: Decoded, text: str) -> None:
    if text == "0":
        text = "vmcnt(0) lgkmcnt(0)"
    for word in text.split():
        match = _COUNTER.fullmatch(word)
        if match is None:
            raise NotUnderstood(f"wait for {word!r}")
        if match[1] == "vmcnt":
            out.flags, out.offset = out.flags | _WAIT_VM, int(match[2])
        elif match[1] == "lgkmcnt":
            out.flags, out.offset1 = out.flags | _WAIT_LGKM, int(match[2])


def _branch(out: Decoded, tokens: tuple[str, ...], operands: list[str], words: list[str]) -> None:
    if len(tokens) > 1 and tokens[1] == "=s:b64":
        out.slots[0] = destination(operands[0], "b64", Kind.SGPR)
        out.writes.append(out.slots[0])
        operands = operands[1:]
    if len(operands) != 1 or words or not re.fullmatch(r"\d{1,5}", operands[0]):
        raise NotUnderstood(f"branch to {', '.join(operands)!r}")
    distance = int(operands[0])
    out.branch = distance - 0x10000 if distance & 0x8000 else distance
    if "vcc" in tokens:
        out.reads.append(Operand(Kind.SGPR, VCC, 2))


def _matrix(out: Decoded, first: str, tokens: tuple[str, ...], operands: list[str], words: list[str]) -> None:
    if words:
        raise NotUnderstood(f"modifier {words[0]}")
    if len(operands) != 4:
        raise NotUnderstood(f"{len(operands)} operands, not 4")
    widths = (int(tokens[2]), int(tokens[1]), int(tokens[1]), int(tokens[2]))
    for n, (text, width) in enumerate(zip(operands, widths, strict=True)):
        operand = memory_forms.vector(
            text, width, constant_type="f64" if first == "mfma64" else "f32" if n == 3 else ""
        )
        if n == 0 and operand.kind is not Kind.VGPR:
            raise NotUnderstood(f"destination {text!r}")
        out.slots[n] = operand
        (out.reads if n else out.writes).append(operand)
    out.operands = 4


def _small_matrix(out: Decoded, tokens: tuple[str, ...], operands: list[str], words: list[str]) -> None:
    """Decode an MFMA of 8-, 6- or 4-bit floats: cbsz and blgp are the formats of A and B."""
    scaled = "scaled" in tokens
    formats = {"cbsz": 0, "blgp": 0}
    lists: list[str] = []
    for word in words:
        name, _, value = word.partition(":")
        if name in formats and value in SMALL_FORMATS:
            formats[name] = int(value)
        else:
            lists.append(word)
    modifiers = Modifiers.read(lists)
    low, high = modifiers.list_of("op_sel", 0), modifiers.list_of("op_sel_hi", 0)
    if modifiers != Modifiers(op_sel=modifiers.op_sel, op_sel_hi=modifiers.op_sel_hi) or (lists and not scaled):
        raise NotUnderstood(f"modifier {lists[0]}")
    if len(operands) != (6 if scaled else 4):
        raise NotUnderstood(f"{len(operands)} operands")
    widths = [SMALL_FORMATS[str(formats[name])] for name in ("cbsz", "blgp")]
    registers = (int(tokens[1]), widths[0], widths[1], int(tokens[1]))
    for n, (text, width) in enumerate(zip(operands[:4], registers, strict=True)):
        out.slots[n] = memory_forms.vector(text, width, constant_type="f32" if n == 3 else "")
        (out.reads if n else out.writes).append(out.slots[n])
    for n, text in enumerate(operands[4:], 4):
        out.slots[n] = source(text, "u32", "x")
        out.reads.append(out.slots[n])
    out.operands = len(operands)
    out.imm = formats["cbsz"] | formats["blgp"] << 3 | scaled << 10
    if scaled:
        out.imm |= low[0] << 6 | high[0] << 7 | low[1] << 8 | high[1] << 9


def _registers(
    out: Decoded, name: str, suffix: str, tokens: tuple[str, ...], operands: list[str], words: list[str]
) -> None:
    modifiers = out.modifiers = Modifiers.read(words)
    explicit = [token for token in tokens if ":" in token or token == "hwreg"]  # noqa: S105
    if len(operands) != len(explicit):
        raise NotUnderstood(f"{len(operands)} operands, not {len(explicit)}")
    sources = [n for n, token in enumerate(explicit) if token[0] in "xck"]
    types = [token.partition(":")[2] for token in explicit]
    at = 0
    for token, text, type_ in zip(explicit, operands, types, strict=True):
        if token == "hwreg":  # noqa: S105
            out.imm = _hwreg(text)
            continue
        _one(out, at, token, text, type_)
        at += 1
    out.operands = at
    _implicit(out, tokens)
    _check(name, modifiers, tokens, types, sources)
    modifiers.check_suffix(suffix)
    _select(out, modifiers, types, sources)
    _halves(out, name, types, sources)
    if modifiers.bitop3 is not None:
        out.imm = modifiers.bitop3
    elif "bitop3" in name:
        raise NotUnderstood("bitop3 without its table")


def _one(out: Decoded, at: int, token: str, text: str, type_: str) -> None:
    role, kind = token.partition(":")[0], token.partition(":")[0].lstrip("=+~")
    if role in ("x", "c", "k"):
        operand = source(text, type_, role)
        out.reads.append(operand)
    elif role in ("i", "n"):
        operand = _immediate16(text, signed=role == "i")
    elif role == "m":
        operand = source(text, "b64", "c")
        out.reads.append(operand)
    else:
        operand = destination(text, type_, Kind.VGPR if kind == "v" else Kind.SGPR)
        out.writes.append(operand)
        if role == "~v" and type_ in HALVES:
            operand = operand.with_flags(Flag.OP_SEL_HI)  # the upper half stays
        if role.startswith("+"):
            out.reads.append(operand)
    out.slots[at] = operand


def _immediate16(text: str, *, signed: bool) -> Operand:
    """Return an immediate of SOPK: 16 bits, however they are printed. Raises NotUnderstood."""
    if not re.fullmatch(r"-?\d{1,5}|0x[0-9a-f]{1,4}", text):
        raise NotUnderstood(f"immediate {text!r}")
    value = int(text, 0) & 0xFFFF
    if signed and value & 0x8000:
        value |= 0xFFFF0000
    return Operand(Kind.CONSTANT, 0, 1, 0, value)


def _implicit(out: Decoded, tokens: tuple[str, ...]) -> None:
    for token in tokens:
        if token == "vcc":  # noqa: S105
            out.reads.append(Operand(Kind.SGPR, VCC, 2))
        elif token == "=exec":  # noqa: S105
            out.writes.append(Operand(Kind.SGPR, EXEC, 2))


def _check(name: str, modifiers: Modifiers, tokens: tuple[str, ...], types: list[str], sources: list[int]) -> None:
    """Refuse modifiers that the handler would pass over."""
    scalar = name.startswith("s_")
    if scalar and modifiers != Modifiers():
        raise NotUnderstood("a modifier on a scalar instruction")
    if modifiers.omod:
        raise NotUnderstood("an output modifier (it counts only where denormals are flushed)")
    floating = types and tokens[0][1:3] == "v:" and types[0] in _FLOAT_RESULTS
    if modifiers.clamp and not floating and not _CLAMPED.fullmatch(name):
        raise NotUnderstood("clamp")
    plain = {"f32", "m32", "i32", "u32", "b32", "f16", "h16", "s16", "bf16"}
    if modifiers.dpp and (not sources or sources[0] != 1 or not set(types) - {"b64"} <= plain or "x:b64" in tokens):
        raise NotUnderstood("DPP on this instruction")
    if modifiers.dpp and tokens[0].startswith("=s"):
        raise NotUnderstood("DPP on this instruction")
    if (modifiers.neg_lo or modifiers.neg_hi) and not any(type_ in _PACKED for type_ in types):
        raise NotUnderstood("neg_lo or neg_hi")


def _select(out: Decoded, modifiers: Modifiers, types: list[str], sources: list[int]) -> None:
    """Put op_sel and its like into the operands' flags."""
    packed = any(types[n] in _PACKED for n in sources)
    count = len(sources)
    low = modifiers.list_of("op_sel", 0)
    high = modifiers.list_of("op_sel_hi", 0 if "mix" in types else 1 if packed else 0)
    negated, negated_high = modifiers.list_of("neg_lo", 0), modifiers.list_of("neg_hi", 0)
    given = modifiers.op_sel or ()
    if len(given) > count + 1 or (packed and len(given) > count):
        raise NotUnderstood(f"op_sel of {len(given)}")
    for k, n in enumerate(sources):
        flags = 0
        if packed:
            flags |= (
                Flag.OP_SEL * low[k] | Flag.OP_SEL_HI * high[k] | Flag.NEG * negated[k] | Flag.NEG_HI * negated_high[k]
            )
            if (
                types[n] in ("p64", "pkf")
                and flags & Flag.OP_SEL_HI
                and out.slots[n].kind is Kind.CONSTANT
                and out.slots[n].value
            ):
                raise NotUnderstood("a constant as the upper half of a packed operand")
            if types[n] == "k16" and flags & (Flag.NEG | Flag.NEG_HI):
                raise NotUnderstood("a sign on an integer")
        elif low[k]:
            if types[n] not in HALVES and types[n] != "sel":
                raise NotUnderstood("op_sel on an operand of 32 bits")
            flags |= Flag.OP_SEL
        if modifiers.selections.get(k):
            flags |= modifiers.selections[k] << SELECT_SHIFT
        out.slots[n] = out.slots[n].with_flags(flags)
    if not packed and len(given) > count and given[count]:
        if types[0] not in HALVES and types[0] != "sel":
            raise NotUnderstood("op_sel on a destination of 32 bits")
        out.slots[0] = out.slots[0].with_flags(Flag.OP_SEL)


def _halves(out: Decoded, name: str, types: list[str], sources: list[int]) -> None:
    """Leave out of the reads what op_sel and op_sel_hi keep an operation on pairs of registers from reading."""
    for k, n in enumerate(sources):
        operand = out.slots[n]
        if types[n] != "p64" or operand.kind not in (Kind.VGPR, Kind.SGPR):
            continue
        low, high = bool(operand.flags & Flag.OP_SEL), bool(operand.flags & Flag.OP_SEL_HI)
        if name == "v_pk_mov_b32":  # each source gives one half of the result
            high = low
        if low is high:
            out.reads[k] = Operand(operand.kind, operand.index + low, 1)


def _hwreg(text: str) -> int:
    match = _HWREG.fullmatch(text)
    names = {"MODE": 1, "1": 1}
    if match is None or match[1] not in names:
        raise NotUnderstood(f"hardware register {text}")
    offset, size = int(match[2] or 0), int(match[3] or 32)
    if offset > 31 or not 1 <= size <= 32:
        raise NotUnderstood(f"hardware register {text}")
    return names[match[1]] | offset << 6 | (size - 1) << 11
