"""Build, once, what a candidate finds in place of ROCm's runtime and of PyTorch's ROCm half on an emulated GPU.

The sources are the runner's (runner/emulated/native); their objects lie in the user's cache folder, where runners can
read them and not write. They are the harness's own: no candidate has a part in the build.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.shipped import cache_folder
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.hip import HipToolchain, TorchFiles, find_hip, find_torch
from hkbench.toolchain.programs import find_cxx

NATIVE = Path(__file__).resolve().parents[1] / "runner" / "emulated" / "native"
_WORKER = Path(__file__).with_name("hipify_worker.py")
_RUNTIME = ("link.c", "heap.c", "launch.c", "runtime.c", "refused.c", "builtins.c")
_FRAME = ("frame.cpp", "hooks.cpp", "c10cuda.cpp")
_ALLOCATOR = "allocator.cpp"  #: not for every version of PyTorch
_SECONDS, _TOOL_SECONDS = 900.0, 60.0
_PLATFORM = ("-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1")


@dataclass(frozen=True)
class EmulatedRuntime:
    """A folder with the libraries that stand in, and below `include` PyTorch's headers for ROCm."""

    folder: Path
    toolchain: HipToolchain

    def environment(self, arch: str) -> dict[str, str]:
        """Return the variables by which builds of a candidate find all of it, as on a machine with ROCm."""
        return {
            "ROCM_PATH": str(self.toolchain.root),
            "ROCM_HOME": str(self.toolchain.root),
            "PYTORCH_ROCM_ARCH": arch,
            "CPATH": str(self.folder / "include"),
            "LIBRARY_PATH": str(self.folder),
            "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0",  # of torch.compile; it is in PyTorch's builds for GPUs alone
            # Read by clang's driver: tables of lines for the reports, and nothing else in the device code.
            "CCC_OVERRIDE_OPTIONS": "#+-Xarch_device +-gline-tables-only",
        }


def find_runtime() -> EmulatedRuntime:
    """Return the libraries of the installed PyTorch and HIP; a minute, the first time.

    Raises:
        ToolchainUnavailable: there is no compiler, no HIP, no PyTorch, or they do not build this.
    """
    toolchain, torch, cxx = find_hip(), find_torch(), find_cxx()
    folder = cache_folder() / "emulated" / _key(toolchain, torch, cxx)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
        try:
            _build(made, toolchain, torch, cxx)
            made.chmod(0o755)
            if not folder.is_dir():  # another process may have been quicker
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return EmulatedRuntime(folder, toolchain)


def find_objdump(toolchain: HipToolchain) -> Path:
    """Return the disassembler beside the HIP compiler.

    Raises:
        ToolchainUnavailable: there is none.
    """
    with tempfile.TemporaryDirectory(prefix="hkbench-tools-") as folder:
        tools = Tools(toolchain, Path(folder), time.monotonic() + _TOOL_SECONDS)
        try:
            return tools.find("llvm-objdump")
        except NotInspected as reason:
            raise ToolchainUnavailable(f"an emulated GPU needs LLVM's disassembler: {reason}") from None


def _key(toolchain: HipToolchain, torch: TorchFiles, cxx: str) -> str:
    """Hash what the libraries depend on."""
    digest = hashlib.sha256()
    for path in sorted(NATIVE.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    said = subprocess.run([cxx, "--version"], capture_output=True, check=False).stdout
    digest.update(repr((toolchain.root, toolchain.version, torch.root, torch.version, said)).encode())
    return digest.hexdigest()[:20]


def _build(folder: Path, toolchain: HipToolchain, torch: TorchFiles, cxx: str) -> None:
    headers = folder / "include"
    _ported(headers, torch)
    system = [headers, *torch.includes, toolchain.include]
    includes = [word for path in system for word in ("-isystem", str(path))]
    common = ["-O2", "-fPIC", *_PLATFORM, *includes]
    runtime, frame = ([folder / f"{source}.o" for source in sources] for sources in (_RUNTIME, _FRAME))
    # The compiler driver takes a C source for what it is.
    commands = [
        [cxx, "-x", "c", "-std=gnu11", *common, "-c", str(NATIVE / source), "-o", str(into)]
        for source, into in zip(_RUNTIME, runtime, strict=True)
    ]
    commands += [
        [cxx, "-std=c++20", *common, "-c", str(NATIVE / source), "-o", str(into)]
        for source, into in zip(_FRAME, frame, strict=True)
    ]
    allocator = folder / f"{_ALLOCATOR}.o"
    perhaps = [cxx, "-std=c++20", *common, "-c", str(NATIVE / _ALLOCATOR), "-o", str(allocator)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        extra = pool.submit(_compiles, perhaps)
        list(pool.map(_run, commands))
    frame += [allocator] if extra.result() else []
    major = toolchain.version.partition(".")[0]
    _linked(cxx, folder, "libamdhip64.so", f"libamdhip64.so.{major}", runtime)
    links = [f"-L{torch.libraries}", f"-L{folder}", "-lc10", "-ltorch_cpu", "-lamdhip64"]
    _linked(cxx, folder, "libc10_hip.so", "libc10_hip.so", [*frame], links)
    _linked(cxx, folder, "libtorch_hip.so", "libtorch_hip.so", [])  # its names are in the one before
    for path in (*runtime, *frame):
        path.unlink()


def _ported(headers: Path, torch: TorchFiles) -> None:
    """Make PyTorch's headers for ROCm from those for CUDA, by PyTorch's own hipify, as its ROCm build does."""
    for part in ("c10", "ATen"):
        shutil.copytree(torch.root / "include" / part / "cuda", headers / part / "cuda")
    _run([sys.executable, "-I", str(_WORKER), str(torch.root), str(headers), "--headers"])
    macros = headers / "c10" / "hip" / "impl" / "hip_cmake_macros.h"
    macros.write_text("#pragma once\n#define C10_HIP_BUILD_SHARED_LIBS\n#define C10_CUDA_BUILD_SHARED_LIBS\n")


def _linked(cxx: str, folder: Path, name: str, soname: str, objects: Sequence[Path], links: Sequence[str] = ()) -> None:
    command = [cxx, "-shared", *map(str, objects), f"-Wl,-soname,{soname}", "-o", str(folder / name), *links]
    _run([*command, "-lpthread"])


def _compiles(command: Sequence[str]) -> bool:
    try:
        _run(command)
    except ToolchainUnavailable:
        return False
    return True


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode != 0:
        raise ToolchainUnavailable(
            f"what stands in for ROCm on an emulated GPU cannot be built: {' '.join(command)}\n"
            f"{(done.stderr or done.stdout).strip()[-3000:]}\ninstall g++ and run scripts/install_hip_toolchain.sh anew"
        )
