#!/usr/bin/env python3
"""How long the emulated device takes for a kernel, and how much longer with its checker.

    python benchmarks/emulator.py
    python benchmarks/emulator.py --repeats 5 --arch gfx950

Kernels are the shipped HipKittens answers. Each is executed alternately plain and checked on all cores that this
process may use; the times are the shortest of the repetitions, and the ratio is that of those. Needs hipcc and
HipKittens (scripts/install_hipkittens.py).

Exit code 0: it was measured, 2: there is no compiler or no HipKittens.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
from support.emulated import Array, device_code, kernel_source, layout, run, to_bf16  # noqa: E402
from support.emulated_cases import source_file  # noqa: E402
from support.kittens import kittens_root  # noqa: E402

from hkbench.cli.arguments import positive  # noqa: E402
from hkbench.emulator.executor import Options  # noqa: E402
from hkbench.emulator.program import Program  # noqa: E402
from hkbench.errors import HkbenchError  # noqa: E402
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect  # noqa: E402

TILE = 128 * 64 * 2  # bytes
Work = tuple[tuple[int, ...], int, bytes, list[Array]]


@dataclass(frozen=True)
class Measured:
    """A kernel's times in seconds, and its wave instructions."""

    kernel: str
    arch: str
    instructions: int
    plain: float
    checked: float

    @property
    def ratio(self) -> float:
        return self.checked / self.plain


def _normal(*shape: int) -> Array:
    return np.random.default_rng(25).standard_normal(shape).astype(np.float32)


def _norm(_: Dialect) -> Work:
    x, weight = _normal(1024, 8192), _normal(8192)
    out = np.zeros_like(x)
    arguments = layout(x, 1024, 8192, fixed=True) + layout(weight, 1, 8192, fixed=True)
    return (1024,), 0, arguments + layout(out, 1024, 8192, fixed=True) + struct.pack("<f", 1e-6), [x, weight, out]


def _product(dialect: Dialect) -> Work:
    n = 1024
    a, b, c = (to_bf16(_normal(n, n).astype(np.float64)) for _ in range(3))
    lds = TILE * 2 * (2 if dialect is Dialect.CDNA4 else 1)
    return (n // 128, n // 128), lds, layout(a, n, n) + layout(b, n, n) + layout(c, n, n), [a, b, c]


def _attention(dialect: Dialect) -> Work:
    shape = (1, 4, 1024, 128)
    tensors: list[Array] = [to_bf16(_normal(*shape).astype(np.float64)) for _ in range(4)]
    arguments = b"".join(layout(x, *shape, fixed=True) for x in tensors)
    lds = 4 * 16 * 64 * 2 if dialect is Dialect.CDNA3 else 2 * 64 * 128 * 2
    return (8, 4, 1), lds, arguments + struct.pack("<f", math.log2(math.e) / math.sqrt(128)), tensors


WORKS: dict[str, tuple[str, Callable[[Dialect], Work]]] = {
    "RMSNorm 1024x8192 fp32": ("4_RMSNorm_fp32", _norm),
    "GEMM 1024^3 bf16": ("17_Matmul_square_bf16", _product),
    "attention 1x4x1024x128 bf16": ("23_Attention_full_bf16", _attention),
}


def measure(kernel: str, dialect: Dialect, include: Path, repeats: int) -> Measured:
    """Compile a kernel, and execute it `repeats` times each way."""
    problem, work = WORKS[kernel]
    with tempfile.TemporaryDirectory() as folder:
        source = kernel_source(source_file(problem, dialect))
        program = Program.load(device_code(source, dialect.arch, Path(folder), include))
    grid, lds, arguments, arrays = work(dialect)
    times: dict[bool, list[float]] = {False: [], True: []}
    instructions = 0
    for _ in range(repeats):
        for check in (False, True):
            begin = time.perf_counter()
            outcome = run(program, grid, 256, arguments, arrays, lds=lds, options=Options(check=check))
            times[check].append(time.perf_counter() - begin)
            if outcome.refusal is not None or outcome.faults:
                raise SystemExit(f"{kernel}: {outcome.refusal or outcome.faults[0]}")
            instructions = outcome.instructions
    return Measured(kernel, dialect.arch, instructions, min(times[False]), min(times[True]))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=positive, default=3, help="executions each way (default: %(default)s)")
    parser.add_argument("--arch", choices=[dialect.arch for dialect in WITH_CARD], help="only this one")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args(argv)
    found: list[Measured] = []
    print(f"{len(os.sched_getaffinity(0))} cores, shortest of {options.repeats}, load {os.getloadavg()[0]:.1f}")
    print(f"{'kernel':30} {'arch':8} {'wave instructions':>18} {'plain s':>9} {'checked s':>10} {'ratio':>6}")
    for dialect in WITH_CARD:
        if options.arch not in (None, dialect.arch):
            continue
        for kernel in WORKS:
            try:
                one = measure(kernel, dialect, kittens_root(dialect) / "include", options.repeats)
            except HkbenchError as error:
                print(error, file=sys.stderr)
                return 2
            found.append(one)
            print(
                f"{one.kernel:30} {one.arch:8} {one.instructions:18,} {one.plain:9.3f} {one.checked:10.3f}"
                f" {one.ratio:6.2f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(one) | {"ratio": one.ratio} for one in found], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
