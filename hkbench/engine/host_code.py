"""The machine code of a library's own functions for the CPU, as the disassembler of binutils or LLVM prints it.

An extension of PyTorch has thousands of functions, nearly all of them of headers: instances of pybind11, c10, at, std.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.profile.names import qualified
from hkbench.toolchain.code_object import NotInspected, printed_by
from hkbench.toolchain.disassembly import without_head
from hkbench.toolchain.programs import find_program

MAX_RANGES = 64  #: of addresses, one after the other
_GAP = 16  #: bytes: what is less between two functions is padding
_SYMBOL = re.compile(r"([0-9a-f]+) ([0-9a-f]+) [TtWw] (.+)")
_LIBRARIES = frozenset({"std", "__gnu_cxx", "__cxxabiv1", "pybind11", "c10", "at", "torch", "caffe2"})
#: Of headers and of the linker, outside of a namespace.
_GLUE = re.compile(
    r"Py[A-Z]|pybind11_|_init$|_fini$|_start$|_GLOBAL__|__static_init|(de)?register_tm_clones|__do_global|frame_dummy"
)


#: The function that a lambda in a demangled name is of, one in another; bounded, as a candidate chooses its names.
_LAMBDA_OF = re.compile(r"\b(?=([A-Za-z_][\w:]{0,200})(?:<[^<>]{0,200}>)?(?:\([^{}]{0,200}\)(?: const)?)?::\{lambda)")
_NAME = 1000  #: characters of a name that are looked through for that


@dataclass(frozen=True)
class Function:
    """A function of a library, by its demangled name."""

    begin: int
    end: int
    name: str


@dataclass(frozen=True)
class Binutils:
    """nm and objdump, run in a folder of their own until a deadline (monotonic seconds)."""

    folder: Path
    deadline: float
    prefix: tuple[str, ...] = ()  #: see `run_tool`

    def run(self, name: str, *arguments: str) -> str:
        """Return what the tool printed. Raises NotInspected when it is missing, fails or has no time left."""
        program = find_program(name) or find_program(f"llvm-{name}")
        if program is None:
            raise NotInspected(f"there is no {name} here (binutils or LLVM has it)")
        return printed_by(name, [program, *arguments], self.folder, self.deadline - time.monotonic(), self.prefix)


def host_functions(library: Path, tools: Binutils) -> str:
    """Disassemble the functions of a library that are no library's in turn. Raises NotInspected."""
    own = own_functions(parsed_symbols(tools.run("nm", "--demangle", "--print-size", "--defined-only", str(library))))
    if not own:
        raise NotInspected("it names no functions of its own")
    found = ranges(own)
    shown = []
    for begin, end in found[:MAX_RANGES]:
        span = (f"--start-address={begin:#x}", f"--stop-address={end:#x}")
        shown.append(without_head(tools.run("objdump", "-d", "--demangle", "--no-show-raw-insn", *span, str(library))))
    if len(found) > MAX_RANGES:
        shown.append(f"# more than {MAX_RANGES} places: the functions behind them are left out\n")
    return "\n".join(shown)


def parsed_symbols(printed: str) -> list[Function]:
    """Return the functions in what `nm --print-size` prints, by address."""
    found = {
        (begin := int(match[1], 16)): Function(begin, begin + int(match[2], 16), match[3])
        for line in printed.splitlines()
        if (match := _SYMBOL.fullmatch(line))
    }
    return [found[begin] for begin in sorted(found)]


def own_functions(functions: Iterable[Function]) -> list[Function]:
    """Return the functions that come from the candidate's text, by their names.

    An instance of a library's template is one where a lambda of such a function is what it works on: the loop of
    `at::parallel_for` is then in it.
    """
    found = list(functions)
    named = {one: qualified(one.name) for one in found}
    plain = {one for one in found if not _GLUE.match(named[one]) and named[one].split("::")[0] not in _LIBRARIES}
    names = {named[one] for one in plain}
    return [one for one in found if one in plain or names.intersection(_LAMBDA_OF.findall(one.name[:_NAME]))]


def ranges(functions: Sequence[Function]) -> list[tuple[int, int]]:
    """Return the addresses of functions, neighbours together."""
    found: list[tuple[int, int]] = []
    for one in functions:
        if found and one.begin - found[-1][1] < _GAP:
            found[-1] = (found[-1][0], max(found[-1][1], one.end))
        else:
            found.append((one.begin, one.end))
    return found
