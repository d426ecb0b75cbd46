"""The quick way of a C++ compiler's command in an extension's build: headers that were compiled before.

`compiler_wrapper.py` asks for it. A compile command that a PCH of STORE fits gets the PCH's precompiled header put
before it, and a link command the PCH's own object. Where the PCH's headers are the very ones that the source includes,
an error in the source itself is final. Standard library only.

STORE is made by the harness (fastbuild/pch_cache.py) and is read only here:

    STORE/toolchain.json              {"compiler": real path, "folders": [torch's include folders],
                                       "also": [others that change nothing]}
    STORE/<digest>/pch.h, pch.h.gch   the header and its precompiled form, for one PCH and set of flags
    STORE/<digest>/include/           headers that stand for larger ones
    STORE/<digest>/support.o          out-of-line code of the PCH's inline functions, where it is not compiled anew
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hkbench.fastbuild.inside.attempt import CompileAttempt, is_source_error, run

TOOLCHAIN = "toolchain.json"
HEADER = "pch.h"
PRECOMPILED = "pch.h.gch"
SUPPORT = "support.o"
INCLUDE = "include"
MARK = ".pch"  #: behind an object's name: a file that names the PCH it was compiled with

#: PCHs by name, best first, and the headers that a source has to include to get one. "extension" has what kernels use
#: of torch/extension.h: it leaves out nn, optim, data, jit and library. A source that needs those fails to compile with
#: it, and is then built in the usual way. The other PCHs are what their headers are.
PCHS: dict[str, frozenset[str]] = {
    "extension": frozenset({"torch/extension.h"}),
    "torch": frozenset({"torch/types.h", "torch/csrc/utils/pybind.h", "torch/csrc/Exceptions.h"}),
    "pybind11": frozenset({"pybind11/pybind11.h"}),
}

#: Of these the headers are those that the source includes, and so are the errors in it.
EXACT = frozenset({"torch", "pybind11"})

#: What stands for larger headers, by PCH; of "extension" also where nvcc compiles (nvcc_headers.py).
HEADER_SUBSTITUTES: dict[str, dict[str, tuple[str, ...]]] = {
    "extension": {
        "torch/extension.h": (
            "torch/types.h", "torch/csrc/utils/pybind.h", "torch/csrc/Exceptions.h", "torch/version.h",
        ),
        "torch/library.h": (),  # of torch/types.h
    }
}  # fmt: skip

#: Flags that a header may be precompiled for. A candidate chooses them, so they are a list.
_FLAG = re.compile(
    r"-O([0-3sz]|fast)?|-std=(c|gnu)\+\+\w{1,4}|-g0?|-w|-pthread|-fPIC|-m(arch|tune)=[\w.-]{1,32}|-mfma|-mavx[\w.]{0,16}"
    r"|-f(no-)?(openmp|openmp-simd|fast-math|unroll-loops|math-errno|trapping-math|signed-zeros|finite-math-only"
    r"|associative-math|reciprocal-math|tree-vectorize|strict-aliasing|omit-frame-pointer)|-ffp-contract=(fast|on|off)"
    r"|-D(TORCH_API_INCLUDE_EXTENSION_H|NDEBUG|_GLIBCXX_USE_CXX11_ABI=[01]|__HIP_PLATFORM_AMD__=1|USE_ROCM=1|HIPBLAS_V2"
    r'|PYBIND11_(COMPILER_TYPE|STDLIB|BUILD_ABI)="\w{1,32}")'  # of torch up to 2.8
)
_WARNING = re.compile(r"-W(?![alp],)[\w+=-]*")
_NAME = re.compile(r"-DTORCH_EXTENSION_NAME=\w+")
_FOLDER_FLAGS = ("-isystem", "-I")
_MAX_FLAGS = 24
#: They change what a compiler finds or does, and have to be as where a PCH was made.
_STEERING = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH",
             "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "LIBRARY_PATH", "GCC_COMPARE_DEBUG")  # fmt: skip
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]\s*(//.*)?")
_BETWEEN = re.compile(r"(//.*|/\*.*\*/|#\s*pragma\s+once|#\s*line\b.*)?")


@dataclass(frozen=True)
class Command:
    """A compile command, taken apart."""

    source: str
    output: str
    flags: tuple[str, ...]  #: those that matter to a precompiled header, in their order
    folders: tuple[str, ...]


def substitute_header(name: str, includes: Sequence[str]) -> str:
    """Return the text of a header that stands for a larger one, and includes these alone."""
    guard = "HKBENCH_" + re.sub(r"\W", "_", name.upper())
    lines = [f"#ifndef {guard}", f"#define {guard}", *(f"#include <{inner}>" for inner in includes), "#endif", ""]
    return "\n".join(lines)


def digest(pch: str, flags: Sequence[str]) -> str:
    """Return the name of a PCH's folder."""
    return hashlib.sha256(json.dumps([pch, *flags]).encode()).hexdigest()[:32]


