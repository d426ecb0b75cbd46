"""What a runner may know of the user's environment: an allow-list, and private folders in place of shared ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: Toolchain and device settings; everything else (keys, tokens, addresses of proxies) stays outside.
KEPT = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDAHOSTCXX",
    "TORCH_CUDA_ARCH_LIST", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCM_HOME", "ROCM_PATH", "HIP_PATH",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "PYTORCH_ROCM_ARCH", "PYTORCH_NVCC",
    "HSA_OVERRIDE_GFX_VERSION", "THUNDERKITTENS_ROOT", "HIPKITTENS_ROOT", "OMP_NUM_THREADS", "VIRTUAL_ENV",
    "PYTHONPATH", "PYTHONHOME",
)  # fmt: skip


def kept_environment() -> dict[str, str]:
    """The allowed part of this process's environment."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def runner_environment(folder: Path) -> dict[str, str]:
    """The environment of one runner: caches and temporary files in its own folder, one compiler job at a time."""
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
    # ninja is installed beside this interpreter, whose environment need not be activated.
    own = os.path.dirname(sys.executable)  # noqa: PTH120 - not resolved: a venv's python is a link out of it
    environment["PATH"] = os.pathsep.join([own, environment.get("PATH", os.defpath)])
    environment.update({name: str(path) for name, path in private.items()})
    # Builds of several candidates run side by side already; more jobs each would only thrash.
    environment["MAX_JOBS"] = os.environ.get("MAX_JOBS", "2")
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return environment
