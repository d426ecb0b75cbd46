"""Relative tolerances by dtype. No torch: prompts state them too."""

from __future__ import annotations

from hkbench.records import RuleSet

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
#: atol and rtol of KernelBench's comparison (torch.allclose) by the dtype of the output, as get_tolerance_for_precision
#: in its src/kernelbench/eval.py has them (commit 423217d); what it does not list is taken as float32.
KERNELBENCH_TOLERANCES = {"float16": 1e-2, "bfloat16": 1e-2}
KERNELBENCH_DEFAULT = 1e-4
WIDEST = 10.0  #: eager's own error may widen a tolerance by at most this factor


def kernelbench_tolerance(dtype: str) -> float:
    """Return KernelBench's tolerance for a dtype by name, of integers too; it is atol as well as rtol."""
    return KERNELBENCH_TOLERANCES.get(dtype, KERNELBENCH_DEFAULT)


def tolerances_of(rules: RuleSet) -> dict[str, float]:
    """Return the tolerances by dtype under these rules, of the dtypes that hkbench does not compare exactly."""
    if rules is RuleSet.HKBENCH:
        return dict(RTOL_BY_NAME)
    return {name: kernelbench_tolerance(name) for name in RTOL_BY_NAME}
