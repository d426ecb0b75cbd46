"""Extensions with CUDA sources for `builds.py`: those of a candidate's file, and nvcc beside a torch without CUDA."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

UNCOMPRESSED = "--no-compress"  #: nvcc then leaves device code as object_code.py can read it
_NO_LIBRARY = ("-lc10_cuda", "-ltorch_cuda", "-lcudart")
_ARGUMENTS = (
    "name", "cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_include_paths",
    "with_pytorch_error_handling", "no_implicit_headers",
)  # fmt: skip


def calls_of(path: Path) -> list[dict[str, Any]]:
    """Return the arguments of the calls of `load_inline` that importing a candidate makes; it is not built."""
    from hkbench.runner import capture, load

    calls: list[Any] = []
    kept = {name: getattr(capture.cpp_extension, name) for name in ("load", "load_inline")}
    try:
        capture.record_extension_calls(calls)
        load.load_file("candidate", str(path), {})
    finally:
        vars(capture.cpp_extension).update(kept)
    found = [{name: call[name] for name in _ARGUMENTS if name in call} for call in calls]
    for call in found:
        if call.get("cuda_sources"):
            call["extra_cuda_cflags"] = [*call.get("extra_cuda_cflags", []), UNCOMPRESSED]
    return found


def offer_nvcc(cpp_extension: ModuleType) -> None:
    """Let a torch that is built without CUDA compile with nvcc, to objects and a library that is not loaded.

    Where torch has CUDA nothing is changed. Raises SystemExit: there is no nvcc.
    """
    import torch

    if torch.version.cuda is not None:
        return
    home = cpp_extension._find_cuda_home()
    if home is None:
        raise SystemExit("no nvcc: name its folder in PATH, or the one above in CUDA_HOME")
    said = subprocess.run([f"{home}/bin/nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"release (\d+\.\d+)", said)
    assert version is not None
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    macros = Path(tempfile.mkdtemp(prefix="hkbench-torch-")) / "c10/cuda/impl/cuda_cmake_macros.h"  # absent there
    macros.parent.mkdir(parents=True)
    macros.write_text("#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n", encoding="utf-8")
    os.environ["NVCC_APPEND_FLAGS"] = f"-isystem {macros.parents[3]}"
    prepare = cpp_extension._prepare_ldflags

    def without_libraries(*arguments: Any, **named: Any) -> list[str]:
        return [flag for flag in prepare(*arguments, **named) if flag not in _NO_LIBRARY]

    vars(torch.version).update(cuda=version[1])
    vars(cpp_extension).update(
        CUDA_HOME=home,
        _prepare_ldflags=without_libraries,
        _import_module_from_library=lambda *_arguments: None,
    )
