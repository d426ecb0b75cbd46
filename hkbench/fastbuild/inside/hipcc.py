"""The quick way of hipcc's command in an extension's build: headers that were compiled before.

`compiler_wrapper.py` asks for it. hipcc cannot be told of precompiled headers, so its two compilations are run as
hipcc itself would run them (`-###` prints the commands), each with its header. Whatever hipcc does otherwise than
expected is left to it. Of errors clang says the same with and without such a header, since it is that of the very
headers that the source includes: they are final where the first is in the source itself. Standard library only.

STORE is made by the harness (fastbuild/hip_builds.py) and is read only here:

    STORE/toolchain.json                    {"compiler": hipcc's real path, "folders": [system include folders],
                                             "environment": {what of it hipcc looks at}}
    STORE/<digest>/device.pch, host.pch     of one list of headers and set of flags, for the two compilations
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.fastbuild.inside.attempt import CompileAttempt, is_source_error, run

TOOLCHAIN = "toolchain.json"
DEVICE, HOST = "device.pch", "host.pch"
SHOW_SECONDS = 60.0
OUTPUTS = frozenset({"-emit-obj", "-emit-llvm-bc"})  #: of the device's compilation; the latter by clang's newer driver
_GENERATED = "torch_hip"  #: a folder that each build makes for itself (toolchain/build_hip.py)
_NAME = "-DTORCH_EXTENSION_NAME="
_SHARED = re.compile(r"(torch|ATen|c10|pybind11|hip)/[\w/]+\.h|[a-z_]+")  #: headers that a PCH may hold
_WORTH = re.compile(r"(torch|ATen|pybind11)/.*")
#: Names that an include folder of the candidate's must not hold: they would be found in place of a PCH's headers.
_SHADOWED = {"torch", "ATen", "c10", "caffe2", "pybind11", "hip", "Python.h", "thrust", "rocprim", "bits", "cuda.h"}
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]\s*(//.*)?")
_SKIPPED = re.compile(r"//.*|#\s*line\b.*")
_MAX_FLAGS, _MAX_HEADERS = 64, 64

#: Flags that a PCH may be made for. A candidate chooses them, so they are a list.
_FLAG = re.compile(
    r"-O([0-3sz]|fast)?|-std=(c|gnu)\+\+\w{1,4}|-g0?|-w|-pthread|-fPIC|-W(?![alp],)[\w+=-]{0,64}"
    r"|--offload-arch=gfx[0-9a-f]{2,8}(:(sramecc|xnack)[+-]){0,2}|-fno-gpu-rdc|-x|hip"
    r"|-m(no-)?(unsafe-fp-atomics|cumode|wavefrontsize64)|-march=native|-Rpass-analysis=kernel-resource-usage"
    r"|-f(no-)?(fast-math|unroll-loops|math-errno|trapping-math|signed-zeros|finite-math-only|associative-math"
    r"|reciprocal-math|strict-aliasing|inline-functions|slp-vectorize|vectorize|openmp|gpu-flush-denormals-to-zero)"
    r"|-ffp-contract=(fast|on|off|fast-honor-pragmas)"
    r"|-D(WITH_HIP|TORCH_API_INCLUDE_EXTENSION_H|NDEBUG|HIPBLAS_V2|_GLIBCXX_USE_CXX11_ABI=[01]"
    r"|(__HIP_PLATFORM_AMD__|USE_ROCM|CUDA_HAS_FP16|HIP_ENABLE_WARP_SYNC_BUILTINS|__HIP_NO_\w{1,32}__)(=1)?"
    r'|PYBIND11_(COMPILER_TYPE|STDLIB|BUILD_ABI)="\w{1,32}")'  # of torch up to 2.8
    r"|-U__HIP_NO_\w{1,32}__"
)
#: They would change what hipcc or clang finds or does.
_STEERING = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS",
             "HIPCC_COMPILE_FLAGS_APPEND", "HIP_CLANG_PATH", "HIP_DEVICE_LIB_PATH")  # fmt: skip
ASKED = ("ROCM_HOME", "ROCM_PATH", "HIP_PATH")  #: they say where HIP lies, and have to be as where a PCH was made


@dataclass(frozen=True)
class Wanted:
    """What a PCH is made for: hipcc's words without source, output and name, and the headers in their order."""

    flags: tuple[str, ...]
    headers: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the PCH's folder."""
        return hashlib.sha256(json.dumps([self.flags, self.headers]).encode()).hexdigest()[:32]


def wanted(command: Sequence[str], text: str) -> Wanted | None:
    """Return the PCH for a compile command of a source with this text; None where none is worth it, or sure to fit."""
    found = Wanted(_flags(command), _shared_headers(text))
    return found if any(map(_WORTH.fullmatch, found.headers)) and not shadows(command) else None


