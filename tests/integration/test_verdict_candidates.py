"""The candidates of benchmarks/verdicts.py: right by a CPU emulation of their launches, and accepted by hipcc.

The emulation runs the whole of each CUDA source, host half included, on CPU tensors: blocks one after the other, the
threads of a block as threads with a barrier for __syncthreads. It finds wrong indices and wrong arithmetic; missing
barriers only by luck.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support import doors
from support.compilers import hip_or_skip
from torch import nn

from hkbench.records import Verdict

ROOT = Path(__file__).resolve().parents[2]
CANDIDATES = {
    int(path.name.split("_")[0]): path for path in (ROOT / "benchmarks/candidates/kernelbench_level1").glob("*.py")
}

EMULATOR = r"""
#include <torch/extension.h>
#include <barrier>
#include <functional>
#include <thread>

struct float4 { float x, y, z, w; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
static std::barrier<>* block_barrier;

static void emulate(dim3 grid, dim3 block, const std::function<void()>& kernel) {
    for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
        std::barrier<> barrier(block.x);
        block_barrier = &barrier;
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < block.x; ++t) threads.emplace_back([&, t] {
            threadIdx = dim3(t, 0, 0);
            blockIdx = dim3(x, y, z);
            blockDim = block;
            gridDim = grid;
            kernel();
            barrier.arrive_and_drop();
        });
        for (auto& thread : threads) thread.join();
    }
}

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __syncthreads() block_barrier->arrive_and_wait()
#define C10_CUDA_KERNEL_LAUNCH_CHECK()
namespace c10::cuda { static int getCurrentCUDAStream() { return 0; } }
"""
_LAUNCH = re.compile(r"(\w+)<<<(.+?), (\w+), 0, [^>]+>>>(\(.*?\));", re.DOTALL)


def load(path: Path, builder: Callable[..., Any]) -> Any:
    """The candidate as a module, its `load_inline` replaced."""
    from torch.utils import cpp_extension  # takes a second: not where tests are collected

    spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stock = cpp_extension.load_inline
    cpp_extension.load_inline = builder
    try:
        spec.loader.exec_module(module)
    finally:
        cpp_extension.load_inline = stock
    return module


def calls() -> dict[int, dict[str, Any]]:
    """What each candidate gives to `load_inline`."""
    found: dict[int, dict[str, Any]] = {}
    for number, path in CANDIDATES.items():
        load(path, lambda number=number, **given: found.setdefault(number, given))
    return found


def emulated(source: str) -> str:
    """CUDA source as C++ for the emulator."""
    source = "\n".join(line for line in source.splitlines() if not line.startswith("#include"))
    # A grid of 4096 blocks takes a minute; grid-stride loops do with fewer.
    source = source.replace("kBlocks = 4096", "kBlocks = 6").replace(".is_cuda()", ".is_cpu()")
    made, count = _LAUNCH.subn(r"emulate(\2, \3, [&] { \1\4; });", source)
    assert count
    return made


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Callable[..., nn.Module]]:
    """`ModelNew` of each candidate, over one extension with all of the emulated sources."""
    from torch.utils import cpp_extension

    given = calls()
    parts = [f"namespace c{number} {{\n{emulated(one['cuda_sources'])}\n}}" for number, one in given.items()]
    names = {number: one["functions"][0] for number, one in given.items()}
    bound = "".join(f'    m.def("{name}", &c{number}::{name});\n' for number, name in names.items())
    source = "\n".join([EMULATOR, *parts, f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{bound}}}"])
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where ninja is
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", programs)
        patch.setenv("MAX_JOBS", "1")
        built = cpp_extension.load_inline(
            name="emulated_candidates", cpp_sources=source, no_implicit_headers=True,
            extra_cflags=["-O1", "-Wno-unknown-pragmas"], extra_ldflags=["-pthread"],
            build_directory=str(tmp_path_factory.mktemp("emulated")),
        )  # fmt: skip
    found = {}
    for number, path in CANDIDATES.items():
        extension = SimpleNamespace(**{names[number]: getattr(built, names[number])})
        found[number] = load(path, lambda extension=extension, **_: extension).ModelNew
    return found


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(1, keepdim=True) + 1e-5).sqrt()


def pool(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.max_pool2d(x, 4, 1, 1)


#: number -> constructor arguments, what is computed, shapes of the inputs
CASES: dict[int, tuple[tuple[Any, ...], Callable[..., torch.Tensor], list[list[tuple[int, ...]]]]] = {
    1: ((), torch.matmul, [[(130, 130)] * 2, [(256, 256)] * 2, [(7, 7)] * 2]),
    4: ((), torch.matmul, [[(5, 4100), (4100, 1)], [(3, 8), (8, 1)]]),
    19: ((), torch.relu, [[(7, 516)], [(1, 4)]]),
    23: ((), lambda x: torch.softmax(x, 1), [[(4, 5000)], [(3, 8)], [(2, 2048)]]),
    26: ((), nn.functional.gelu, [[(7, 516)]]),
    36: ((6,), rms_norm, [[(3, 6, 15, 11)], [(2, 6, 16, 16)]]),
    42: ((4, 1, 1, 1), pool, [[(2, 3, 9, 140)], [(1, 2, 12, 12)]]),
    47: ((1,), lambda x: x.sum(1, keepdim=True), [[(3, 18, 135)], [(2, 4, 5)], [(1, 3, 128)]]),
    89: ((1,), lambda x: x.cumsum(1), [[(3, 5000)], [(2, 2048)], [(2, 4)]]),
    94: ((), nn.functional.mse_loss, [[(40, 300)] * 2, [(1, 4)] * 2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(CASES))
def test_an_emulated_launch_gives_the_right_answer(models: dict[int, Callable[..., nn.Module]], number: int) -> None:
    arguments, expected, cases = CASES[number]
    model = models[number](*arguments)
    generator = torch.Generator().manual_seed(number)
    for shapes in cases:
        for scale in (1.0, 100.0):
            inputs = [torch.randn(shape, generator=generator) * scale for shape in shapes]
            right = expected(*(one.double() for one in inputs))
            got = model(*inputs)
            assert got.dtype == torch.float32 and got.shape == right.shape
            error = (got - right).abs().max() / right.square().mean().sqrt()
            assert error < 1e-5, f"{shapes}: {error:.2g} of the root mean square"


def test_there_is_a_case_for_each_candidate() -> None:
    assert CASES.keys() == CANDIDATES.keys()


#: A candidate file; hipcc takes half a minute to read torch's headers, so it reads them once for all ten.
TOGETHER = """
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="together", cpp_sources={cpp!r}, cuda_sources={cuda!r}, functions={functions!r}, extra_cuda_cflags={flags!r}
)


