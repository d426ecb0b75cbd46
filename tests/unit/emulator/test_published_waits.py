"""Missing waits that HipKittens' published kernels have are reported at their lines.

HIPKITTENS_CDNA3_ROOT and HIPKITTENS_CDNA4_ROOT name the checkouts. The kernels are right where loads arrive at once,
and wrong where they arrive as late as the waits allow.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, from_bf16, layout, run, to_bf16

from hkbench.emulator.executor import Options
from hkbench.emulator.faults import Fault, Place
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import Dialect

M = N = K = 512
RNG = np.random.default_rng(6)


@dataclass(frozen=True)
class Missing:
    """A wait that a kernel does not have."""

    dialect: Dialect
    file: str
    lds: int
    kind: str
    use: str  #: on the line that uses what was loaded
    load: str  #: on the line that loads it


MISSING = (
    Missing(Dialect.CDNA3, "256_256_64_16.cpp", 64 << 10, "wait", "mma_ABt(C_accum[1], tiles[2]", "load(tiles[2]"),
    Missing(Dialect.CDNA3, "256_256_64_16.cpp", 64 << 10, "race", "load(tiles[1]", "store_register_buffer_to_shared"),
    Missing(Dialect.CDNA4, "256_256_64_32_with16x32.cpp", 160 << 10, "wait", "load(B_tile_0", "G::load(Bs[toc][0]"),
)


def _kernel(missing: Missing) -> tuple[str, Path]:
    """Return a kernel's text, for small matrices and without its binding to Python, and the folder of the headers."""
    variable = f"HIPKITTENS_{missing.dialect.upper()}_ROOT"
    root = Path(os.environ.get(variable) or pytest.skip(f"{variable} names no checkout of HipKittens"))
    found = [path for path in sorted(root.glob(f"kernels/gemm/**/{missing.file}")) if "archive" not in path.parts]
    if not found:
        pytest.skip(f"{root} has no {missing.file}")
    text = found[0].read_text(encoding="utf-8").replace('#include "pyutils/pyutils.cuh"', "")
    text = re.sub(r"^(#define [MNK]) 8192", rf"\1 {M}", text, flags=re.M)
    return text.partition("PYBIND11_MODULE")[0], root / "include"


def _line(place: Place | None, lines: list[str]) -> str:
    assert place is not None
    return lines[int(place.callers[-1].rpartition(":")[2]) - 1]


@pytest.mark.hipcc
@pytest.mark.parametrize("missing", MISSING, ids=lambda one: f"{one.file}-{one.kind}")
def test_a_wait_that_a_published_kernel_misses_is_reported(missing: Missing, tmp_path: Path) -> None:
    hip_or_skip(f"{missing.file} was not executed")
    text, include = _kernel(missing)
    program = Program.load(device_code(text, missing.dialect.arch, tmp_path, include))
    sizes = struct.pack("<3i4x3i", M, N, K, M, N, K) if "int M = a.rows()" in text else b""

    def executed(options: Options) -> tuple[tuple[Fault, ...], bool]:
        a, b, c = (to_bf16(RNG.standard_normal((M, N))) for _ in range(3))
        arguments = layout(a, M, K) + layout(b, N, K) + layout(c, M, N) + bytes(8) + sizes
        outcome = run(program, (4,), 512, arguments, [a, b, c], lds=missing.lds, options=options)
        assert outcome.refusal is None
        expected = from_bf16(a) @ from_bf16(b).T
        return outcome.faults, bool(np.allclose(from_bf16(c), expected, rtol=2**-6, atol=0.25))

    faults, right = executed(Options())
    lines = text.splitlines()
    assert right
    reported = [(fault.kind, _line(fault.use, lines), _line(fault.cause, lines)) for fault in faults]
    assert any(kind == missing.kind and missing.use in use and missing.load in load for kind, use, load in reported)
    late, right = executed(Options(late=True))
    assert late and not right
