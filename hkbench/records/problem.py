"""A problem in KernelBench's format, and what is known of its tensors."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from hkbench.records.base import Record


class SizeSet(StrEnum):
    """Which sizes of a problem are in force (see docs/problems.md)."""

    FULL = "full"  #: the sizes that the file's constants give; right for a GPU
    CPU = "cpu"  #: the file's own `CPU_SIZES`, where it has them


class Problem(Record):
    """One problem file.

    `number` and `name` come from the file name: `19_ReLU.py` is number 19, name `19_ReLU`.
    """

    number: int
    name: str
    level: int | None
    path: Path
    source: str
    sha256: str
    cpu_sizes: dict[str, int | float] | None = None
    weak: tuple[str, ...] | None = None  #: null controls that pass its check; `None`: it was not audited


class TensorFact(Record):
    """One tensor: its name in `forward` (or the path of an output leaf), shape, dtype and strides (elements)."""

    name: str
    shape: tuple[int, ...]
    dtype: str  #: as torch prints it, without "torch.": "float32"
    strides: tuple[int, ...]


class ScalarFact(Record):
    """One argument that is not a tensor, as Python prints it."""

    name: str
    value: str


class ProblemFacts(Record):
    """What running a problem's own code tells: the tensors and scalars that go in and come out."""

    sizes: SizeSet
    inputs: tuple[TensorFact | ScalarFact, ...]
    init_inputs: tuple[TensorFact | ScalarFact, ...]
    outputs: tuple[TensorFact | ScalarFact, ...]
    parameters: tuple[TensorFact, ...]
