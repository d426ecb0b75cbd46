"""An engine of the emulated device that executes nothing: it reads what kernels there are and keeps the launches."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hkbench.emulator.arena import Range
from hkbench.emulator.device import Ran
from hkbench.emulator.link import LaunchKernel
from hkbench.emulator.report import CallOptions, Told


@dataclass(frozen=True)
class Argument:
    offset: int
    size: int
    hidden: bool = False


@dataclass(frozen=True)
class Kernel:
    lds_bytes: int = 0
    max_workgroup_size: int = 1024
    vgprs: int = 8
    arguments: Sequence[Argument] = ()
    kernarg_size: int = 256


@dataclass(frozen=True)
class Module:
    kernels: Mapping[str, Kernel]


@dataclass
class Listening:
    """`came` is what each launch comes to; `kernels` what each code object holds, where it is no ELF file."""

    came: Ran = field(default_factory=lambda: Ran(refusal=Told(kind="unsupported", message="refused")))
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    launches: list[LaunchKernel] = field(default_factory=list)
    ranges: dict[int, tuple[int, str]] = field(default_factory=dict)
    options: list[CallOptions] = field(default_factory=list)
    made: array[int] = field(default_factory=lambda: array("Q"))
    begun: int = 0
    variables: dict[str, bytearray] = field(default_factory=dict)

    def load(self, code: bytes) -> Module:
        if not code.startswith(b"\x7fELF"):
            if not self.kernels:
                raise ValueError("no code object")
            return Module(self.kernels)
        return Module(dict(_kernels(code)))

    def add(self, memory: Range, name: str) -> None:
        self.ranges[memory.begin] = (memory.size, name)

    def remove(self, memory: Range) -> None:
        del self.ranges[memory.begin]

    def write(self, _module: Module, variable: str, offset: int, data: bytes) -> None:
        known = self.variables.get(variable, bytearray())
        if offset + len(data) > len(known):
            raise ValueError(variable)
        known[offset : offset + len(data)] = data

    def read(self, _module: Module, variable: str, offset: int, size: int) -> bytes:
        known = self.variables.get(variable, bytearray())
        if offset + size > len(known):
            raise ValueError(variable)
        return bytes(known[offset : offset + size])

    def begin(self) -> None:
        self.begun += 1

    def kept(self, place: Range) -> int:
        return place.size

    def host_bytes(self) -> int:
        return sum(self.made[1::2])

    def host_made(self) -> array[int]:
        return self.made

    def numbers(self, place: Range) -> array[int]:
        return array("Q", (place.begin, place.size))

    def left(self, place: Range) -> array[int]:
        return array("Q", (place.begin, 32))

    def launch(self, _module: Module, request: LaunchKernel, options: CallOptions) -> Ran:
        self.launches.append(request)
        self.options.append(options)
        return self.came


def _kernels(code: bytes) -> Iterator[tuple[str, Kernel]]:
    """Read the metadata of a code object: the note of the vendor AMDGPU, in MessagePack."""
    at = code.index(b"AMDGPU\0\0") + 8
    metadata, _ = _unpacked(code, at)
    for one in metadata["amdhsa.kernels"]:
        arguments = [
            Argument(argument[".offset"], argument[".size"], argument[".value_kind"].startswith("hidden_"))
            for argument in one.get(".args", ())
        ]
        yield (
            one[".name"],
            Kernel(
                one[".group_segment_fixed_size"], one[".max_flat_workgroup_size"], one[".vgpr_count"], arguments,
                one[".kernarg_segment_size"],
            ),
        )  # fmt: skip


def _unpacked(data: bytes, at: int) -> tuple[Any, int]:
    code, at = data[at], at + 1
    if code < 0x80:
        return code, at
    if code < 0x90:
        return _mapping(data, at, code & 15)
    if code < 0xA0:
        return _sequence(data, at, code & 15)
    if code < 0xC0:
        return data[at : at + (code & 31)].decode(), at + (code & 31)
    if code in (0xC2, 0xC3):
        return code == 0xC3, at
    forms = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    lengths = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
    form = forms.get(code) or lengths[code]
    (number,) = struct.unpack_from(form, data, at)
    at += struct.calcsize(form)
    if code in forms:
        return number, at
    if code <= 0xDB:
        return data[at : at + number].decode(), at + number
    return (_sequence if code <= 0xDD else _mapping)(data, at, number)


def _sequence(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(count):
        value, at = _unpacked(data, at)
        found.append(value)
    return found, at


def _mapping(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    found = {}
    for _ in range(count):
        key, at = _unpacked(data, at)
        found[key], at = _unpacked(data, at)
    return found, at
