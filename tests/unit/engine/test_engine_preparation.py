"""PCHs that are made beside a run, in a cage, for what builds asked for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import ClassVar

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


def preparation(device: DeviceKind, *, stock: bool = False, asked: bool = True, after: int = 1) -> PchBuilder:
    isolation = asyncio.run(survey())
    if Protection.FILES not in isolation.holds:
        pytest.skip("candidates are not kept from files here, so PCHs are not shared, and that is NOT tested")
    settings = EvaluationSettings(prepare_builds=asked, stock_builds=stock)
    return PchBuilder(isolation, Cages(isolation), BuildSlots(1, HostShare.NONE), settings, device, {}, after)


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


class Store:
    """Headers that are made at once; every build could use the same."""

    environment: ClassVar[dict[str, str]] = {}
    reads = ()

    def __init__(self, store: Path) -> None:
        self.store, self.made = store, 0

    def requested(self, folder: Path) -> list[str]:
        return ["headers"]

    def has(self, request: str) -> bool:
        return self.made > 0

    def new_folder(self) -> Path:
        return self.store

    def make(self, request: str, prefix: object, folder: Path, stop: object) -> None:
        self.made += 1


@pytest.mark.parametrize(
    ("asked", "after", "made_at"), [(False, 0, None), (False, 1, 1), (False, 2, 2), (True, 0, 1), (True, 2, 1)]
)
def test_headers_are_made_when_enough_builds_could_have_used_them(
    cache: Path, tmp_path: Path, asked: bool, after: int, made_at: int | None
) -> None:
    shared, store = preparation(DeviceKind.CPU, asked=asked, after=after), Store(tmp_path)
    shared._stores = [store]

    async def run() -> int | None:
        for build in (1, 2, 3):
            shared.note(tmp_path)
            await asyncio.gather(*shared._tasks.values())
            if store.made:
                return build
        return None

    assert asyncio.run(run()) == made_at
    assert store.made <= 1
