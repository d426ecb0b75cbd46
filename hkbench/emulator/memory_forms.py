"""The forms of memory instructions: which operand is the address, which the data.

Slots, as the executor's handlers have them: 0 destination or data to store, 1 vector address, 2 scalar address,
resource or (LDS) first data, 3 data of an atomic operation or (LDS) second data, 4 scalar offset of a buffer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hkbench.emulator.operands import ABSENT, M0, Kind, NotUnderstood, Operand, constant, register

OFFEN, LDS, SC0 = 1, 2, 4
VM_LOAD, VM_STORE, FLAT_ANY, LDS_ANY, SMEM_LOAD, LDS_DMA = range(1, 7)
SINK_ADDRESS, SINK_DATA = 1, 2
_OFFSET = re.compile(r"(offset|offset0|offset1):(-?\d{1,8}|0x[0-9a-f]{1,6}|swizzle\(.*\))")
_SWIZZLE = re.compile(r"swizzle\((\w+),\s*(.*)\)")


@dataclass
class Form:
    """A memory instruction's operands in their slots."""

    slots: list[Operand] = field(default_factory=lambda: [ABSENT] * 6)
    reads: list[Operand] = field(default_factory=list)
    writes: list[Operand] = field(default_factory=list)
    flags: int = 0
    offset: int = 0
    offset1: int = 0
    flight: int = 0
    sink: int = SINK_ADDRESS


def vector(text: str, width: int, constant_type: str = "") -> Operand:
    """Return vector registers, or a constant where a type for it is given. Raises NotUnderstood."""
    found = register(text)
    if found is None and constant_type:
        value = constant(text, constant_type)
        if value is not None:
            return Operand(Kind.CONSTANT, 0, width, 0, value)
    if found is None or found.kind is not Kind.VGPR or found.width != width:
        raise NotUnderstood(f"operand {text!r}: {width} vector registers are expected")
    return found


def scalar(text: str, width: int) -> Operand:
    """Return scalar registers. Raises NotUnderstood."""
    found = register(text)
    if found is None or found.kind is not Kind.SGPR or found.width != width:
        raise NotUnderstood(f"operand {text!r}: {width} scalar registers are expected")
    return found


def understand(name: str, tokens: tuple[str, ...], operands: list[str], words: list[str]) -> Form:
    """Return the form of a memory instruction. Raises NotUnderstood."""
    form = Form()
    _modifiers(form, name, words)
    kind = tokens[0]
    if kind == "none":
        if operands:
            raise NotUnderstood(f"operand {operands[0]!r}")
        form.sink = 0
    elif kind == "smem":
        _smem(form, tokens, list(operands))
    elif kind == "ds":
        _ds(form, tokens, list(operands))
    else:
        _vector_memory(form, name, tokens, list(operands))
    return form


def _modifiers(form: Form, name: str, words: list[str]) -> None:
    cached = {"sc0": SC0 if "atomic" in name else 0, "sc1": 0, "nt": 0}
    for word in words:
        match = _OFFSET.fullmatch(word.strip())
        if match is not None:
            value = _swizzle(match[2]) if match[2].startswith("swizzle") else int(match[2], 0)
            if match[1] == "offset1":
                form.offset1 = value
            else:
                form.offset = value
        elif word in cached:
            form.flags |= cached[word]
        elif word == "offen" and name.startswith("buffer_"):
            form.flags |= OFFEN
        elif word == "lds" and name.startswith("buffer_load_"):
            form.flags |= LDS
        else:
            raise NotUnderstood(f"modifier {word}")


def _swizzle(text: str) -> int:
    match = _SWIZZLE.fullmatch(text)
    arguments = [part.strip() for part in match[2].split(",")] if match else []
    if match is None:
        raise NotUnderstood(text)
    if match[1] == "QUAD_PERM" and len(arguments) == 4:
        return 0x8000 | sum((int(value) & 3) << 2 * n for n, value in enumerate(arguments))
    if match[1] == "BITMASK_PERM" and len(arguments) == 1:
        mask = arguments[0].strip('"')
        if not re.fullmatch("[01pi]{5}", mask):
            raise NotUnderstood(text)
        bits = [mask[4 - n] for n in range(5)]
        and_mask = sum(1 << n for n, bit in enumerate(bits) if bit in "pi")
        or_mask = sum(1 << n for n, bit in enumerate(bits) if bit == "1")
        xor_mask = sum(1 << n for n, bit in enumerate(bits) if bit == "i")
        return and_mask | or_mask << 5 | xor_mask << 10
    if match[1] == "SWAP" and len(arguments) == 1:
        return 0x1F | int(arguments[0]) << 10
    if match[1] == "REVERSE" and len(arguments) == 1:
        return 0x1F | (int(arguments[0]) - 1) << 10
    if match[1] == "BROADCAST" and len(arguments) == 2:
        size, lane = int(arguments[0]), int(arguments[1])
        return (0x1F & ~(size - 1)) | lane << 5
    raise NotUnderstood(text)