class ModelNew:
    pass
"""
_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def together() -> str:
    """One candidate with the sources of all, each in a namespace of its own."""
    given = calls()
    includes = {tuple(_INCLUDE.findall(one["cuda_sources"])) for one in given.values()}
    (common,) = includes  # of each: nobody lives on another one's headers
    (flags,) = {tuple(one["extra_cuda_cflags"]) for one in given.values()}
    names = {number: one["functions"][0] for number, one in given.items()}

    def spaces(part: str) -> str:
        return "".join(
            f"namespace c{number} {{\n{_INCLUDE.sub('', one[part])}\n}}\nusing c{number}::{names[number]};\n"
            for number, one in given.items()
        )

    cuda = "".join(common) + spaces("cuda_sources")
    return TOGETHER.format(cpp=spaces("cpp_sources"), cuda=cuda, functions=[*names.values()], flags=[*flags])


@pytest.mark.slow
@pytest.mark.hipcc
def test_hipcc_accepts_them(tmp_path: Path) -> None:
    hip_or_skip("the candidates were not compiled")
    code, output = tmp_path / "together.py", tmp_path / "verdict.json"
    code.write_text(together())
    problem = doors.problem(tmp_path, "1_Any", 1)
    words = ("--code", code, "--problem", problem, "--build-only", "--backend", "hip", "--arch", "gfx942")
    done = doors.call("eval", *words, "--output", output)
    assert done.returncode == 0, done.stdout + done.stderr
    kernels = " ".join(kernel.name for kernel in Verdict.model_validate_json(output.read_text()).resources)
    assert [number for number in CANDIDATES if f"c{number}::" not in kernels] == []