def acceptable(flags: object, headers: object, folders: Sequence[str]) -> bool:
    """Return whether a PCH may be made for what a candidate chose; only the system's `folders` may be named."""
    if not isinstance(flags, (list, tuple)) or not isinstance(headers, (list, tuple)):
        return False
    if len(flags) > _MAX_FLAGS or not 0 < len(headers) <= _MAX_HEADERS:
        return False
    if not all(isinstance(word, str) for word in (*flags, *headers)):
        return False
    words = iter(flags)
    fitting = all(next(words, "") in folders if word == "-isystem" else _FLAG.fullmatch(word) for word in words)
    return fitting and all(_SHARED.fullmatch(header) for header in headers)


def asked(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what hipcc looks at."""
    return {name: environment[name] for name in ASKED if name in environment}


def steps_of(shown: str) -> list[list[str]] | None:
    """Return the commands `-###` shows, if they are the device's compilation, what follows, and the host's."""
    steps = [shlex.split(line) for line in shown.splitlines() if line.startswith(' "')]
    compilations = [step for step in steps if step[1:2] == ["-cc1"]]
    as_expected = (
        len(compilations) == 2
        and "-fcuda-is-device" in compilations[0]
        and "-fcuda-is-device" not in compilations[1]
        and steps[-1] is compilations[1]
        and OUTPUTS.intersection(compilations[0])
        and "-emit-obj" in compilations[1]
    )
    return steps if as_expected else None


def is_device(step: Sequence[str]) -> bool:
    """Return whether a compilation is the device's."""
    return "-fcuda-is-device" in step


def with_pch(step: Sequence[str], pch: Path) -> list[str]:
    """Return a step with its header, where it is a compilation."""
    if step[1] != "-cc1":
        return list(step)
    return [*step[:2], "-include-pch", str(pch / (DEVICE if is_device(step) else HOST)), *step[2:]]


def _flags(command: Sequence[str]) -> tuple[str, ...]:
    """Return what a PCH depends on: all but names of files, the extension's name, and folders of one build."""
    kept: list[str] = []
    words = iter(command[1:])
    for word in words:
        if word in ("-c", "-o", "-I"):
            next(words, "")
        elif word == "-isystem":
            folder = next(words, "")
            kept += [word, folder] if Path(folder).name != _GENERATED else []
        elif not word.startswith((_NAME, "-I")):
            kept.append(word)
    return tuple(kept)


def _shared_headers(text: str) -> tuple[str, ...]:
    """Return the headers that a source includes first of all, up to one that no PCH holds."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        include = _INCLUDE.fullmatch(line.strip())
        if include is not None and _SHARED.fullmatch(include[1]):
            found[include[1]] = None
        elif include is not None or (line.strip() and not _SKIPPED.fullmatch(line.strip())):
            break
    return tuple(found)


def shadows(command: Sequence[str]) -> bool:
    """Return whether a folder of the candidate's own could hold headers in place of a PCH's."""
    folders = [command[at + 1] for at, word in enumerate(command[:-1]) if word == "-I"]
    folders += [word[2:] for word in command if word.startswith("-I") and len(word) > len("-I")]
    return any(_SHADOWED.intersection(os.listdir(folder)) for folder in folders if Path(folder).is_dir())


def attempt(store: Path, requests: Path, command: Sequence[str]) -> CompileAttempt | None:
    """Compile with a PCH. None: none fits, and nothing was compiled; it is put down among `requests`.

    Raises OSError, ValueError, subprocess.SubprocessError: as None.
    """
    toolchain = json.loads((store / TOOLCHAIN).read_text(encoding="utf-8"))
    program = shutil.which(command[0])
    if program is None or os.path.realpath(program) != toolchain["compiler"] or "-c" not in command[:-1]:
        return None
    if any(name in os.environ for name in _STEERING) or asked(os.environ) != toolchain["environment"]:
        return None
    source = command[command.index("-c") + 1]
    found = wanted(command, Path(source).read_text(encoding="utf-8", errors="replace"))
    if found is None or not acceptable(found.flags, found.headers, toolchain["folders"]):
        return None
    pch = store / found.name
    if not (pch / HOST).is_file():
        requests.mkdir(exist_ok=True)
        request = json.dumps({"flags": found.flags, "headers": found.headers})
        (requests / f"{found.name}.json").write_text(request, encoding="utf-8")
        return None
    with tempfile.TemporaryDirectory(prefix="hipcc-", ignore_cleanup_errors=True) as folder:
        environment = dict(os.environ) | {"TMPDIR": folder}
        shown = run([*command, "-###"], environment, SHOW_SECONDS)
        steps = steps_of(shown.output) if shown.status == 0 else None
        return None if steps is None else _run_all([with_pch(step, pch) for step in steps], source, environment)


def _run_all(steps: Sequence[Sequence[str]], source: str, environment: Mapping[str, str]) -> CompileAttempt:
    """Return the steps, up to the first that fails."""
    said = ""
    for step in steps:
        done = run(step, environment)
        said += done.output
        if done.status != 0:
            return CompileAttempt(done.status, said, is_source_error(done, source))
    return CompileAttempt(0, said)