def _next(operands: list[str], what: str) -> str:
    if not operands:
        raise NotUnderstood(f"there is no {what}")
    return operands.pop(0)


def _done(operands: list[str]) -> None:
    if operands:
        raise NotUnderstood(f"operand {operands[0]!r}")


def _smem(form: Form, tokens: tuple[str, ...], operands: list[str]) -> None:
    form.flight = SMEM_LOAD
    form.slots[0] = scalar(_next(operands, "destination"), int(tokens[1].partition(":")[2]))
    form.writes.append(form.slots[0])
    if tokens[2] != "0":
        form.slots[1] = scalar(_next(operands, "base"), int(tokens[2]))
        text = _next(operands, "offset")
        if re.fullmatch(r"-?0x[0-9a-f]{1,6}|\d{1,3}", text):
            form.offset += int(text, 0)
        else:
            form.slots[2] = scalar(text, 1)
    form.reads += [form.slots[1], form.slots[2]]
    _done(operands)


def _ds(form: Form, tokens: tuple[str, ...], operands: list[str]) -> None:
    form.flight = LDS_ANY
    for token in tokens[1:]:
        role, _, width = token.partition(":")
        operand = vector(_next(operands, "operand"), int(width or 1))
        form.slots[{"=d": 0, "~d": 0, "a": 1, "x": 2, "y": 3}[role]] = operand
        (form.writes if role in ("=d", "~d") else form.reads).append(operand)
    _done(operands)


def _vector_memory(form: Form, name: str, tokens: tuple[str, ...], operands: list[str]) -> None:
    space, kind = name.partition("_")[0], tokens[0]
    direct = kind == "lds" or bool(form.flags & LDS)
    returns = kind == "load" or (kind == "atomic" and bool(form.flags & SC0))
    data_first = space == "buffer"
    if returns and not direct and not (data_first and kind == "atomic"):
        form.slots[0] = vector(_next(operands, "destination"), int(tokens[1].partition(":")[2]))
        form.writes.append(form.slots[0])
    if data_first:
        _data(form, kind, tokens, operands)
        if kind == "atomic" and returns:  # what was there replaces the data
            form.slots[0] = Operand(Kind.VGPR, form.slots[3].index, int(tokens[1].partition(":")[2]))
            form.writes.append(form.slots[0])
        _buffer_address(form, operands)
    elif kind in ("store", "atomic"):
        _vector_address(form, space, operands)
        _data(form, kind, tokens, operands)
        _scalar_address(form, space, operands)
    else:
        _vector_address(form, space, operands)
        _scalar_address(form, space, operands)
    _done(operands)
    if space == "scratch" or kind in ("load", "lds"):
        form.sink = SINK_ADDRESS
    else:
        form.sink = SINK_ADDRESS | SINK_DATA
    form.flight = LDS_DMA if direct else FLAT_ANY if space == "flat" else VM_LOAD if returns else VM_STORE
    if direct:
        form.reads.append(Operand(Kind.SGPR, M0, 1))
    form.reads += [form.slots[1], form.slots[2], form.slots[3], form.slots[4]]


def _data(form: Form, kind: str, tokens: tuple[str, ...], operands: list[str]) -> None:
    if kind == "store":
        form.slots[0] = vector(_next(operands, "data"), int(tokens[1].partition(":")[2]))
        form.reads.append(form.slots[0])
    elif kind == "atomic":
        role, _, width = tokens[2].partition(":")
        form.slots[3] = vector(_next(operands, "data"), int(width) * len(role))


def _vector_address(form: Form, space: str, operands: list[str]) -> None:
    text = _next(operands, "address")
    if space == "scratch" and text == "off":
        return
    found = register(text)
    if found is None or found.kind is not Kind.VGPR or found.width > 2 or (space == "flat" and found.width != 2):
        raise NotUnderstood(f"address {text!r}")
    form.slots[1] = found


def _scalar_address(form: Form, space: str, operands: list[str]) -> None:
    if space == "flat":
        return
    text = _next(operands, "scalar address")
    if text == "off":
        if space == "global" and form.slots[1].width != 2:
            raise NotUnderstood("an address of 32 bits without a base")
        return
    if space == "global" and form.slots[1].width != 1:
        raise NotUnderstood("an address of 64 bits and a base")
    form.slots[2] = scalar(text, 1 if space == "scratch" else 2)


def _buffer_address(form: Form, operands: list[str]) -> None:
    text = _next(operands, "address")
    if form.flags & OFFEN:
        form.slots[1] = vector(text, 1)
    elif text != "off":
        # Without `offen` the address is printed as `off`, or left out before the resource.
        raise NotUnderstood(f"address {text!r}")
    form.slots[2] = scalar(_next(operands, "resource"), 4)
    offset = _next(operands, "offset")
    value = constant(offset, "u32")
    form.slots[4] = Operand(Kind.CONSTANT, 0, 1, 0, value) if value is not None else scalar(offset, 1)
