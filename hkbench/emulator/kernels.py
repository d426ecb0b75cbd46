"""Kernels of a code object: what their descriptors and the metadata say, and the block of arguments of a launch."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from hkbench.emulator.elf import CodeObject, Value
from hkbench.emulator.listing import BadCodeObject
from hkbench.emulator.operands import PRIVATE_BASE, SHARED_BASE

_DESCRIPTOR = struct.Struct("<IIII q 20s IIIHHI")
_KERNARG_LIMIT = 1 << 16
_ROUND_AND_DENORMALS = 0xFF  #: of MODE
_DX10_CLAMP, _IEEE = 1 << 8, 1 << 9  #: of MODE
_DYNAMIC_STACK = 16 << 10  #: bytes of scratch a lane for calls whose depth the compiler does not know


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel."""

    offset: int
    size: int
    kind: str  #: "by_value", "global_buffer", "hidden_block_count_x"
    name: str

    @property
    def hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Kernel:
    """What a launch has to know of a kernel. Names are mangled."""

    name: str
    entry: int  #: address in the code object
    kernarg_size: int
    lds_bytes: int  #: static
    scratch_bytes: int  #: of a lane
    vgprs: int
    max_workgroup_size: int
    arguments: tuple[Argument, ...]
    mode: int  #: MODE at the start: rounding in bits 0 to 3, denormals in 4 to 7, DX10_CLAMP, IEEE
    user_sgprs: int
    properties: int  #: which pointers the first SGPRs get
    ids: int  #: bits 0 to 2: workgroup ids in SGPRs; bit 3: workgroup info


def kernels(code_object: CodeObject) -> dict[str, Kernel]:
    """Return the kernels by their mangled names. Raises BadCodeObject."""
    listed = code_object.metadata.get("amdhsa.kernels")
    found = {}
    for fields in listed if isinstance(listed, list) else []:
        if isinstance(fields, dict):
            kernel = _kernel(code_object, fields)
            found[kernel.name] = kernel
    return found


def _kernel(code_object: CodeObject, fields: dict[Value, Value]) -> Kernel:
    name = fields.get(".name")
    symbol = fields.get(".symbol")
    if not isinstance(name, str) or not isinstance(symbol, str) or symbol not in code_object.symbols:
        raise BadCodeObject(f"kernel {name!r} has no descriptor")
    at = code_object.symbols[symbol]
    lds, scratch, _, _, entry, _, _, rsrc1, rsrc2, properties, _, _ = _DESCRIPTOR.unpack(_bytes(code_object, at))
    numbers = {key: value for key, value in fields.items() if isinstance(value, int)}
    kernarg_size = numbers.get(".kernarg_segment_size", 0)
    if not 0 <= kernarg_size <= _KERNARG_LIMIT:
        raise BadCodeObject(f"kernel {name} wants {kernarg_size} bytes of arguments")
    if fields.get(".wavefront_size", 64) != 64:
        raise BadCodeObject(f"kernel {name} is not for waves of 64")
    dynamic = bool(fields.get(".uses_dynamic_stack", False))
    return Kernel(
        name=name,
        entry=at + entry,
        kernarg_size=kernarg_size,
        lds_bytes=lds,
        scratch_bytes=scratch + (_DYNAMIC_STACK if dynamic else 0),
        vgprs=numbers.get(".vgpr_count", 0),
        max_workgroup_size=numbers.get(".max_flat_workgroup_size", 1024),
        arguments=_arguments(fields.get(".args"), kernarg_size),
        mode=rsrc1 >> 12 & _ROUND_AND_DENORMALS | (rsrc1 >> 21 & 1) * _DX10_CLAMP | (rsrc1 >> 23 & 1) * _IEEE,
        user_sgprs=rsrc2 >> 1 & 31,
        properties=properties & 0x7F,
        ids=rsrc2 >> 7 & 15,
    )


def _bytes(code_object: CodeObject, at: int) -> bytes:
    for segment in code_object.segments:
        if segment.address <= at and at + 64 <= segment.address + len(segment.content):
            return segment.content[at - segment.address : at - segment.address + 64]
    raise BadCodeObject("a kernel's descriptor lies outside of it")


def _arguments(listed: Value, kernarg_size: int) -> tuple[Argument, ...]:
    found = []
    for fields in listed if isinstance(listed, list) else []:
        if not isinstance(fields, dict):
            continue
        offset, size = fields.get(".offset"), fields.get(".size")
        kind, name = fields.get(".value_kind"), fields.get(".name")
        if not isinstance(offset, int) or not isinstance(size, int) or not isinstance(kind, str):
            raise BadCodeObject("an argument without offset, size or kind")
        if not 0 <= offset <= offset + size <= kernarg_size:
            raise BadCodeObject("an argument lies outside of the block of arguments")
        found.append(Argument(offset, size, kind, name if isinstance(name, str) else ""))
    return tuple(found)


def kernarg_block(kernel: Kernel, explicit: bytes, hidden: Mapping[str, int]) -> bytearray:
    """Return the block of arguments: those given, and the hidden ones. Raises ValueError: too few are given."""
    ends = [a.offset + a.size for a in kernel.arguments if not a.hidden]
    wanted = max(ends, default=0)
    if len(explicit) < wanted:
        raise ValueError(f"{kernel.name} takes {wanted} bytes of arguments, not {len(explicit)}")
    # Whole pieces of 16 bytes: the block is aligned so, and the compiler may read the last of them at once.
    block = bytearray(max(-(-kernel.kernarg_size // 16) * 16, 16))
    block[: min(len(explicit), kernel.kernarg_size)] = explicit[: kernel.kernarg_size]
    for argument in kernel.arguments:
        if argument.hidden:
            value = hidden.get(argument.kind.removeprefix("hidden_"), 0)
            mask = (1 << 8 * argument.size) - 1
            block[argument.offset : argument.offset + argument.size] = (value & mask).to_bytes(argument.size, "little")
    return block


def hidden_values(
    grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_lds: int, queue: int
) -> dict[str, int]:
    """Return what the hidden arguments are, by name. What is not there (printf, heap, host calls) is a null pointer."""
    values = {"dynamic_lds_size": dynamic_lds, "queue_ptr": queue}
    values |= {"private_base": PRIVATE_BASE >> 32, "shared_base": SHARED_BASE >> 32}
    values["grid_dims"] = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    for axis, blocks, threads in zip("xyz", grid, block, strict=True):
        values |= {f"block_count_{axis}": blocks, f"group_size_{axis}": threads, f"remainder_{axis}": 0}
    return values