def acceptable(pch: object, flags: object) -> bool:
    """Return whether a PCH may be made for these flags, which a candidate chose."""
    return (
        pch in PCHS
        and isinstance(flags, (list, tuple))
        and len(flags) <= _MAX_FLAGS
        and all(isinstance(flag, str) and _FLAG.fullmatch(flag) is not None for flag in flags)
    )


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment changes what a compiler finds or does."""
    return {name: environment[name] for name in _STEERING if name in environment}


def parse(arguments: Sequence[str]) -> Command | None:
    """Return a command that compiles one C++ source with flags all of which are known; None for any other."""
    source = output = ""
    flags: list[str] = []
    folders: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "-c":
            source = next(words, "")
        elif word == "-o":
            output = next(words, "")
        elif word in _FOLDER_FLAGS:
            folders.append(next(words, ""))
        elif word == "-MF":
            next(words, "")
        elif word == "-MMD" or _WARNING.fullmatch(word) or _NAME.fullmatch(word):
            continue
        elif _FLAG.fullmatch(word):
            flags.append(word)
        else:
            return None
    if not source.endswith((".cpp", ".cc", ".cxx")) or not output:
        return None
    return Command(source, output, tuple(flags), tuple(folders))


def leading_includes(text: str) -> frozenset[str]:
    """Return the headers that a source includes before anything else stands in it."""
    found = set()
    for line in text.splitlines():
        include = _INCLUDE.fullmatch(line.strip())
        if include is not None:
            found.add(include[1])
        elif not _BETWEEN.fullmatch(line.strip()):
            break
    return frozenset(found)


def pch_for(included: frozenset[str]) -> str | None:
    """Return the best PCH whose headers a source includes first of all."""
    return next((name for name, wanted in PCHS.items() if wanted <= included), None)


def _pch_of(command: Command) -> str | None:
    return pch_for(leading_includes(Path(command.source).read_text(encoding="utf-8", errors="replace")))


def fast_command(store: Path, requests: Path, command: Sequence[str]) -> list[str] | None:
    """Return the command with a PCH, or None where none fits; a missing one is put down among `requests`."""
    toolchain = json.loads((store / TOOLCHAIN).read_text(encoding="utf-8"))
    program = shutil.which(command[0])
    if program is None or os.path.realpath(program) != toolchain["compiler"]:
        return None
    if steering(os.environ) != toolchain["environment"]:
        return None
    parsed = parse(command[1:])
    if parsed is None:
        return _link_command(store, command) if "-c" not in command else None
    if [folder for folder in parsed.folders if folder not in toolchain["also"]] != toolchain["folders"]:
        return None
    pch = _pch_of(parsed)
    if pch is None:
        return None
    folder = store / digest(pch, parsed.flags)
    if not (folder / PRECOMPILED).is_file():
        request = json.dumps({"pch": pch, "flags": parsed.flags})
        requests.mkdir(exist_ok=True)
        (requests / f"{folder.name}.json").write_text(request, encoding="utf-8")
        return None
    return with_pch(folder, command, parsed.output)


def with_pch(folder: Path, command: Sequence[str], output: str) -> list[str]:
    """Return the command with the PCH in `folder`; leaves a mark beside its output when a linker has to know."""
    if (folder / SUPPORT).is_file():
        Path(output + MARK).write_text(folder.name, encoding="utf-8")
    return [command[0], "-include", str(folder / HEADER), "-isystem", str(folder / INCLUDE), *command[1:]]


def _link_command(store: Path, command: Sequence[str]) -> list[str] | None:
    """Return the link command with the objects of the PCHs that the command's own objects were compiled with."""
    marks = [Path(word + MARK) for word in command if word.endswith(".o")]
    names = dict.fromkeys(mark.read_text(encoding="utf-8") for mark in marks if mark.is_file())
    return [*command, *(str(store / name / SUPPORT) for name in names)] if names else None


def attempt(store: Path, requests: Path, command: Sequence[str]) -> CompileAttempt | list[str] | None:
    """Compile with a PCH. The words of a link command with PCHs: without them it would fail. None: no PCH fits.

    Raises OSError, ValueError: as None.
    """
    quick = fast_command(store, requests, command)
    compiled = parse(command[1:])
    if quick is None or compiled is None:
        return quick
    done = run(quick)
    if done.status != 0:
        Path(compiled.output + MARK).unlink(missing_ok=True)
    return replace(done, final=is_source_error(done, compiled.source) and _pch_of(compiled) in EXACT)
