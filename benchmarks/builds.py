#!/usr/bin/env python3
"""What a build costs: torch's own `load_inline` and the same call with what the harness prepares, in turn.

    python benchmarks/patch_torch.py --compiler g++
    python benchmarks/patch_torch.py --compiler nvcc --repeats 5 --json patch_torch.json
    python benchmarks/patch_torch.py --compiler nvcc --candidate benchmarks/candidates/kernelbench_level1/23_Softmax.py
    python benchmarks/patch_torch.py --compiler hipcc --arch gfx942
    python benchmarks/patch_torch.py --compiler hipcc-torch --broken

"hipcc" is the builder of `--build-only`, "hipcc-torch" torch's own `load_inline` as it is on ROCm, whether or not the
installed torch is built for that. With `--broken` the sources do not compile, and the messages have to be the same.

Each build is made in a process and a folder of its own; importing torch is outside of the figures. Medians of wall
clock and of CPU time (user and system) of everything that the build started. The machine code of the kernels has to be
the same on both sides: exit code 1 if it is not. Other functions are compared too; the JSON names those that differ.
What is prepared is made before the first build and timed apart. With `--candidate`, the cases are the calls in that
file. nvcc also compiles where torch is built without CUDA (CUDA_HOME or PATH names it, TORCH_CUDA_ARCH_LIST the
architecture).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.hip_builds import HipBuilds, device_text, offer_hipcc, rocm_home
from benchmarks.nvcc_builds import UNCOMPRESSED, calls_of, offer_nvcc
from benchmarks.object_code import device_functions, differences, own_functions
from hkbench.engine.preparation import Store
from hkbench.fastbuild.hip_pch import HipPchCache
from hkbench.fastbuild.pch_cache import PchCache
from hkbench.store.files import write_atomic
from hkbench.toolchain.diagnostics import without_commands
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import find_hip

HOST_FLAGS = ["-O3", "-march=native", "-fopenmp"]
HOST = r"""
#include <cmath>

torch::Tensor scaled_relu(torch::Tensor x, double scale) {
    TORCH_CHECK(x.is_contiguous(), "x has to be contiguous");
    auto out = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* to = out.data_ptr<float>();
    const int64_t count = x.numel();
    #pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) to[i] = std::fmax(in[i], 0.0f) * float(scale);
    return out;
}
"""
BOUND = """
#include <cmath>
#include <cstdint>
#include <pybind11/pybind11.h>

void scaled_relu(uintptr_t from, uintptr_t to, int64_t count, double scale) {
    const float* in = reinterpret_cast<const float*>(from);
    float* out = reinterpret_cast<float*>(to);
    #pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) out[i] = std::fmax(in[i], 0.0f) * float(scale);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled_relu", &scaled_relu); }
"""
DEVICE = """
__global__ void scaled_relu_kernel(const float* in, float* out, long count, float scale) {
    const long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = fmaxf(in[i], 0.0f) * scale;
}

torch::Tensor scaled_relu(torch::Tensor x, double scale) {
    auto out = torch::empty_like(x);
    const long count = x.numel();
    scaled_relu_kernel<<<(count + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), count, float(scale));
    return out;
}
"""
DECLARED = "torch::Tensor scaled_relu(torch::Tensor x, double scale);"
EXTENSION = "#include <torch/extension.h>"
BROKEN = "\nint broken() { return no_such_name; }\n"
ARCH = "HKBENCH_BENCH_ARCH"  #: of hipcc's builds in torch
MESSAGE = "message of the build"
MESSAGE_LIMIT = 1 << 20

#: Host functions that are kernels. Others hold what GCC inlines of PyTorch's headers, and that
#: depends on how much else it compiles. Device code is compared whole.
KERNELS = re.compile(rf"_omp_fn|device code|^main\.o: scaled_relu\(unsigned long|^{MESSAGE}")

#: compiler -> what is included -> arguments of load_inline
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "g++": {
        "torch/extension.h": {"cpp_sources": HOST, "functions": ["scaled_relu"], "extra_cflags": HOST_FLAGS},
        "pybind11/pybind11.h": {"cpp_sources": BOUND, "no_implicit_headers": True, "extra_cflags": HOST_FLAGS},
    },
    "nvcc": {
        "torch/types.h (load_inline's own)": {
            "cpp_sources": DECLARED, "cuda_sources": DEVICE, "functions": ["scaled_relu"],
            "extra_cuda_cflags": ["-O3", UNCOMPRESSED],
        },
        "torch/extension.h": {
            "cpp_sources": DECLARED, "cuda_sources": f"{EXTENSION}\n{DEVICE}", "functions": ["scaled_relu"],
            "extra_cuda_cflags": ["-O3", UNCOMPRESSED],
        },
    },
    "hipcc-torch": {
        "torch/extension.h": {
            "cpp_sources": DECLARED, "cuda_sources": f"{EXTENSION}\n{DEVICE}", "functions": ["scaled_relu"],
            "extra_cuda_cflags": ["-O3"],
        },
    },
}  # fmt: skip


@dataclass
class RunnerClient:
    """Builds of one case made one way."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    code: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    case: str
    stock: RunnerClient
    quick: RunnerClient

    @property
    def different(self) -> list[str]:
        return differences(self.stock.code, self.quick.code)

    @property
    def kernels(self) -> list[str]:
        return [name for name in self.stock.code if KERNELS.search(name)]

    @property
    def different_kernels(self) -> list[str]:
        return [name for name in self.different if KERNELS.search(name)]

    def figures(self) -> dict[str, Any]:
        sides = {"stock": self.stock, "quick": self.quick}
        return {
            "case": self.case,
            "builds": len(self.stock.wall),
            **{f"{name}_wall_seconds": side.wall for name, side in sides.items()},
            **{f"{name}_cpu_seconds": side.cpu for name, side in sides.items()},
            "wall_ratio": median(self.stock.wall) / median(self.quick.wall),
            "cpu_ratio": median(self.stock.cpu) / median(self.quick.cpu),
            "kernels_compared": self.kernels,
            "kernels_that_differ": self.different_kernels,
            "functions_compared": len(self.stock.code),
            "functions_that_differ": self.different,
        }


