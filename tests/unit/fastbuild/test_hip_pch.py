"""PCHs of the real hipcc, used by torch's own `load_inline` as it is on ROCm."""

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
from hkbench.fastbuild.hip_pch import HipPchCache
from hkbench.fastbuild.inside import hipcc
from hkbench.fastbuild.inside.patch_torch import HIP_PCH_REQUESTS
from hkbench.fastbuild.pch_cache import NotMade

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
from hkbench.fastbuild.inside import patch_torch
from hkbench.runner import capture
offer_hipcc(capture.cpp_extension, "gfx942")
patch_torch.enable_fast_builds_if_offered(capture.cpp_extension)
capture.cpp_extension.load_inline("doubled", [sys.argv[1]], [sys.argv[2]], no_implicit_headers=True)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> HipPchCache:
    toolchain = hip_or_skip("PCHs of hipcc are not tested")
    return HipPchCache(toolchain, tmp_path_factory.mktemp("pchs"), {"ROCM_HOME": str(toolchain.root)})


def built(folder: Path, store: HipPchCache, quick: bool, device: str = DEVICE) -> subprocess.CompletedProcess[str]:
    """One build in a process of its own, its caches below `folder`."""
    (folder / "tmp").mkdir(parents=True)
    environment = dict(os.environ) | {"TMPDIR": str(folder / "tmp"), "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    environment |= {"ROCM_HOME": str(store.reads[0])} | (store.environment if quick else {})
    command = [sys.executable, "-c", CANDIDATE, HOST, f"#include <cuda_runtime.h>\n{device}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_build_requests_a_pch_and_later_ones_get_the_same_code_and_the_same_errors(
    store: HipPchCache, tmp_path: Path
) -> None:
    first = built(tmp_path / "first", store, quick=True)
    assert first.returncode == 0, first.stderr
    (request,) = store.requested(tmp_path / "first")
    assert request.headers == ("hip/hip_runtime.h", "pybind11/pybind11.h") and f"--offload-arch={ARCH}" in request.flags
    store.make(request, (), store.new_folder())
    assert store.has(request)
    second = built(tmp_path / "second", store, quick=True)
    assert second.returncode == 0, second.stderr
    assert not (tmp_path / "second" / HIP_PCH_REQUESTS).exists(), "the second build used no PCH"
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


def test_what_a_candidate_writes_in_place_of_a_request_is_not_believed(store: HipPchCache, tmp_path: Path) -> None:
    requests = tmp_path / HIP_PCH_REQUESTS
    requests.mkdir()
    written = [
        {"flags": ["-fplugin=x"], "headers": ["vector"]},
        {"flags": ["-isystem", str(tmp_path)], "headers": ["vector"]},
        {"flags": [], "headers": ["../secret.h"]},
        {"pch": "torch", "flags": ["-O1"]},
        "text",
    ]
    for number, request in enumerate(written):
        name = requests / f"{number:032x}.json"
        name.write_text(json.dumps(request))
        assert store.requested(tmp_path) == []
        name.unlink()
    (requests / f"{0:032x}.json").write_text(json.dumps({"flags": ["-O1"], "headers": ["vector"]}))
    assert store.requested(tmp_path) == [hipcc.Wanted(("-O1",), ("vector",))]


def test_a_pch_that_cannot_be_made_says_why_and_leaves_nothing(store: HipPchCache) -> None:
    wanted = hipcc.Wanted(("--offload-arch=gfx942", "-fno-gpu-rdc"), ("torch/no_such_header.h",))
    with pytest.raises(NotMade, match="no_such_header"):
        store.make(wanted, (), store.new_folder())
    assert not store.has(wanted)
    assert not [path for path in store.store.glob("pch-*") if not (path / hipcc.HOST).is_file()]
