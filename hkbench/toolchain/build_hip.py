"""Compile a captured extension for an AMD GPU architecture, with or without such a GPU (or ROCm) in the machine."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from hkbench.errors import InternalError, ToolchainUnavailable
from hkbench.records import KernelResources, Record
from hkbench.toolchain.causes import causes_text
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.diagnostics import unresolved_symbols
from hkbench.toolchain.extension import ExtensionCall, SourceFiles, write_bound_source, write_sources
from hkbench.toolchain.flags import refused_compile_flags, split_link_flags
from hkbench.toolchain.hip import TORCH_HIP_FLAGS, HipToolchain, TorchFiles, find_torch
from hkbench.toolchain.hipkittens import Checkout, dialect_for
from hkbench.toolchain.process import ToolResult, run_tool
from hkbench.toolchain.resources import demangled, inspected, parse_resources, with_findings, without_remarks

LOG_LIMIT = 64_000  #: characters of compiler output kept in a result
_HIPIFY = "hipify"
_NOT_STARTED = (126, 127)  #: of a shell, for a program that cannot be executed or is not there
_TORCH_LIBRARIES = ("-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python")
_WORKER = Path(__file__).with_name("hipify_worker.py")


class PchCache(Protocol):
    """What may do the work of a compile command more quickly, to the same end (fastbuild/hip_builds.py)."""

    def compile(
        self, run: Callable[[Sequence[str]], ToolResult], command: Sequence[str], source: Path
    ) -> ToolResult | None:
        """Return what the command would come to, or None: it has to run."""
        ...

    def support(self, objects: Sequence[Path]) -> list[str]:
        """Return what has to be linked with objects that were compiled so."""
        ...


class BuildResult(Record):
    """What one build came to. `error` is None exactly when `ok`."""

    ok: bool
    timed_out: bool = False
    error: str | None = None  #: the distinct causes that the failing tool names, each with its source lines
    seconds: float
    resources: tuple[KernelResources, ...] = ()
    log: str = ""  #: everything the tools printed but the resource remarks, cut to LOG_LIMIT characters
    library: Path | None = None
    not_checked: tuple[str, ...] = ()  #: what this build leaves open, for the verdict's conditions


class _Failed(Exception):
    """End a build and become its BuildResult: the text to report, and whether time ran out."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.timed_out = timed_out


class _Build:
    """One build in its own folder; `log` grows as the tools run."""

    def __init__(
        self,
        folder: Path,
        arch: str,
        timeout: float,
        toolchain: HipToolchain,
        torch: TorchFiles,
        prefix: tuple[str, ...],
        pchs: PchCache | None,
        stop: threading.Event,
    ) -> None:
        self.folder = folder
        self.arch = arch
        self.toolchain = toolchain
        self.torch = torch
        self.prefix = prefix
        self.pchs = pchs
        self.deadline = time.monotonic() + timeout
        self.timeout = timeout
        self.log: list[str] = []
        self.failure: _Failed | None = None  #: the first failure; what was stopped for it has nothing to say
        self._lock = threading.Lock()
        self._stop = stop

    def run(self, what: str, command: Sequence[str]) -> ToolResult:
        """Run one tool in what is left of the time. Raises _Failed when it fails, and stops the tools beside it."""
        return self._came_to(what, self._tool(command))

    def _came_to(self, what: str, result: ToolResult) -> ToolResult:
        shown = "" if what == _HIPIFY and result.returncode == 0 else result.output
        self.log.append(f"== {what} ({result.seconds:.1f} s)\n{shown}")
        if result.returncode == 0:
            return result
        if result.returncode is None:
            failed = _Failed(f"{what}: not done within the build's {self.timeout:.0f} s; stopped", timed_out=True)
        else:
            text = causes_text(without_remarks(result.output)) or result.output.strip()[-2000:]
            failed = _Failed(text or f"{what}: ended with code {result.returncode} and printed nothing")
        with self._lock:
            self.failure = self.failure or failed
        self._stop.set()
        raise failed

    def compile(self, what: str, command: Sequence[str], source: Path) -> str:
        """Run one compile command, with a PCH if one fits; the compiler's output. Raises _Failed as `run` does."""
        quick = None if self.pchs is None else self.pchs.compile(self._tool, command, source)
        return (self.run(what, command) if quick is None else self._came_to(what, quick)).output

    def _tool(self, command: Sequence[str]) -> ToolResult:
        """Raise ToolchainUnavailable where the program is gone, as looked up here: no candidate's failure."""
        done = run_tool(command, self.folder, self.deadline - time.monotonic(), self._stop, self.prefix)
        if done.returncode in _NOT_STARTED and shutil.which(command[0]) is None:
            raise ToolchainUnavailable(f"{command[0]} is not there to compile a candidate: install it")
        return done

    def hipify(self, *arguments: str) -> dict[str, str | None]:
        """Run hipify_worker.py; return source -> hipified file."""
        command = [sys.executable, "-I", str(_WORKER), str(self.torch.root), *arguments]
        printed = self.run(_HIPIFY, command).output.strip()
        try:
            mapping = json.loads(printed.rpartition("\n")[2] or printed)
        except json.JSONDecodeError as error:
            raise InternalError(f"PyTorch's hipify printed no result: {printed[-500:]}") from error
        return {str(key): value for key, value in mapping.items()}