def build_here(arguments: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: one call of load_inline, and what it said if it failed."""
    from hkbench.fastbuild.inside import patch_torch
    from hkbench.runner import capture

    if ARCH in os.environ:
        offer_hipcc(capture.cpp_extension, os.environ[ARCH])
    elif arguments.get("cuda_sources"):
        offer_nvcc(capture.cpp_extension)
    patch_torch.enable_fast_builds_if_offered(capture.cpp_extension)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    said = ""
    try:
        capture.cpp_extension.load_inline(**{"name": "scaled_relu"} | arguments)
    except RuntimeError as error:
        said = str(error)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "said": said}


def build(case: dict[str, Any], offered: dict[str, str], folder: Path) -> dict[str, Any]:
    """Return the same in a child, with its caches in `folder`, and with `offered` in its environment."""
    (folder / "tmp").mkdir(parents=True)
    environment = dict(os.environ) | {"TMPDIR": str(folder / "tmp"), "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    done = subprocess.run(command, env=environment | offered, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the build failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if figures["said"] and "no_such_name" not in figures["said"]:
        raise SystemExit(f"the build failed:\n{figures['said'][-4000:]}")
    return figures


def result_of(figures: dict[str, Any], folder: Path) -> dict[str, list[str]]:
    """Return what has to be the same on both sides: the message of a build that failed, the code of any other."""
    said = figures["said"].replace(str(folder), "FOLDER").partition(": ")[2]  # torch's "Error building extension"
    said = without_commands(said, MESSAGE_LIMIT)
    return {MESSAGE: said.splitlines()} if said else code_of(folder)


def code_of(folder: Path) -> dict[str, list[str]]:
    """Of all objects of one build."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.o")):
        functions = own_functions(path) | device_functions(path)
        found |= {f"{path.name}: {name}": code for name, code in functions.items()}
    for library in folder.rglob("*.so") if ARCH in os.environ else ():
        found |= device_text(library, os.environ[ARCH])
    return found


def prepare(stores: Sequence[Store], case: dict[str, Any], scratch: Path) -> float:
    """Make what a first build of the case requested; the seconds that takes."""
    folder = scratch / "first"
    build(case, offered_by(stores), folder)
    begin = time.monotonic()
    for store in stores:
        for request in store.requested(folder):
            store.make(request, (), store.new_folder(), None)
    return time.monotonic() - begin


def offered_by(stores: Sequence[Store]) -> dict[str, str]:
    """Return what a quick build finds in its environment."""
    return {name: value for store in stores for name, value in store.environment.items()}


