"""A kernel spec: a kernel's source, how it is launched, and what goes in and comes out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from hkbench.records import BackendName, Record

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w{0,63}$")]
#: Whole numbers over the shapes and the launch constants: names, + - * // %, cdiv, min, max.
Expression = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Size = Annotated[int, Field(ge=1)] | Expression
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


class Role(StrEnum):
    """What a tensor is for."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"  #: read and written; the kernel gets a copy, which is an output


class Fill(StrEnum):
    """What a tensor holds at first."""

    RANDN = "randn"  #: normal, mean 0 and deviation `scale`
    UNIFORM = "uniform"  #: between `low` and `high`; whole numbers below `high` for integer types
    ZEROS = "zeros"
    ONES = "ones"
    FULL = "full"  #: `value`
    ARANGE = "arange"  #: 0, 1, 2, ...
    DATA = "data"  #: `data`
    EMPTY = "empty"  #: of outputs: whatever lies there


class Tensor(Record):
    """A tensor argument. `strides` in elements (default: contiguous)."""

    kind: Literal["tensor"] = "tensor"
    name: Identifier
    dtype: Literal[DTYPES]  # type: ignore[valid-type]
    shape: tuple[Size, ...]
    strides: tuple[Size, ...] | None = None
    role: Role = Role.INPUT
    fill: Fill | None = None  #: default: randn of inputs, empty of outputs
    scale: float = 1.0
    low: float = 0.0
    high: float = 1.0
    value: float = 0.0
    data: str | None = None  #: base64 of the elements, as they lie in memory
    compression: Literal["none", "zlib"] = "none"  #: of `data`, before base64

    @property
    def filled(self) -> Fill:
        """What it holds at first."""
        return self.fill or (Fill.EMPTY if self.role is Role.OUTPUT else Fill.RANDN)

    @model_validator(mode="after")
    def _fits(self) -> Tensor:
        if (self.data is not None) != (self.filled is Fill.DATA):
            raise ValueError(f'tensor {self.name}: `data` and fill "data" belong together')
        if self.filled is Fill.EMPTY and self.role is not Role.OUTPUT:
            raise ValueError(f"tensor {self.name}: an {self.role} cannot be empty; give `fill`")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(
                f"tensor {self.name}: {len(self.strides)} strides for {len(self.shape)} dimensions; give one each"
            )
        if self.strides is not None and self.role is not Role.INPUT:
            raise ValueError(f"tensor {self.name}: only inputs have strides; outputs are contiguous")
        return self


class Scalar(Record):
    """A number argument: a literal, or an expression over the shapes."""

    kind: Literal["scalar"]
    name: Identifier
    dtype: Literal["int32", "int64", "float32", "float64", "bool"] = "int64"
    value: bool | int | float | Expression


Argument = Annotated[Tensor | Scalar, Field(discriminator="kind")]


Sizes = dict[Identifier, Annotated[int, Field(ge=1)]]  #: of shapes, by name


class Launch(Record):
    """How a kernel is launched. C++ on a CPU is called, and has `constants` only."""

    grid: tuple[Size, ...] = Field((), max_length=3)
    block: tuple[Size, ...] = Field((), max_length=3)  #: threads; CUDA and HIP
    shared_bytes: Annotated[int, Field(ge=0)] | Expression = 0  #: dynamic shared memory; CUDA and HIP
    warps: Annotated[int, Field(ge=1, le=32)] = 4  #: Triton
    stages: Annotated[int, Field(ge=1, le=8)] = 2  #: Triton
    constants: dict[Identifier, int] = {}  #: constexpr of Triton; `constexpr int` before C++, CUDA and HIP


def require_known(shapes: Sizes, **others: Sizes | None) -> None:
    """Raise ValueError where sizes for another device, by the field's name, name a shape that there is not."""
    for what, sizes in others.items():
        unknown = sorted(set(sizes or ()) - set(shapes))
        if unknown:
            raise ValueError(f"{what} names {unknown[0]}, which shapes does not: correct the name")


class KernelSpec(Record):
    """A kernel to be made faster."""

    name: Identifier
    language: BackendName
    entry: Identifier  #: the kernel's name in the source
    source: str | None = None
    source_file: str | None = None  #: beside the spec
    arguments: Annotated[tuple[Argument, ...], Field(min_length=1)]  #: in the order of the kernel's own
    shapes: Sizes
    cpu_shapes: Sizes | None = None  #: smaller ones, for a CPU
    emulated_shapes: Sizes | None = None  #: smaller ones, for an emulated GPU
    launch: Launch = Launch()
    flags: tuple[str, ...] = ("-O3",)  #: of the compiler
    link_flags: tuple[str, ...] = ()
    #: Python: `def reference(...)` over the inputs by name, which returns the outputs. None: the kernel itself.
    reference: str | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(argument for argument in self.arguments if isinstance(argument, Tensor))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the kernel is given: those that are read."""
        return tuple(tensor for tensor in self.tensors if tensor.role is not Role.OUTPUT)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.role is not Role.INPUT)

    @model_validator(mode="after")
    def _is_whole(self) -> KernelSpec:
        names = [argument.name for argument in self.arguments]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"argument {twice[0]} stands twice: rename one")
        if (self.source is None) == (self.source_file is None):
            raise ValueError("give either source or source_file")
        if not self.outputs:
            raise ValueError("no argument is an output: give one the role output or inout")
        require_known(self.shapes, cpu_shapes=self.cpu_shapes, emulated_shapes=self.emulated_shapes)
        return self