def reads(toolchain: HipToolchain) -> tuple[Path, ...]:
    """Return what the tools of a build read beyond the system and this interpreter's packages."""
    return (toolchain.root, toolchain.hipcc, _WORKER)


def build_hip(
    call: ExtensionCall,
    arch: str,
    folder: Path,
    timeout: float,
    toolchain: HipToolchain,
    prefix: tuple[str, ...] = (),
    kittens: Checkout | None = None,
    pchs: PchCache | None = None,
    stop: threading.Event | None = None,
) -> BuildResult:
    """Hipify, compile and link `call` for `arch` ("gfx942") in `folder`, within `timeout` seconds altogether.

    A call of `hipkittens_build.build` is compiled as it stands, with the headers of `kittens`; without, it fails.

    `folder` is this build's own: new or empty. `prefix` stands before each tool: a cage for it, with `reads` in sight
    (engine/confinement.py). `pchs` spare headers that were compiled before. `stop`, set by the caller or at the first
    failure, ends the tools. A candidate that does not compile is a result, not an exception.
    Raises ToolchainUnavailable when this interpreter has no PyTorch or a compiler is gone, InternalError when
    PyTorch's hipify is not what is expected.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build = _Build(folder, arch, timeout, toolchain, find_torch(), prefix, pchs, stop or threading.Event())
    begin = time.monotonic()
    resources: tuple[KernelResources, ...] = ()
    library: Path | None = None
    failed: _Failed | None = None
    uninspected: tuple[str, ...] = ()
    link_flags, refused, left_out = split_link_flags(call.extra_ldflags)
    try:
        refused += refused_compile_flags(call.extra_cflags) + refused_compile_flags(call.extra_cuda_cflags)
        if refused:
            raise _Failed(f"error: a build does not pass on these flags: {' '.join(refused)}")
        if call.bound is None:
            objects, remarks = _compile(build, call, _hipified(build, call))
            link_flags = [f"-L{build.torch.libraries}", *_TORCH_LIBRARIES, *link_flags]
        else:
            objects, remarks = _compile_bound(build, call, kittens)
        resources = parse_resources(remarks, arch)
        library = _link(build, call.name, objects, link_flags)
        resources, uninspected = _inspected(build, resources, library)
    except _Failed as reason:
        failed = build.failure or reason
    return BuildResult(
        ok=failed is None,
        timed_out=failed is not None and failed.timed_out,
        error=None if failed is None else failed.message,
        seconds=time.monotonic() - begin,
        resources=with_findings(demangled(resources)),
        log=without_remarks("\n".join(build.log))[:LOG_LIMIT],
        library=library,
        not_checked=_not_checked(arch, toolchain, left_out, uses_torch=call.bound is None) + uninspected,
    )


def _hipified(build: _Build, call: ExtensionCall) -> SourceFiles:
    """Return the sources as PyTorch on ROCm would compile them, with its c10/hip and ATen/hip headers beside them."""
    written = write_sources(call, build.folder / "src")
    headers = build.folder / "torch_hip"
    if not (build.torch.root / "include" / "c10" / "hip").is_dir():
        # PyTorch's ROCm wheel has these headers; they are made from the CUDA ones by the same tool at its own build.
        for part in ("c10", "ATen"):
            shutil.copytree(build.torch.root / "include" / part / "cuda", headers / part / "cuda")
        build.hipify(str(headers), "--headers")
        macros = headers / "c10" / "hip" / "impl" / "hip_cmake_macros.h"
        macros.write_text("#pragma once\n#define C10_HIP_BUILD_SHARED_LIBS\n#define C10_CUDA_BUILD_SHARED_LIBS\n")
    if written.cuda is None:
        return written  # PyTorch hipifies only what has device code
    files = [str(written.main), str(written.cuda)]
    became = build.hipify(str(written.main.parent), *files)
    main, cuda = (Path(became.get(name) or name) for name in files)
    return SourceFiles(main, cuda)


def _compile(build: _Build, call: ExtensionCall, files: SourceFiles) -> tuple[list[Path], str]:
    """Compile both translation units side by side; return the objects and the device compiler's output."""
    includes = [flag for path in call.extra_include_paths for flag in ("-I", path)]
    system = [build.folder / "torch_hip", *build.torch.includes]
    system += [build.toolchain.include] if files.cuda is not None else []
    common = [f"-DTORCH_EXTENSION_NAME={call.name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *includes]
    common += [flag for path in system for flag in ("-isystem", str(path))]
    device_flags = [*common, *call.extra_cflags, *TORCH_HIP_FLAGS, "-std=c++20", *call.extra_cuda_cflags]

    main_object = build.folder / "main.o"
    if call.cxx is not None and Path(call.cxx).name == "hipcc":
        flags = [*common, "-D__HIP_PLATFORM_AMD__=1", *call.extra_cflags]
        main = build.toolchain.compile_command(files.main, main_object, build.arch, flags)
    else:
        main = ["c++", *common, "-fPIC", "-std=c++20", *call.extra_cflags]
        main += ["-c", str(files.main), "-o", str(main_object)]
    commands = [("C++ source", main, files.main)]
    objects = [main_object]
    if files.cuda is not None:
        objects.append(build.folder / "device.o")
        device = build.toolchain.compile_command(files.cuda, objects[-1], build.arch, device_flags)
        commands.insert(0, (f"device source for {build.arch}", device, files.cuda))
    with ThreadPoolExecutor(max_workers=2) as pool:
        running = [pool.submit(build.compile, *command) for command in commands]
    return objects, "\n".join(task.result() for task in running)


def _compile_bound(build: _Build, call: ExtensionCall, kittens: Checkout | None) -> tuple[list[Path], str]:
    """Compile the one source of a `hipkittens_build.build` call; return as `_compile` does."""
    if kittens is None:
        raise _Failed("error: hipkittens_build is for backend hipkittens, which names a checkout of HipKittens")
    source, compiled = write_bound_source(call, build.folder / "src"), build.folder / "device.o"
    flags = [*kittens.compile_flags(dialect_for(build.arch), build.toolchain), *call.extra_cuda_cflags]
    command = build.toolchain.compile_command(source, compiled, build.arch, flags)
    return [compiled], build.run(f"HIP source for {build.arch}", command).output


def _link(build: _Build, name: str, objects: Sequence[Path], flags: Sequence[str]) -> Path:
    """Link the shared library. Raises _Failed for a name that nothing on a ROCm machine would define."""
    library = build.folder / f"{name}.so"
    support = build.pchs.support(objects) if build.pchs is not None else []
    command = ["c++", "-shared", *map(str, objects), *support, "-o", str(library)]
    command += [f"-L{path}" for path in build.toolchain.library_folders()] + ["-lamdhip64", *flags]
    # A shared library may leave names open, and PyTorch loads it late: an undefined function would show up at import.
    command += ["-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]
    missing = unresolved_symbols(build.run("link", command).output)
    if missing:
        raise _Failed("error: undefined symbol" + ("s: " if len(missing) > 1 else ": ") + ", ".join(missing[:8]))
    return library


def _inspected(
    build: _Build, resources: tuple[KernelResources, ...], library: Path
) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
    """Return the records with what the library's device code shows, and notes on what stays open."""
    if not resources:
        return resources, ()
    tools = Tools(build.toolchain, build.folder / "device_code", build.deadline, build.prefix)
    try:
        return inspected(resources, library, build.arch, tools), ()
    except NotInspected as reason:
        return resources, (f"instructions and occupancy limits of the kernels: {reason}",)


def _not_checked(arch: str, toolchain: HipToolchain, left_out: Sequence[str], *, uses_torch: bool) -> tuple[str, ...]:
    open_points = [f"only compiled for {arch}, never run: correctness, speed, launch limits and alignment are unknown"]
    if not toolchain.is_rocm:
        open_points.append(
            f"compiled with {toolchain.compiler} and HIP {toolchain.version} headers, not with a ROCm release"
        )
        if uses_torch:
            open_points[-1] += (
                "; PyTorch's c10/hip and ATen/hip headers were made from the CUDA ones by PyTorch's own hipify, and "
                "symbols of libtorch_hip, libc10_hip and ROCm's libraries were not resolved"
            )
    if left_out:
        open_points.append(f"not linked with: {', '.join(left_out)}")
    return tuple(open_points)
