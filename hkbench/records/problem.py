"""A problem in KernelBench's format, and what is known of its tensors."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from hkbench.records.base import Record


class SizeSet(StrEnum):
    """Which sizes of a problem are in force (see docs/problems.md)."""

    FULL = "full"  #: the sizes that the file's constants give; right for a GPU
    CPU = "cpu"  #: the file's own `CPU_SIZES`, where it has them
    EMULATED = "emulated"  #: the file's own `EMULATED_SIZES`, else its CPU sizes


class ShapeKind(StrEnum):
    """Where a further shape of a problem comes from (see docs/problems.md)."""

    NAMED = "named"  #: visible: by the file's own `SHAPES`
    RAGGED = "ragged"  #: drawn, as all that follow: no usual tile divides its sizes
    ONE = "one"  #: a constant is 1
    LARGER = "larger"  #: a constant is larger than that in force
    SMALLER = "smaller"


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
    emulated_sizes: dict[str, int | float] | None = None
    shapes: tuple[dict[str, int | float], ...] = ()  #: the file's own `SHAPES`: further values of its constants
    start: str | None = None  #: the file's own `START`: a candidate that a search starts from
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


class OperatorClass(StrEnum):
    """What an operator of a reference does, as far as it decides how a kernel for it is made."""

    MATMUL = "matmul"  #: matrix times matrix or vector, batched or not
    CONV = "conv"
    ATTENTION = "attention"  #: torch's own operator, or two products with a softmax between them
    POOL = "pool"
    NORMALISATION = "normalisation"  #: layer, group, batch norm and softmax as one operator
    REDUCTION = "reduction"
    SCAN = "scan"
    SORT = "sort"
    GATHER = "gather"  #: reads or writes where an index says
    ELEMENTWISE = "elementwise"
    COPY = "copy"  #: moves elements and computes nothing
    OTHER = "other"  #: of an operator that is not known here


class Product(Record):
    """A matrix product [m, k] by [k, n], `batch` of them, and how many operators have these sizes."""

    batch: int
    m: int
    n: int
    k: int
    calls: int


class Convolution(Record):
    """A convolution, each tuple with one number a spatial dimension, and how many operators are like it."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool
    in_channels: int
    out_channels: int
    calls: int


class GraphFacts(Record):
    """What one traced forward pass of the reference contains, at the sizes in force (hkbench/analysis/graph.py).

    `product_flops` are those of products, convolutions and attention (torch.utils.flop_counter: a multiplication and an
    addition are two; a causal mask saves none). `other_flops` count one for each element that an elementwise operator
    writes, that a reduction, a normalisation or a scan reads, and that the windows of a pool hold. `bytes`: inputs,
    parameters, buffers and outputs, each once. `intensity` is (product_flops + other_flops) / bytes, in FLOP/byte: that
    of a kernel which keeps all between in registers; `None` without bytes.
    """

    operators: dict[str, int]  #: aten names without overload -> calls; views and fills too
    classes: dict[OperatorClass, int]  #: calls; views, fills and operators on single numbers are of no class
    steps: int  #: operators that compute or move more than one element: what eager PyTorch launches, about
    products: tuple[Product, ...] = ()
    convolutions: tuple[Convolution, ...] = ()
    pools: tuple[tuple[int, ...], ...] = ()  #: their windows
    reductions: tuple[int, ...] = ()  #: elements that one result takes, of reductions and normalisations, longest first
    kernel_size: int | None = None  #: the largest edge of a convolution's kernel; `None` without convolutions
    product_dtype: str | None = None  #: of the factors of most of `product_flops`
    product_flops: int
    other_flops: int
    bytes: int
    intensity: float | None


class ProblemFacts(Record):
    """What running a problem's own code tells: the tensors and scalars that go in and come out, and what it calls."""

    sizes: SizeSet
    inputs: tuple[TensorFact | ScalarFact, ...]
    init_inputs: tuple[TensorFact | ScalarFact, ...]
    outputs: tuple[TensorFact | ScalarFact, ...]
    parameters: tuple[TensorFact, ...]
    graph: GraphFacts | None = None  #: `None` where the pass could not be traced
