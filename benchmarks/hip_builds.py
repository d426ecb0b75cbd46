"""The hipcc side of builds.py: `build_hip`, as `--build-only` calls it, and hipcc beside a torch without ROCm."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.object_code import own_functions
from hkbench.fastbuild.hip_builds import HipPchBuilder
from hkbench.fastbuild.pch_cache import PchCache
from hkbench.toolchain.build_hip import build_hip
from hkbench.toolchain.code_object import Tools, code_objects
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain, find_hip

TOOL_SECONDS = 120.0
BUILD_SECONDS = 1800.0
_NO_LIBRARY = ("-lc10_hip", "-ltorch_hip")


class HipBuilds:
    """Build one extension for one architecture; `prepare` makes the PCHs that a first build could have used."""

    def __init__(self, call: ExtensionCall, arch: str, store: Path | None) -> None:
        self._call = call
        self._arch = arch
        self._toolchain: HipToolchain = find_hip()
        self._pchs = HipPchBuilder(self._toolchain, PchCache(store), store)

    def prepare(self, folder: Path) -> float:
        """Return the seconds that it took."""
        self.build(folder, quick=True)
        begin = time.monotonic()
        failed = self._pchs.make_wanted()
        if failed:
            raise SystemExit("\n".join(failed))
        return time.monotonic() - begin

    def build(self, folder: Path, quick: bool) -> dict[str, float]:
        """Wall clock and CPU seconds of all tools of one build."""
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        pchs = self._pchs if quick else None
        result = build_hip(self._call, self._arch, folder, BUILD_SECONDS, self._toolchain, pchs=pchs)
        wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        if quick and pchs is not None and pchs.used == 0 and not pchs.wanted:
            raise SystemExit("the PCHs did not fit: both sides would be the same")
        if not result.ok:
            raise SystemExit(f"the build failed: {result.error}\n{result.log[-4000:]}")
        return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}

    def code(self, folder: Path) -> dict[str, list[str]]:
        """Of the host's functions the instructions, of the device's code objects the bytes of .text."""
        found: dict[str, list[str]] = {}
        for path in sorted(folder.glob("*.o")):
            found |= {f"{path.name}: {name}": code for name, code in own_functions(path).items()}
        return found | device_text(folder / f"{self._call.name}.so", self._arch)


def device_text(library: Path, arch: str) -> dict[str, list[str]]:
    """Return the bytes of .text of each code object in a library."""
    found: dict[str, list[str]] = {}
    tools = Tools(find_hip(), library.parent / "compared", time.monotonic() + TOOL_SECONDS)
    for number, image in enumerate(code_objects(library, arch, tools)):
        text = image.with_suffix(".text")
        tools.run("llvm-objcopy", "-O", "binary", "--only-section=.text", str(image), str(text))
        found[f"device code {number}, .text"] = [text.read_bytes().hex()]
    return found


def rocm_home() -> dict[str, str]:
    """Return the environment in which torch and the harness look for HIP where `find_hip` has found it."""
    return {"ROCM_HOME": str(find_hip().root)}


def offer_hipcc(cpp_extension: ModuleType, arch: str) -> None:
    """Let a torch that is built without ROCm hipify and compile with hipcc, as one that is built with it would.

    To objects and a library that is not loaded. Where torch has ROCm nothing is changed. $ROCM_HOME names HIP.
    """
    import torch

    if torch.version.hip is not None:
        return
    os.environ.setdefault("PYTORCH_ROCM_ARCH", arch)
    prepare = cpp_extension._prepare_ldflags
    folders = [f"-L{folder}" for folder in find_hip().library_folders()]

    def without_libraries(*arguments: Any, **named: Any) -> list[str]:
        return [flag for flag in prepare(*arguments, **named) if flag not in _NO_LIBRARY] + folders

    vars(torch.version).update(hip="6.4")
    vars(cpp_extension).update(
        IS_HIP_EXTENSION=True,
        ROCM_HOME=os.environ["ROCM_HOME"],
        _prepare_ldflags=without_libraries,
        _import_module_from_library=lambda *_arguments: None,
    )
