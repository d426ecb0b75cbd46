"""Compile the Triton kernels of a file by their types, without a launch and without a GPU."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Base64Bytes, Field, ValidationError

from hkbench.compile_only.workplace import Workplace
from hkbench.errors import ToolchainUnavailable, UsageError
from hkbench.records import KernelResources, Record
from hkbench.records.compiled import CompiledFile, PtxResources
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.process import ToolResult
from hkbench.toolchain.ptx import find_ptxas, parse_ptxas, ptxas_command, target_of
from hkbench.toolchain.triton import IMAGE_LIMIT, LaunchedKernel, find_triton, resources

WORKER = Path(__file__).resolve().parents[1] / "runner" / "ahead.py"
ANSWER = "answer.json"
FORMS = ("ptx", "cubin", "amdgcn", "hsaco")  #: that are kept of what Triton makes
_AMD_WAVE, _NVIDIA_WARP = 64, 32
#: What Triton says where the machine, not the kernel, is at fault.
_MISSING = ("ld.lld not found", "libcuda.so cannot found", "ptxas not found", "Cannot find ptxas", "install Triton 3")
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(max_length=300)]


class _Raised(Record):
    """An exception of the file's or of Triton's."""

    error: Name
    message: Text
    line: int | None


class _Kernel(Record):
    """One kernel, as the process that compiled it reports it (JSON, not trusted)."""

    name: Name
    symbol: Name = ""
    way: Name = ""
    signature: dict[Name, Name]
    constants: dict[Name, Name]
    options: dict[Name, int | None] = {}
    lds_bytes: Annotated[int, Field(ge=0, le=1 << 30)] = 0
    forms: dict[Name, Annotated[Base64Bytes, Field(max_length=IMAGE_LIMIT)]] = {}
    raised: _Raised | None = None


class _Answer(Record):
    """What became of the file."""

    version: Name
    raised: _Raised | None = None
    kernels: tuple[_Kernel, ...] = ()
    missing: dict[Name, Text] = {}


@dataclass(frozen=True)
class _Request:
    """The command line of the worker (hkbench/runner/ahead.py)."""

    file: str
    folder: str
    target: tuple[str, str | int, int]
    signatures: Mapping[str, Sequence[str]]
    options: Mapping[str, int]


def compile_triton_file(
    file: Path, arch: str, signatures: Mapping[str, Sequence[str]], options: Mapping[str, int], place: Workplace
) -> CompiledFile:
    """Return what became of the kernels of `file`, which is imported and compiled in a cage.

    `signatures`: by the kernel's name, or "" for the only one, the types and the values of constants. Without them
    annotations and defaults say them. `options`: num_warps, num_stages.

    Raises:
        UsageError: the types of a kernel are not known.
        ToolchainUnavailable: there is no Triton, or one that lacks what it calls.
    """
    begun, triton = time.monotonic(), find_triton()
    source = place.copy_of(file)
    is_amd = arch.startswith("gfx")
    target = ("hip", arch, _AMD_WAVE) if is_amd else ("cuda", int(arch.removeprefix("sm_").rstrip("af")), _NVIDIA_WARP)
    folder, _ = place.room("triton")
    request = _Request(str(source), str(folder), target, signatures, options)
    done = place.run("triton", [sys.executable, str(WORKER), json.dumps(asdict(request))])
    told = _read(place, done)
    _require_types(file, told)
    failed = told.raised or next((one.raised for one in told.kernels if one.raised is not None), None)
    if failed is not None and any(text in failed.message for text in _MISSING):
        raise ToolchainUnavailable(f"Triton {told.version} lacks what it calls: {failed.message.splitlines()[0]}")
    kernels = [one for one in told.kernels if one.raised is None]
    for one in kernels:
        for form in (form for form in FORMS if form in one.forms):
            place.keep(one.name, form, one.forms[form])
    shown, notes = _amd(kernels, arch, place) if is_amd else ((), [])
    ptx, further = ((), []) if is_amd else _nvidia(arch, triton.root, place)
    return CompiledFile(
        file=file.name,
        way=next((f"Triton kernels by {one.way}" for one in kernels), "Triton kernels"),
        compiler=f"Triton {told.version or triton.version}",
        target=arch,
        error=None if failed is None else failed.message,
        line=None if failed is None else failed.line,
        forms=place.forms(),
        resources=shown,
        ptx_resources=ptx,
        notes=(*notes, *further),
        seconds=time.monotonic() - begun,
    )


def _read(place: Workplace, done: ToolResult) -> _Answer:
    """Read the worker's answer; where it has none, say what came in its place."""
    if done.returncode is None:
        return _without_answer(f"not done within {place.timeout:g} s")
    try:
        return _Answer.model_validate_json(place.made("triton", ANSWER))
    except OSError:
        last = next((line for line in reversed(done.output.splitlines()) if line.strip()), "it printed nothing")
        return _without_answer(f"the process ended without an answer: {last}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return _without_answer(f"the answer cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}")


def _without_answer(message: str) -> _Answer:
    return _Answer(version="", raised=_Raised(error="NoAnswer", message=message, line=None))


def _require_types(file: Path, told: _Answer) -> None:
    if told.missing:
        name, what = next(iter(told.missing.items()))
        raise UsageError(
            f"{file}: kernel {name}: {what}; annotate its arguments (x: '*fp32', n: 'i32', BLOCK: tl.constexpr = 1024) "
            f"or say them in their order: --signature '{name}: *fp32, i32, 1024'"
        )
    if told.raised is None and not told.kernels:
        raise UsageError(f"{file}: has no @triton.jit function at its top level, so there is nothing to compile")


def _amd(kernels: Sequence[_Kernel], arch: str, place: Workplace) -> tuple[tuple[KernelResources, ...], list[str]]:
    """Return what the code objects show."""
    try:
        launched = tuple(
            LaunchedKernel.model_validate(
                {
                    "name": one.symbol,
                    "signature": one.signature,
                    "constants": one.constants,
                    "options": one.options,
                    "lds_bytes": one.lds_bytes,
                    "launches": 0,
                    "image": one.model_dump(mode="json")["forms"].get("hsaco", ""),
                }
            )
            for one in kernels
        )
        toolchain = find_hip()
        folder, cage = place.room("code", toolchain.root, toolchain.hipcc)
        return resources(launched, arch, Tools(toolchain, folder, place.deadline, cage)), []
    except (NotInspected, ToolchainUnavailable, ValidationError) as reason:
        return (), [f"registers, LDS and spills are not known: {reason}"]


def _nvidia(arch: str, triton: Path, place: Workplace) -> tuple[tuple[PtxResources, ...], list[str]]:
    """Return what ptxas says of the PTX."""
    ptxas = find_ptxas(triton)
    if ptxas is None:
        return (), ["registers and spills are not known: there is no ptxas here"]
    shown: list[PtxResources] = []
    notes: list[str] = []
    for one, path in place.kept("ptx"):
        command = ptxas_command(ptxas, target_of(path) or arch, path, Path("assembled.cubin"))
        done = place.run("ptxas", command, Path(ptxas))
        shown += parse_ptxas(done.output)
        if done.returncode != 0:
            notes.append(f"ptxas does not take the PTX of {one.kernel}: {done.output.strip()[:300]}")
    return tuple(shown), notes
