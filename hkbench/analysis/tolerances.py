"""Relative tolerances by dtype. No torch: prompts state them too."""

from __future__ import annotations

#: float32 as KernelBench has it; half types about four roundings (units in the last place are 2^-8 for bfloat16, 2^-11
#: for float16), as torch.testing takes for bfloat16. What is not listed (integers, booleans) is compared exactly.
RTOL_BY_NAME = {
    "float64": 1e-7,
    "float32": 1e-4,
    "float16": 5e-3,
    "bfloat16": 1.6e-2,
    "float8_e4m3fn": 0.125,
    "float8_e5m2": 0.25,
    "complex64": 1e-4,
    "complex128": 1e-7,
}
WIDEST = 10.0  #: eager's own error may widen a tolerance by at most this factor
