"""Device code as compilers put it into a file, made by hand: NVIDIA's containers, and Clang's bundles for AMD."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_ALIGNMENT = 8
MACHINE_CODE = 2


def entry(code: bytes, flags: int = 0, unpacked: int = 0, kind: int = MACHINE_CODE) -> bytes:
    """Return one entry; `flags` say how its code is packed, `unpacked` how long it is otherwise."""
    padded = -(-len(code) // _ALIGNMENT) * _ALIGNMENT
    head = struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, padded, len(code), 0, 0, 90, 0, 0, flags, 0, unpacked)
    return head + code.ljust(padded, b"\0")


def container(*entries: bytes) -> bytes:
    """Return a container of these entries."""
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, sum(map(len, entries))) + b"".join(entries)


def bundle(**images: bytes) -> bytes:
    """Return an offload bundle with these images, target -> content, laid out one after the other."""
    entries = list(images.items())
    at = len(MAGIC) + 8 + sum(24 + len(target) for target, _ in entries)
    header = MAGIC + struct.pack("<Q", len(entries))
    for target, image in entries:
        header += struct.pack("<QQQ", at, len(image), len(target)) + target.encode()
        at += len(image)
    return header + b"".join(image for _, image in entries)


def kernels(folder: Path, *names: str) -> bytes:
    """Return a container with a kernel of each name, compiled for the host."""
    source, made = folder / "kernels.cpp", folder / "kernels.o"
    source.write_text("".join(f'extern "C" int {name}() {{ return 1; }}\n' for name in names))
    subprocess.run(["g++", "-c", "-ffunction-sections", str(source), "-o", str(made)], check=True)
    return container(entry(made.read_bytes()))


def library(path: Path, source: str, device_code: bytes = b"") -> Path:
    """Compile a shared library that carries device code between the symbols `begin` and `end`."""
    carried = path.with_suffix(".fatbin")
    carried.write_bytes(device_code)
    section = f"""
    asm(R"(.pushsection .nv_fatbin,"a"
    .balign 8
    .globl begin
    begin: .incbin "{carried}"
    .globl end
    end: .popsection)");
    """
    text = path.with_suffix(".cpp")
    as_large = f"char padding[{1 << 17}] = {{1}};\n"  # as what computes something on a GPU
    text.write_text(as_large + source + (section if device_code else ""))
    subprocess.run(["g++", "-shared", "-fPIC", "-O2", str(text), "-o", str(path)], check=True)
    return path
