"""Find a HIP compiler: ROCm's own, or the prefix that scripts/install_hip_toolchain.sh makes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.rocm import DEFAULT, VARIABLES, core_and_itself, sdk_core
from hkbench.shipped import installing

ARCHITECTURES = ("gfx942", "gfx950")  #: MI300X/MI325X and MI350X/MI355X; backend hipkittens builds for more
REPOSITORY = Path(__file__).resolve().parents[2]
STAMP = ".complete"

# What torch.utils.cpp_extension passes for an extension on ROCm.
TORCH_HIP_FLAGS = (
    "-DWITH_HIP",
    "-D__HIP_PLATFORM_AMD__=1",
    "-DUSE_ROCM=1",
    "-DHIPBLAS_V2",
    "-DCUDA_HAS_FP16=1",
    "-D__HIP_NO_HALF_OPERATORS__=1",
    "-D__HIP_NO_HALF_CONVERSIONS__=1",
    "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1",
)
RESOURCE_REMARKS = "-Rpass-analysis=kernel-resource-usage"


@dataclass(frozen=True)
class HipToolchain:
    """A HIP compiler and where its files are."""

    root: Path
    hipcc: Path
    version: str  #: of HIP, as the headers give it: "6.4.43484"
    compiler: str  #: first line of `hipcc --version`'s clang line
    is_rocm: bool  #: False for the prefix of scripts/install_hip_toolchain.sh: it compiles, it cannot run

    @property
    def include(self) -> Path:
        return self.root / "include"

    def library_folders(self) -> tuple[Path, ...]:
        """Return where the runtime's libamdhip64.so may be."""
        return tuple(p for p in (self.root / "lib", self.root / "lib" / "x86_64-linux-gnu") if p.is_dir())

    def compile_command(
        self, source: Path, output: Path, arch: str, flags: Sequence[str] = (), *, remarks: bool = True
    ) -> list[str]:
        """Compile one HIP source, host and device half, for one architecture into a position-independent object.

        `flags` come last, so that a candidate's own `-std=` or `-O` wins as it does under PyTorch.
        """
        command = [str(self.hipcc), "-x", "hip", f"--offload-arch={arch}", "-fno-gpu-rdc", "-fPIC", "-std=c++20"]
        command += [RESOURCE_REMARKS] if remarks else []
        return [*command, *flags, "-c", str(source), "-o", str(output)]


@dataclass(frozen=True)
class TorchFiles:
    """Headers and libraries of the installed PyTorch, found without importing it."""

    root: Path
    version: str

    @property
    def includes(self) -> tuple[Path, ...]:
        """Folders for -isystem, Python's own headers last."""
        base = self.root / "include"
        return (base, base / "torch" / "csrc" / "api" / "include", Path(sysconfig.get_path("include", "posix_prefix")))

    @property
    def libraries(self) -> Path:
        return self.root / "lib"


def find_torch() -> TorchFiles:
    """Return the PyTorch of this interpreter. Raises ToolchainUnavailable when there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ToolchainUnavailable(
            f"PyTorch is not installed, and an extension needs its headers: run `{installing('torch')}`"
        )
    root = Path(spec.origin).parent
    match = re.search(r"__version__ = '([^']+)'", (root / "version.py").read_text(encoding="utf-8"))
    return TorchFiles(root, match[1] if match else "unknown")


def find_hip() -> HipToolchain:
    """Return the first HIP compiler that is found.

    Order: $ROCM_HOME, $ROCM_PATH, the package rocm-sdk-core, hipcc on PATH, /opt/rocm, $HKBENCH_HIP_PREFIX, .hip.

    Where ROCm is the Core SDK, it is found below `core` or `core-X.Y` of these folders, too (hkbench/rocm.py).

    Raises ToolchainUnavailable, with the command that installs one, when there is none or it does not start.
    """
    for place, is_rocm in _places():
        root = place.resolve()  # /opt/rocm is a link, and in a cage only what it leads to is in sight
        hipcc = root / "bin" / "hipcc"
        if hipcc.is_file() and (is_rocm or (root / STAMP).is_file()):
            return HipToolchain(root, hipcc, _hip_version(root), _compiler_version(hipcc), is_rocm)
    raise ToolchainUnavailable(
        "there is no HIP compiler here: run scripts/install_hip_toolchain.sh (Debian, a minute, no GPU needed), "
        "or install ROCm and set ROCM_HOME"
    )


def _places() -> Iterator[tuple[Path, bool]]:
    """Yield folders that may hold bin/hipcc, and whether each is a ROCm installation."""
    prefix = Path(os.environ.get("HKBENCH_HIP_PREFIX", REPOSITORY / ".hip"))
    for name in VARIABLES:
        if os.environ.get(name):
            for root in core_and_itself(Path(os.environ[name])):
                yield root, not (root / STAMP).is_file()
    packaged = sdk_core()
    if packaged is not None:
        yield packaged, True
    on_path = shutil.which("hipcc")
    if on_path is not None:
        root = Path(on_path).resolve().parents[1]
        yield root, not (root / STAMP).is_file()
    for root in core_and_itself(DEFAULT):
        yield root, True
    yield prefix, False


def _hip_version(root: Path) -> str:
    """Return the version in hip_version.h, "unknown" where that file is not as expected."""
    header = root / "include" / "hip" / "hip_version.h"
    text = header.read_text(encoding="utf-8", errors="replace") if header.is_file() else ""
    parts = [re.search(rf"#define HIP_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(part[1] for part in parts if part) or "unknown"


def _compiler_version(hipcc: Path) -> str:
    """Return the line of `hipcc --version` that names clang."""
    try:
        shown = subprocess.run(
            [str(hipcc), "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainUnavailable(f"{hipcc} does not start ({error}): install it anew") from error
    lines = shown.stdout.splitlines()
    return next((line.strip() for line in lines if "clang version" in line), lines[0].strip() if lines else "unknown")
