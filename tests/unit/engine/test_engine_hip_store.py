"""Kits of the real hipcc, used by torch's own `load_inline` as it is on ROCm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from benchmarks.hip_builds import device_text
from benchmarks.object_code import differences, own_functions
from hkbench.engine.hip_store import HipStore
from hkbench.engine.kits import NotMade
from hkbench.runner import hipcc
from hkbench.runner.builds import HIP_WISHES

ARCH = "gfx942"
DEVICE = """
#include <pybind11/pybind11.h>
__global__ void doubled(float* x, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] *= 2.0f;
}
void launch(uintptr_t x, int count) { doubled<<<(count + 255) / 256, 256>>>(reinterpret_cast<float*>(x), count); }
"""
HOST = """
#include <cstdint>
void launch(uintptr_t x, int count);
extern "C" void call(uintptr_t x, int count) { launch(x, count); }
"""
CANDIDATE = """
import sys
from benchmarks.hip_builds import offer_hipcc
from hkbench.runner import builds, capture
offer_hipcc(capture.cpp_extension, "gfx942")
builds.quicken_if_offered(capture.cpp_extension)
capture.cpp_extension.load_inline("doubled", [sys.argv[1]], [sys.argv[2]], no_implicit_headers=True)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> HipStore:
    toolchain = hip_or_skip("kits of hipcc are not tested")
    return HipStore(toolchain, tmp_path_factory.mktemp("kits"), {"ROCM_HOME": str(toolchain.root)})


def built(folder: Path, store: HipStore, quick: bool, device: str = DEVICE) -> subprocess.CompletedProcess[str]:
    """One build in a process of its own, its caches below `folder`."""
    (folder / "tmp").mkdir(parents=True)
    environment = dict(os.environ) | {"TMPDIR": str(folder / "tmp"), "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    environment |= {"ROCM_HOME": str(store.reads[0])} | (store.environment if quick else {})
    command = [sys.executable, "-c", CANDIDATE, HOST, f"#include <cuda_runtime.h>\n{device}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_build_wishes_and_later_ones_get_the_same_code_and_the_same_errors(store: HipStore, tmp_path: Path) -> None:
    first = built(tmp_path / "first", store, quick=True)
    assert first.returncode == 0, first.stderr
    (wish,) = store.wished(tmp_path / "first")
    assert wish.headers == ("hip/hip_runtime.h", "pybind11/pybind11.h") and f"--offload-arch={ARCH}" in wish.flags
    store.make(wish, (), store.new_folder())
    assert store.has(wish)
    second = built(tmp_path / "second", store, quick=True)
    assert second.returncode == 0, second.stderr
    assert not (tmp_path / "second" / HIP_WISHES).exists(), "the second build used no kit"
    objects, libraries = zip(*(made(tmp_path / name) for name in ("first", "second")), strict=True)
    functions = [own_functions(path) for path in objects]
    assert any("launch" in name for name in functions[0])
    assert differences(*functions) == []
    texts = [device_text(path, ARCH) for path in libraries]
    assert texts[0] == texts[1] and texts[0]

    wrong = DEVICE.replace("x[i] *= 2.0f", "x[i] *= no_such_name")
    said = [error_of(built(tmp_path / name, store, name == "tried", wrong), name) for name in ("tried", "usual")]
    assert said[0] == said[1] and "use of undeclared identifier 'no_such_name'" in said[0]


def made(folder: Path) -> tuple[Path, Path]:
    """The device source's object and the library."""
    (device,), (library,) = folder.rglob("*.cuda.o"), folder.rglob("doubled.so")
    return device, library


def error_of(done: subprocess.CompletedProcess[str], folder: str) -> str:
    assert done.returncode == 1
    return done.stderr[done.stderr.rindex("RuntimeError") :].replace(f"/{folder}/", "/")


def test_what_a_candidate_writes_in_place_of_a_wish_is_not_believed(store: HipStore, tmp_path: Path) -> None:
    wishes = tmp_path / HIP_WISHES
    wishes.mkdir()
    written = [
        {"flags": ["-fplugin=x"], "headers": ["vector"]},
        {"flags": ["-isystem", str(tmp_path)], "headers": ["vector"]},
        {"flags": [], "headers": ["../secret.h"]},
        {"kit": "torch", "flags": ["-O1"]},
        "text",
    ]
    for number, wish in enumerate(written):
        name = wishes / f"{number:032x}.json"
        name.write_text(json.dumps(wish))
        assert store.wished(tmp_path) == []
        name.unlink()
    (wishes / f"{0:032x}.json").write_text(json.dumps({"flags": ["-O1"], "headers": ["vector"]}))
    assert store.wished(tmp_path) == [hipcc.Wanted(("-O1",), ("vector",))]


def test_a_kit_that_cannot_be_made_says_why_and_leaves_nothing(store: HipStore) -> None:
    wanted = hipcc.Wanted(("--offload-arch=gfx942", "-fno-gpu-rdc"), ("torch/no_such_header.h",))
    with pytest.raises(NotMade, match="no_such_header"):
        store.make(wanted, (), store.new_folder())
    assert not store.has(wanted)
    assert not [path for path in store.store.glob("kit-*") if not (path / hipcc.HOST).is_file()]
