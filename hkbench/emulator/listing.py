"""Read what `llvm-objdump -d -l` prints: one line an instruction, with its address and its place in the source."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.toolchain.hip import find_hip

OBJDUMP = "llvm-objdump"
MC = "llvm-mc"
LISTING_LIMIT = 256 << 20  #: bytes
ADDRESS_LIMIT = 256 << 20  #: of code objects: they lie at their beginning
MAX_INSTRUCTIONS = 1 << 20
SECONDS = 120.0
_ADDRESSED = re.compile(r"\t(?P<text>[^/]*?)\s*// (?P<address>[0-9A-F]{12}):(?P<words>(?: [0-9A-F]{8})+)(?: <.*>)?")
_PLACE = re.compile(r"; (?P<file>.+):(?P<line>\d+)(?: \(discriminator \d+\))?")
_FUNCTION = re.compile(r"(?P<address>[0-9a-f]{16}) <(?P<name>.+)>:")


class BadCodeObject(Exception):
    """The code object cannot be read. The message says why."""


@dataclass(frozen=True)
class Line:
    """One instruction as it was printed."""

    address: int  #: in the code object
    text: str
    words: tuple[int, ...]  #: its machine code
    place: str  #: "FILE:LINE" of the source; "" where it is not known
    function: str  #: mangled


@cache
def tool(name: str) -> Path:
    """Return one of LLVM's tools beside the HIP compiler. Raises ToolchainUnavailable."""
    toolchain = find_hip()
    for folder in (toolchain.root / "llvm" / "bin", toolchain.root / "lib" / "llvm" / "bin"):
        if (folder / name).is_file():
            return folder / name
    asked = [str(toolchain.hipcc), f"-print-prog-name={name}"]
    named = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    if not Path(named).is_absolute():
        raise ToolchainUnavailable(f"{name} is not installed beside the HIP compiler (LLVM's tools have it)")
    return Path(named)


def disassemble(code_object: bytes, objdump: Path | None = None) -> list[Line]:
    """Return the instructions of a code object.

    Raises:
        BadCodeObject: objdump refuses it, takes too long or prints too much.
        ToolchainUnavailable: there is no objdump.
    """
    program = objdump or tool(OBJDUMP)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code_object"
        file.write_bytes(code_object)
        command = [str(program), "-d", "-z", "-l", str(file)]
        with (Path(folder) / "listing").open("w+b") as printed:
            limited = ["/bin/sh", "-c", f'ulimit -c 0; ulimit -f {LISTING_LIMIT >> 9}; exec "$@"', "sh", *command]
            try:
                done = subprocess.run(
                    limited,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.PIPE,
                    timeout=SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise BadCodeObject(f"{OBJDUMP} was not done in {SECONDS:g} s") from error
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").strip()[:200]
                raise BadCodeObject(f"{OBJDUMP} ended with {done.returncode}: {said}")
            printed.seek(0)
            text = printed.read().decode("utf-8", "replace")
    return parse(text)


def parse(text: str) -> list[Line]:
    """Return the instructions in objdump's output. Raises BadCodeObject: they lie too far apart."""
    lines: list[Line] = []
    place = function = ""
    for line in text.split("\n"):
        if line.startswith("\t"):
            match = _ADDRESSED.fullmatch(line)
            if match is not None:
                if int(match["address"], 16) >= ADDRESS_LIMIT:
                    raise BadCodeObject(f"it has an instruction at address {match['address']}")
                if len(lines) >= MAX_INSTRUCTIONS:
                    raise BadCodeObject(f"it has more than {MAX_INSTRUCTIONS} instructions")
                words = tuple(int(word, 16) for word in match["words"].split())
                lines.append(Line(int(match["address"], 16), match["text"].strip(), words, place, function))
        elif line.startswith(";"):
            found = _PLACE.fullmatch(line)
            if found is not None:
                place = f"{found['file']}:{found['line']}"
        else:
            named = _FUNCTION.fullmatch(line)
            if named is not None:
                function, place = named["name"], ""
    return lines
