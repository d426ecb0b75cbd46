"""PCHs that are made beside a run, in a cage, for what builds asked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from hkbench.engine.confinement import Cages, survey
from hkbench.engine.preparation import PchBuilder
from hkbench.engine.slots import BuildSlots, HostShare
from hkbench.fastbuild.hip_pch import HipPchCache
from hkbench.fastbuild.inside.hipcc import Wanted
from hkbench.fastbuild.inside.patch_torch import HIP_PCH_REQUESTS, HIP_PCHS, PCHS
from hkbench.records import DeviceKind, EvaluationSettings, Protection
from hkbench.toolchain.hip import find_torch


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def preparation(device: DeviceKind, *, stock: bool = False) -> PchBuilder:
    isolation = asyncio.run(survey())
    if Protection.FILES not in isolation.holds:
        pytest.skip("candidates are not kept from files here, so PCHs are not shared, and that is NOT tested")
    settings = EvaluationSettings(prepare_builds=True, stock_builds=stock)
    return PchBuilder(isolation, Cages(isolation), BuildSlots(1, HostShare.NONE), settings, device, {}, makes=True)


def test_only_builds_for_amd_gpus_get_precompiled_headers_of_hipcc(cache: Path) -> None:
    hip_or_skip("that builds for an AMD GPU find PCHs of hipcc is not tested")
    assert list(preparation(DeviceKind.CUDA).environment()) == [PCHS]
    shared = preparation(DeviceKind.ROCM)
    assert list(shared.environment()) == [PCHS, HIP_PCHS]
    assert shared.readable() == tuple(shared.environment().values())
    assert not preparation(DeviceKind.ROCM, stock=True).environment()


def test_what_a_build_for_an_amd_gpu_requested_is_made_in_a_cage(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain = hip_or_skip("PCHs of hipcc are not made in a cage")
    monkeypatch.setenv("ROCM_HOME", str(toolchain.root))
    system = [word for folder in find_torch().includes for word in ("-isystem", str(folder))]
    flags = ["--offload-arch=gfx942", "-fno-gpu-rdc", *system]
    request = Wanted(tuple(flags), ("hip/hip_runtime.h", "pybind11/pybind11.h"))
    (tmp_path / HIP_PCH_REQUESTS).mkdir()
    written = json.dumps({"flags": request.flags, "headers": request.headers})
    (tmp_path / HIP_PCH_REQUESTS / f"{request.name}.json").write_text(written)

    async def run() -> None:
        shared.note(tmp_path)
        shared.note(tmp_path)
        await shared.close()

    shared = preparation(DeviceKind.ROCM)
    asyncio.run(run())
    store = HipPchCache(toolchain, environment={"ROCM_HOME": str(toolchain.root)})
    assert str(store.store) == shared.environment()[HIP_PCHS]
    assert store.has(request)
    assert len(list(store.store.glob("pch-*"))) == 1
