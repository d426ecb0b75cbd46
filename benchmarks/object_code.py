"""The machine code of an extension's own functions, in a form that can be compared between two builds."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Functions of headers and of the binding: which of them a compiler emits, inlines or splits is up to each build.
_OTHERS = re.compile(
    r"^(PyInit_|pybind11|_GLOBAL_|std::|c10::|at::|torch::|caffe2::|Py[A-Z]|__gnu_cxx|operator|__device_stub|___nv|__nv|__cuda)"
    r"|^[\w:&*<> ]*\bstd::\w+|pybind11::|typeinfo|vtable"
)
_LABEL = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_CONSTANT = re.compile(r"\.(LC\d+|rodata\S*)([+-]0x\w+)?")
_PADDING = re.compile(r"(data16 |cs |xchg +%ax,%ax|nop)")


def own_functions(object_file: Path) -> dict[str, list[str]]:
    """Instructions of each function that the extension's source defines itself, by demangled name.

    Left out: where constants lie in their section, and what fills the space to the next function.
    Raises CalledProcessError: the file is not an object that objdump reads.
    """
    shown = subprocess.run(
        ["objdump", "-dr", "--no-show-raw-insn", "-C", str(object_file)], capture_output=True, text=True, check=True
    )
    functions: dict[str, list[str]] = {}
    current: list[str] = []
    for line in shown.stdout.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            current = [] if _OTHERS.search(label[1]) else functions.setdefault(label[1], [])
        elif "\t" in line:
            current.append(_instruction(line))
    return {name: _unpadded(code) for name, code in functions.items()}


def _instruction(line: str) -> str:
    """Without the address of a jump's target, which stands beside its name, and without comments."""
    if "R_X86_64" in line:
        return _CONSTANT.sub(".constant", line.split(":", 1)[1].strip())
    return re.sub(r"\s*#.*", "", re.sub(r"\b[0-9a-f]+ <", "<", line.split("\t", 1)[1].strip()))


def _unpadded(code: list[str]) -> list[str]:
    end = len(code)
    while end and _PADDING.match(code[end - 1]):
        end -= 1
    return code[:end]


def differences(stock: dict[str, list[str]], quick: dict[str, list[str]]) -> list[str]:
    """Names of functions whose code is not the same, or that only one of two builds has."""
    return sorted(name for name in stock.keys() | quick.keys() if stock.get(name) != quick.get(name))


_CUDA = 190  #: e_machine of NVIDIA's device code
_LOCAL = re.compile(r"(\d+)(?=_GLOBAL__N_|_INTERNAL_)")


def device_functions(object_file: Path) -> dict[str, list[str]]:
    """Machine code of each kernel and device function in an object by nvcc, as lines of 16 bytes in hexadecimal.

    Names are mangled, without what nvcc puts into them for one file. The object has to be made with `--no-compress`;
    of one that holds no device code there is none.
    """
    content = object_file.read_bytes()
    found = {}
    for name, image in _sections(content):
        if name == ".nv_fatbin":
            for at in (match.start() for match in re.finditer(b"\x7fELF\x02", image)):
                if struct.unpack_from("<H", image, at + 18)[0] == _CUDA:
                    flags = struct.unpack_from("<I", image, at + 48)[0]
                    for section, code in _sections(image[at:]):
                        if section.startswith(".text."):
                            lines = [code[line : line + 16].hex() for line in range(0, len(code), 16)]
                            found[f"device code {flags:#x}: {_without_file(section.removeprefix('.text.'))}"] = lines
    return found


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents in a 64-bit little-endian ELF file. Raises struct.error: it is none."""
    table, size, count, names = struct.unpack_from("<Q", elf, 40) + struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * number) for number in range(count)]
    for name, kind, _, _, offset, length in headers:
        begin = headers[names][4] + name
        content = b"" if kind == 8 else elf[offset : offset + length]  # 8: nothing in the file
        yield elf[begin : elf.index(b"\0", begin)].decode(), content


def _without_file(name: str) -> str:
    """Return a mangled name in which each part that nvcc made from the file's name is cut."""
    found = _LOCAL.search(name)
    if found is None:
        return name
    return name[: found.start()] + "(local)" + _without_file(name[found.end() + int(found[1]) :])
