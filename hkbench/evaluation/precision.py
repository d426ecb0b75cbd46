"""What lowers the precision of PyTorch's and libraries' work in a candidate, by each of three witnesses.

The runner stands in for PyTorch's setters and tells of what is set, also if it is put back within the call; that is its
word. The names of functions in what was built, and the text, the evaluator reads itself. None of it decides: values are
compared by the tolerance of what the problem asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hkbench.profile.names import LOWERING, BuildFolder
from hkbench.records import Finding, LoweredPrecision

_RULES = ("py-low-precision", "cpp-low-precision")
#: Of these rules' lines, those that set something: a cast is seen in the values alone.
_SETS = re.compile(
    "tf32|reduced_precision|fp32_precision|fp16_accumulation|matmul_precision|autocast|math_?(?:mode|type)",
    re.IGNORECASE,
)


def lowered(
    by_setter: Iterable[LoweredPrecision], built: BuildFolder, findings: Iterable[Finding]
) -> tuple[LoweredPrecision, ...]:
    """Return everything that was seen, the runner's word first."""
    names = {name: file for one in built.known.values() for name, file in one.lowers.items()}
    in_files = [LoweredPrecision(flag=name, seen="built file", where=file) for name, file in sorted(names.items())]
    in_text = [
        LoweredPrecision(flag=one.text, seen="source", where=None if one.line is None else f"line {one.line}")
        for one in findings
        if one.rule in _RULES and (_SETS.search(one.text) or LOWERING.search(one.text))
    ]
    return (*by_setter, *in_files, *in_text)
