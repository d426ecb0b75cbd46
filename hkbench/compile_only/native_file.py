"""Compile one file in CUDA, HIP or C++ as it stands: by nvcc and ptxas, by hipcc, by the C++ compiler."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from hkbench.compile_only.workplace import Workplace
from hkbench.errors import ToolchainUnavailable, UsageError
from hkbench.records import KernelResources
from hkbench.records.compiled import CompiledFile, PtxResources
from hkbench.toolchain.build_hip import reads
from hkbench.toolchain.causes import causes_text
from hkbench.toolchain.code_object import NotInspected, Tools, code_objects
from hkbench.toolchain.hip import TORCH_HIP_FLAGS, HipToolchain, find_hip, find_torch
from hkbench.toolchain.hipkittens import dialect_for, find_checkout
from hkbench.toolchain.process import ToolResult
from hkbench.toolchain.programs import find_cxx, find_nvcc, require_nvcc
from hkbench.toolchain.ptx import find_ptxas, parse_ptxas, ptxas_command
from hkbench.toolchain.resources import demangled, inspected, parse_resources, with_findings, without_remarks

_TORCH = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](torch|ATen|c10|pybind11)/", re.MULTILINE)
_VERSION = re.compile(r"release ([\d.]+)")
_MESSAGE_LIMIT = 8000
STANDARD = ("-std=c++20", "-O3")


@dataclass(frozen=True)
class _Done:
    """What the tools of one way came to."""

    error: str | None = None
    resources: tuple[KernelResources, ...] = ()
    ptx: tuple[PtxResources, ...] = ()
    notes: tuple[str, ...] = ()


def compile_native_file(file: Path, language: str, arch: str, place: Workplace) -> CompiledFile:
    """Return what became of a file in "cuda", "hip", "hipkittens" or "cpp".

    Raises:
        ToolchainUnavailable, InputMissing: a compiler, or what it reads, is not here.
        UsageError: the compiler does not know the target.
    """
    begun = time.monotonic()
    source = place.copy_of(file)
    uses_torch = _TORCH.search(source.read_text(encoding="utf-8", errors="replace")) is not None
    if language == "cuda":
        way, compiler, done = _cuda(source, arch, place, uses_torch)
    elif language == "cpp":
        way, compiler, done = _cpp(source, place, uses_torch)
    else:
        way, compiler, done = _hip(source, language, arch, place, uses_torch)
    return CompiledFile(
        file=file.name,
        way=way,
        compiler=compiler,
        target=arch,
        error=done.error,
        line=_line(file.name, done.error or ""),
        forms=place.forms() if done.error is None else (),
        resources=done.resources,
        ptx_resources=done.ptx,
        notes=done.notes,
        seconds=time.monotonic() - begun,
    )


def _cuda(source: Path, arch: str, place: Workplace, uses_torch: bool) -> tuple[str, str, _Done]:
    """Compile the device half to PTX, and assemble that; the host half is read and not compiled."""
    require_nvcc()
    nvcc, ptxas = find_nvcc(), find_ptxas()
    if nvcc is None or ptxas is None:
        raise ToolchainUnavailable("there is no ptxas beside nvcc: install the CUDA toolkit anew")
    told = place.run("version", [nvcc, "--version"]).output
    release = _VERSION.search(told)
    compiler = f"nvcc {release[1] if release is not None else 'of unknown version'}"
    known = place.run("archs", [nvcc, "--list-gpu-code"]).output.split()
    if known and arch not in known and arch.rstrip("af") not in known:
        raise UsageError(f"--arch {arch}: {compiler} compiles for {', '.join(one for one in known if 'sm' in one)}")
    command = [nvcc, "-ptx", f"-arch={arch}", *STANDARD, *_headers(uses_torch), str(source), "-o", "kernels.ptx"]
    way = "CUDA by nvcc to PTX, and by ptxas to a cubin"
    done = place.run("nvcc", command)
    if done.returncode != 0:
        return way, compiler, _Done(error=_said(done, "nvcc"))
    text = place.made("nvcc", "kernels.ptx")
    ptx = place.keep(None, "ptx", text)
    done = place.run("ptxas", ptxas_command(ptxas, arch, ptx, Path("kernels.cubin")))
    if done.returncode != 0:
        return way, compiler, _Done(error=_said(done, "ptxas"))
    place.keep(None, "cubin", place.made("ptxas", "kernels.cubin"))
    notes = () if b".entry" in text else ("it has no __global__ function that is not a template",)
    return way, compiler, _Done(ptx=parse_ptxas(done.output), notes=(*notes, "host code was read, not compiled"))


def _cpp(source: Path, place: Workplace, uses_torch: bool) -> tuple[str, str, _Done]:
    program = find_cxx()
    told = place.run("version", [program, "--version"]).output.splitlines()
    command = [program, "-x", "c++", *STANDARD, "-march=native", "-fPIC", *_headers(uses_torch), "-c", str(source)]
    done = place.run("cxx", [*command, "-o", "file.o"])
    way, compiler = "C++ by the host's compiler to an object file", told[0] if told else program
    if done.returncode != 0:
        return way, compiler, _Done(error=_said(done, "the compiler"))
    place.keep(None, "object", place.made("cxx", "file.o"))
    return way, compiler, _Done()


def _hip(source: Path, language: str, arch: str, place: Workplace, uses_torch: bool) -> tuple[str, str, _Done]:
    """Compile both halves to an object file, and take the device code out of it."""
    toolchain = find_hip()
    flags = [*STANDARD, *(TORCH_HIP_FLAGS if uses_torch else ()), *_headers(uses_torch)]
    readable, title = list(reads(toolchain)), "HIP"
    if language == "hipkittens":
        checkout, dialect = find_checkout(), dialect_for(arch)
        checkout.require_dialect(dialect)
        flags = [*flags, *checkout.compile_flags(dialect, toolchain)]
        readable.append(checkout.root)
        title = f"HipKittens ({dialect})"
    way = f"{title} by hipcc to an object file, and its device code to a code object"
    compiler = f"HIP {toolchain.version}, {toolchain.compiler}"
    done = place.run("hipcc", toolchain.compile_command(source, Path("file.o"), arch, flags), *readable)
    if done.returncode != 0:
        return way, compiler, _Done(error=_said(done, "hipcc"))
    built = place.keep(None, "object", place.made("hipcc", "file.o"))
    found, notes = _device_code(done.output, built, arch, toolchain, place)
    return way, compiler, _Done(resources=found, notes=notes)


def _device_code(
    remarks: str, built: Path, arch: str, toolchain: HipToolchain, place: Workplace
) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
    """Keep the code object, and return what remarks and code say of each kernel."""
    found = parse_resources(remarks, arch)
    if not found:
        return (), ("it has no __global__ function that is not a template",)
    folder, cage = place.room("code", toolchain.root, toolchain.hipcc)
    tools = Tools(toolchain, folder, place.deadline, cage)
    notes: tuple[str, ...] = ()
    try:
        for path in code_objects(built, arch, tools):
            place.keep(None, "hsaco", path.read_bytes())
        found = inspected(found, built, arch, tools)
    except NotInspected as reason:
        notes = (f"instructions and occupancy limits of the kernels: {reason}",)
    return with_findings(demangled(found)), notes


def _headers(uses_torch: bool) -> list[str]:
    """Return the flags by which PyTorch's headers are found, for a file that includes them."""
    return [word for path in find_torch().includes for word in ("-isystem", str(path))] if uses_torch else []


def _said(done: ToolResult, tool: str) -> str:
    if done.returncode is None:
        return f"{tool} was not done in time"
    text = causes_text(without_remarks(done.output)) or done.output.strip()[-_MESSAGE_LIMIT:]
    return text or f"{tool} ended with code {done.returncode} and printed nothing"


def _line(name: str, error: str) -> int | None:
    """Return the first line of the file itself that an error names."""
    found = re.search(rf"(?:^|[\s/]){re.escape(name)}[:(](\d+)[:),]", error, re.MULTILINE)
    return int(found[1]) if found is not None else None
