#!/usr/bin/env python3
"""What a build costs: torch's own `load_inline` and the same call with what the harness prepares, in turn.

    python benchmarks/builds.py --compiler g++
    python benchmarks/builds.py --compiler nvcc --repeats 5 --json builds.json
    python benchmarks/builds.py --compiler nvcc --candidate benchmarks/candidates/kernelbench_level1/23_Softmax.py
    python benchmarks/builds.py --compiler hipcc --arch gfx942

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

from benchmarks.hip_builds import HipBuilds
from benchmarks.nvcc_builds import UNCOMPRESSED, calls_of, offer_nvcc
from benchmarks.object_code import device_functions, differences, own_functions
from hkbench.engine.kits import Kits, wishes
from hkbench.runner.builds import KITS, WISHES
from hkbench.store.files import write_atomic
from hkbench.toolchain.extension import ExtensionCall

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

#: Host functions that are kernels. Others hold what GCC inlines of PyTorch's headers, and that
#: depends on how much else it compiles. Device code is compared whole.
KERNELS = re.compile(r"_omp_fn|device code|^main\.o: scaled_relu\(unsigned long")

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
}  # fmt: skip


@dataclass
class Side:
    """Builds of one case made one way."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    code: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    case: str
    stock: Side
    quick: Side

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


def build_here(arguments: dict[str, Any]) -> dict[str, float]:
    """In a process of its own: one call of load_inline."""
    from hkbench.runner import builds, capture  # imports torch

    if arguments.get("cuda_sources"):
        offer_nvcc(capture.cpp_extension)
    if KITS in os.environ:
        builds.quicken(capture.cpp_extension, Path(os.environ[KITS]))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    capture.cpp_extension.load_inline(**{"name": "scaled_relu"} | arguments)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def build(case: dict[str, Any], store: Path | None, folder: Path) -> dict[str, float]:
    """The same in a child, with its caches in `folder`."""
    (folder / "tmp").mkdir(parents=True)
    environment = dict(os.environ) | {"TMPDIR": str(folder / "tmp"), "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    environment |= {KITS: str(store)} if store is not None else {}
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the build failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def code_of(folder: Path) -> dict[str, list[str]]:
    """Of all objects of one build."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.o")):
        functions = own_functions(path) | device_functions(path)
        found |= {f"{path.name}: {name}": code for name, code in functions.items()}
    return found


def prepare(kits: Kits, case: dict[str, Any], scratch: Path) -> float:
    """Makes what a first build of the case wished for; the seconds that takes."""
    folder = scratch / "first"
    build(case, kits.store, folder)
    begin = time.monotonic()
    for wish in wishes(folder / WISHES):
        kits.make(wish)
    return time.monotonic() - begin


def measure(
    name: str, case: dict[str, Any], kits: Kits, repeats: int, scratch: Path, say: Callable[[str], None]
) -> Row:
    """Builds the case in turn, stock and quick."""
    made = prepare(kits, case, scratch)
    say(f"{name}: prepared in {made:.1f} s" if made > 0.1 else f"{name}: was prepared")
    row = Row(name, Side(), Side())
    for number in range(repeats):
        for side, store in ((row.stock, None), (row.quick, kits.store)):
            folder = scratch / f"{number}{'' if store is None else '_quick'}"
            figures = build(case, store, folder)
            side.wall.append(figures["wall"])
            side.cpu.append(figures["cpu"])
            side.code = code_of(folder)
        say(f"{name}: {row.stock.wall[-1]:.1f} s, quick {row.quick.wall[-1]:.1f} s")
    return row


def measure_hip(arch: str, repeats: int, store: Path | None, scratch: Path, say: Callable[[str], None]) -> Row:
    """The same for hipcc, through the builder of `--build-only`."""
    call = ExtensionCall(
        name="scaled_relu",
        cpp_sources=(DECLARED,),
        cuda_sources=(f"{EXTENSION}\n{DEVICE}",),
        functions={"scaled_relu": ""},
        extra_cuda_cflags=("-O3",),
    )
    builds = HipBuilds(call, arch, store)
    say(f"{arch}: prepared in {builds.prepare(scratch / 'first'):.1f} s")
    row = Row(f"torch/extension.h, {arch}", Side(), Side())
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
    cases = CASES.get(options.compiler, {"": {}})
    if options.candidate:
        cases = {f"{path.name} ({call['name']})": call for path in options.candidate for call in calls_of(path)}
    for name, case in cases.items():
        with tempfile.TemporaryDirectory(prefix="hkbench-builds-") as scratch:
            if options.compiler == "hipcc":
                rows.append(measure_hip(options.arch, options.repeats, options.store, Path(scratch), _say))
            else:
                rows.append(measure(name, case, Kits(options.store), options.repeats, Path(scratch), _say))
    print(table(rows))
    for row in rows:
        for name in row.different_kernels:
            print(f"{row.case}: the code of {name} differs")
    if options.json is not None:
        write_atomic(options.json, json.dumps([row.figures() for row in rows], indent=2) + "\n")
    return int(any(row.different_kernels or not row.kernels for row in rows))


if __name__ == "__main__":
    sys.exit(main())
