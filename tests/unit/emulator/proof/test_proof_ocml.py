"""AMD's mathematics library, compiled for the device and executed, against the host's: whole sequences of instructions.

Arguments are spread over what each function is for. The host's functions are computed in double precision; those in
double themselves are compared with the host's C library, which is within an ulp.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.compilers import hip_or_skip
from support.emulated import device_code, run
from unit.emulator.proof import machine

from hkbench.emulator.program import Program

_COUNT = 512
_LIMIT = 3.0  #: units in the last place
_Doubles = NDArray[np.float64]

#: name -> the host's function, lowest and highest argument, and the limit where it is not 3 ulp.
_ONE: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "sin": (math.sin, -1e5, 1e5, _LIMIT),
    "cos": (math.cos, -1e5, 1e5, _LIMIT),
    "tan": (math.tan, -100, 100, _LIMIT),
    "asin": (math.asin, -1, 1, _LIMIT),
    "acos": (math.acos, -1, 1, _LIMIT),
    "atan": (math.atan, -50, 50, _LIMIT),
    "sinh": (math.sinh, -20, 20, _LIMIT),
    "cosh": (math.cosh, -20, 20, _LIMIT),
    "tanh": (math.tanh, -8, 8, _LIMIT),
    "exp": (math.exp, -80, 80, _LIMIT),
    "exp2": (lambda x: 2.0**x, -120, 120, _LIMIT),
    "expm1": (math.expm1, -5, 20, _LIMIT),
    "log": (math.log, 1e-30, 1e30, _LIMIT),
    "log2": (math.log2, 1e-30, 1e5, _LIMIT),
    "log10": (math.log10, 1e-30, 1e5, _LIMIT),
    "log1p": (math.log1p, -0.9, 100, _LIMIT),
    "sqrt": (math.sqrt, 0, 1e30, 0.5),
    "cbrt": (math.cbrt, -1e9, 1e9, _LIMIT),
    "erf": (math.erf, -4, 4, _LIMIT),
    "floor": (math.floor, -1e6, 1e6, 0),
}
_TWO: dict[str, tuple[Callable[[float, float], float], float]] = {
    "pow": (math.pow, _LIMIT),
    "fmod": (math.fmod, 0),
    "hypot": (math.hypot, _LIMIT),
    "atan2": (math.atan2, _LIMIT),
    "quotient": (lambda x, y: x / y, 0.5),
}


def _source(type_: str) -> str:
    suffix = "f" if type_ == "float" else ""
    head = f'#include <hip/hip_runtime.h>\n#define K(name, e) extern "C" __global__ void name(const {type_}* a, \\\n'
    head += f"const {type_}* b, {type_}* o) {{ int i = blockIdx.x * 64 + threadIdx.x; \\\n"
    head += f"{type_} x = a[i], y = b[i]; o[i] = e; }}\n"
    head += f"static __device__ {type_} quotient{suffix}({type_} x, {type_} y) {{ return x / y; }}\n"
    one = "".join(f"K(k_{name}, {name}{suffix}(x) + 0 * y)\n" for name in _ONE)
    return head + one + "".join(f"K(k_{name}, {name}{suffix}(x, y))\n" for name in _TWO)


def _computed(program: Program, kernel: str, a: _Doubles, b: _Doubles, type_: type[np.floating]) -> _Doubles:
    arrays = [np.ascontiguousarray(values, type_) for values in (a, b, np.zeros(_COUNT))]
    kernarg = struct.pack("<3Q", *(array.ctypes.data for array in arrays))
    outcome = run(program, (_COUNT // 64,), 64, kernarg, arrays, kernel=kernel)
    assert outcome.refusal is None, outcome.refusal
    assert outcome.faults == ()
    return arrays[2].astype(np.float64)


def _ulps(have: _Doubles, want: _Doubles, type_: type[np.floating]) -> float:
    near = np.abs(want.astype(type_))
    step = np.spacing(np.maximum(near, np.finfo(type_).tiny)).astype(np.float64)
    return float(np.max(np.abs(have - want) / step))


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize(("name", "type_"), [("float", np.float32), ("double", np.float64)])
def test_functions_of_the_device_are_those_of_the_host(
    name: str, type_: type[np.floating], arch: str, tmp_path: Path
) -> None:
    hip_or_skip("the device's mathematics library was not executed")
    program = Program.load(device_code(_source(name), arch, tmp_path))
    rng = np.random.default_rng(3)
    spare = 0.5 if type_ is np.float64 else 0.01  # the host's own error
    worst: dict[str, float] = {}
    limits: dict[str, float] = {}
    for kernel, (function, low, high, limit) in _ONE.items():
        a = rng.uniform(low, high, _COUNT).astype(type_).astype(np.float64)
        a[: _COUNT // 2] *= 2.0 ** -rng.integers(0, 20, _COUNT // 2)  # half of them small
        if low > 0:
            a = np.maximum(a, low)
        want = np.array([function(x) for x in a.tolist()])
        worst[kernel] = _ulps(_computed(program, f"k_{kernel}", a, np.ones(_COUNT), type_), want, type_)
        limits[kernel] = limit
    for kernel, (pair, limit) in _TWO.items():
        a, b = rng.uniform(0.1, 10, (2, _COUNT)).astype(type_).astype(np.float64)
        want = np.array([pair(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
        worst[kernel] = _ulps(_computed(program, f"k_{kernel}", a, b, type_), want, type_)
        limits[kernel] = limit
    too_far = {kernel: f"{ulp:.2f}" for kernel, ulp in worst.items() if ulp > limits[kernel] + spare}
    assert not too_far, too_far