def broken(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case with a source that does not compile: the device's where there is one."""
    name = "cuda_sources" if "cuda_sources" in case else "cpp_sources"
    sources = case[name]
    return case | {name: [*([sources] if isinstance(sources, str) else sources), BROKEN]}


def measure(
    name: str, case: dict[str, Any], stores: Sequence[Store], repeats: int, scratch: Path, say: Callable[[str], None]
) -> Row:
    """Build the case in turn, stock and quick."""
    made = prepare(stores, case, scratch)
    say(f"{name}: prepared in {made:.1f} s" if made > 0.1 else f"{name}: was prepared")
    row = Row(name, RunnerClient(), RunnerClient())
    for number in range(repeats):
        for side, offered in ((row.stock, {}), (row.quick, offered_by(stores))):
            folder = scratch / f"{number}{'_quick' if offered else ''}"
            figures = build(case, offered, folder)
            side.wall.append(figures["wall"])
            side.cpu.append(figures["cpu"])
            side.code = result_of(figures, folder)
        say(f"{name}: {row.stock.wall[-1]:.1f} s, quick {row.quick.wall[-1]:.1f} s")
    return row


def measure_hip(arch: str, repeats: int, store: Path | None, scratch: Path, say: Callable[[str], None]) -> Row:
    """Return the same for hipcc, through the builder of `--build-only`."""
    call = ExtensionCall(
        name="scaled_relu",
        cpp_sources=(DECLARED,),
        cuda_sources=(f"{EXTENSION}\n{DEVICE}",),
        functions={"scaled_relu": ""},
        extra_cuda_cflags=("-O3",),
    )
    builds = HipBuilds(call, arch, store)
    say(f"{arch}: prepared in {builds.prepare(scratch / 'first'):.1f} s")
    row = Row(f"torch/extension.h, {arch}", RunnerClient(), RunnerClient())
    for number in range(repeats):
        for side, quick in ((row.stock, False), (row.quick, True)):
            folder = scratch / f"{number}{'_quick' if quick else ''}"
            figures = builds.build(folder, quick)
            side.wall.append(figures["wall"])
            side.cpu.append(figures["cpu"])
            side.code = builds.code(folder)
        say(f"{arch}: {row.stock.wall[-1]:.1f} s, quick {row.quick.wall[-1]:.1f} s")
    return row


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    lines = [
        "| includes | stock, s | quick, s | ratio | CPU s: stock, quick | functions, different |",
        "|" + " --- |" * 6,
    ]
    for row in rows:
        wall, cpu = (median(row.stock.wall), median(row.quick.wall)), (median(row.stock.cpu), median(row.quick.cpu))
        lines.append(
            f"| {row.case} | {wall[0]:.1f} | {wall[1]:.1f} | {wall[0] / wall[1]:.1f} | {cpu[0]:.1f}, {cpu[1]:.1f} "
            f"| {len(row.kernels)}, {len(row.different_kernels)} | {len(row.stock.code)}, {len(row.different)} |"
        )
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Exit code 1: some kernel's code differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=[*CASES, "hipcc"], default="g++")
    parser.add_argument("--arch", default="gfx942", help="for hipcc")
    parser.add_argument("--broken", action="store_true", help="sources that do not compile")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--store", type=Path, help="where prepared files are kept (default: the user's cache)")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--candidate", type=Path, action="append", help="a file whose calls of load_inline are the cases"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(build_here(json.loads(options.one))))
        return 0
    rows = []
    stores: list[Store] = [PchCache(options.store)]
    if options.compiler == "hipcc-torch":
        os.environ.update(rocm_home() | {ARCH: options.arch})
        stores = [PchCache(options.store), HipPchCache(find_hip(), options.store, os.environ)]
    cases = CASES.get(options.compiler, {"": {}})
    if options.candidate:
        cases = {f"{path.name} ({call['name']})": call for path in options.candidate for call in calls_of(path)}
    for name, case in cases.items():
        with tempfile.TemporaryDirectory(prefix="hkbench-builds-") as scratch:
            if options.compiler == "hipcc":
                rows.append(measure_hip(options.arch, options.repeats, options.store, Path(scratch), _say))
            else:
                wanted = broken(case) if options.broken else case
                rows.append(measure(name, wanted, stores, options.repeats, Path(scratch), _say))
    print(table(rows))
    for row in rows:
        for name in row.different_kernels:
            print(f"{row.case}: the code of {name} differs")
    if options.json is not None:
        write_atomic(options.json, json.dumps([row.figures() for row in rows], indent=2) + "\n")
    return int(any(row.different_kernels or not row.kernels for row in rows))


if __name__ == "__main__":
    sys.exit(main())
