"""What a runner may know of the user's environment and files: allow-lists, and private folders for shared ones."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

#: Toolchain and device settings; everything else (keys, tokens, addresses of proxies) stays outside.
KEPT = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDAHOSTCXX",
    "TORCH_CUDA_ARCH_LIST", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCM_HOME", "ROCM_PATH", "HIP_PATH",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "PYTORCH_ROCM_ARCH", "PYTORCH_NVCC",
    "HSA_OVERRIDE_GFX_VERSION", "THUNDERKITTENS_ROOT", "HIPKITTENS_ROOT", "OMP_NUM_THREADS", "VIRTUAL_ENV",
    "PYTHONPATH", "PYTHONHOME",
)  # fmt: skip


#: HipKittens' headers where no variable names a checkout: scripts/install_hipkittens.py makes them, the stamp last.
_HIPKITTENS = Path(__file__).resolve().parents[2] / ".hipkittens"
_STAMP = _HIPKITTENS / ".complete"


def kept_environment() -> dict[str, str]:
    """Return the allowed part of this process's environment. A checkout of HipKittens goes by both of its names."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    if "PYTHONPATH" in kept:  # a runner works in another folder
        parts = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(part).absolute()) for part in parts)
    checkout = kept.get("HIPKITTENS_ROOT") or kept.get("THUNDERKITTENS_ROOT")
    checkout = checkout or (str(_HIPKITTENS) if _STAMP.is_file() else None)
    return kept | (dict.fromkeys(("HIPKITTENS_ROOT", "THUNDERKITTENS_ROOT"), checkout) if checkout else {})


def runner_path() -> str:
    """Return where a runner looks for programs."""
    # ninja is installed beside this interpreter, whose environment need not be activated.
    own = os.path.dirname(sys.executable)  # noqa: PTH120 - not resolved: a venv's python is a link out of it
    return os.pathsep.join([own, os.environ.get("PATH", os.defpath)])


def runner_environment(folder: Path) -> dict[str, str]:
    """Return a runner's environment: caches and temporary files in its own folder, one compiler job at a time."""
    private = {
        "HOME": folder / "home",
        "TMPDIR": folder / "tmp",
        "TORCH_EXTENSIONS_DIR": folder / "extensions",
        "TRITON_CACHE_DIR": folder / "triton",
        "XDG_CACHE_HOME": folder / "cache",
    }
    for path in private.values():
        path.mkdir(parents=True, exist_ok=True)
    environment = kept_environment()
    environment["PATH"] = runner_path()
    environment.update({name: str(path) for name, path in private.items()})
    # Builds of several candidates run side by side already; more jobs each would only thrash.
    environment["MAX_JOBS"] = os.environ.get("MAX_JOBS", "2")
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return environment


#: Kept variables that name the folder of a toolchain or of headers, and those that list several.
_TOOLCHAINS = ("CUDA_HOME", "CUDA_PATH", "ROCM_HOME", "ROCM_PATH", "HIP_PATH", "THUNDERKITTENS_ROOT", "HIPKITTENS_ROOT")
_LISTS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
_COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc", "hipcc", "ninja", "ld")

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/sys", "/proc")
#: What loaders, compilers and the interpreter look up; no keys, no passwords, no addresses.
_SETTINGS = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "timezone", "passwd",
    "group", "nsswitch.conf", "os-release", "locale.alias", "locale.conf", "mime.types", "python3", "OpenCL", "vulkan",
    "glvnd", "ssl/openssl.cnf", "pki/tls/openssl.cnf", "crypto-policies", "nvidia-container-runtime", "debian_version",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_GPU_DEVICES = ("nvidia*", "nvmap", "nvhost*", "kfd", "dri", "dxg")


def device_files() -> tuple[str, ...]:
    """Return the devices that a runner may read and write: the harmless ones, and GPUs."""
    found = [path for path in _DEVICES if Path(path).exists()]
    for pattern in _GPU_DEVICES:
        found += sorted(str(path) for path in Path("/dev").glob(pattern))
    return tuple(found)


def is_gpu(path: str) -> bool:
    """Tell whether a path is the device file of a GPU, or the folder of such files."""
    folder, name = os.path.split(path)
    return folder == "/dev" and any(fnmatch(name, pattern) for pattern in _GPU_DEVICES)


def readable_paths() -> tuple[str, ...]:
    """Return what a candidate needs to be built and run: system, interpreter, packages, toolchains, runner's code.

    A folder that holds more than that is left out, wherever it was named: the file system's root, a home folder, the
    folders of temporary files, and a checkout of hkbench, where replies, results and other candidates lie. An installed
    hkbench lies in site-packages, between torch and the rest, and holds what everybody can download.
    """
    package = Path(__file__).resolve().parents[1]
    is_installed = (package / "_data").is_dir()  # hkbench/shipped.py
    found = [path for path in _SYSTEM if Path(path).exists()]
    found += [path for name in _SETTINGS if os.path.lexists(path := f"/etc/{name}")]
    rooms = ("runner", "protocol", "fastbuild/inside", "sandbox", "fastbuild/__init__.py", "__init__.py")
    found += [str(package / room) for room in rooms]
    found += [str(package.parent / "hipkittens_build")]  # for candidates
    found += [str(_HIPKITTENS)] if _STAMP.is_file() else []
    found += [path for path in _named() if _harmless(path)]
    if not is_installed:
        found = [part for path in dict.fromkeys(found) for part in _without(path, package.parent)]
    return tuple(dict.fromkeys(found))


def _named() -> Iterator[str]:
    """Yield the folders that interpreter and environment name."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    # What stands before the standard library is the folder of a script, or where the user happens to be.
    own = sysconfig.get_path("stdlib")
    yield from sys.path[sys.path.index(own) if own in sys.path else 0 :]
    yield from (os.environ[name] for name in _TOOLCHAINS if name in os.environ)
    for name in _LISTS:
        yield from os.environ.get(name, "").split(os.pathsep)
    for path in Path("/etc/ld.so.conf.d").glob("*.conf"):
        lines = path.read_text(errors="replace").splitlines() if os.access(path, os.R_OK) else []
        yield from (line.strip() for line in lines if line.startswith("/"))
    for name in _COMPILERS:
        if (program := shutil.which(name)) is not None:
            prefix = Path(program).resolve().parents[1]
            if not prefix.name.startswith("."):  # ~/.local holds more than programs
                yield str(prefix)


def _harmless(path: str) -> bool:
    if not path.startswith("/") or not os.access(path, os.R_OK):
        return False
    real = Path(path).resolve()
    shared = [Path.home().resolve(), *map(Path, ("/root", "/home", "/etc", "/dev", "/run", "/tmp", "/var/tmp"))]  # noqa: S108
    shared.append(Path(tempfile.gettempdir()).resolve())
    return not any(folder.is_relative_to(real) for folder in shared)


def _without(path: str, hidden: Path) -> Iterator[str]:
    """Yield the path, or if it holds `hidden` what else it holds."""
    real = Path(path).resolve()
    if real == hidden:
        return
    if not hidden.is_relative_to(real):
        yield path
        return
    for entry in sorted(real.iterdir()) if os.access(real, os.R_OK) else ():
        yield from _without(str(entry), hidden)
