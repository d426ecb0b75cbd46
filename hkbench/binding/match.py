"""Match the parameters of a bare kernel with the tensors and numbers of a problem: by name, kind, count and order."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hkbench.binding.kernel import BLOCK, BareKernel, Kind, NotCertain, Parameter, Shape, stem
from hkbench.records import ProblemFacts, ScalarFact, TensorFact

#: What numbers are called that come from shapes.
ELEMENTS = frozenset(
    {"n", "n_elements", "num_elements", "numel", "size", "n_elem", "n_elems", "num_elems", "total", "total_elements",
     "nelements", "count", "length", "elements"}
)  # fmt: skip
ROWS = frozenset({"rows", "n_rows", "num_rows", "nrows", "m", "n_tokens", "num_tokens", "tokens"})
COLUMNS = frozenset(
    {"cols", "columns", "n_cols", "num_cols", "ncols", "n_columns", "num_columns", "d", "dim", "hidden", "hidden_size",
     "row_size", "width", "n_features", "hidden_dim", "d_model"}
)  # fmt: skip
_STRIDE = re.compile(r"(?:(?P<of>\w+?)_)?(?:row_stride|stride_row|stride_0)|row_stride|stride")
#: What weights are called for short.
_SHORT = {"w": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}
ELEMENT_BLOCK = 1024


@dataclass(frozen=True)
class Plan:
    """What each parameter gets, as Python over the names that `ModelNew.forward` has (hkbench/binding/write.py)."""

    values: Mapping[str, str]
    output: str  #: of the output: its shape
    output_dtype: str
    main: int  #: position in `forward` of the input whose last dimension is a row
    needs_model: bool  #: a parameter is one of the model's


def matched(kernel: BareKernel, facts: ProblemFacts) -> Plan:
    """Return what each parameter gets. Raises NotCertain."""
    output = _output(facts)
    inputs = [(at, one) for at, one in enumerate(facts.inputs) if isinstance(one, TensorFact)]
    if not inputs:
        raise NotCertain("the problem has no tensor as an input")
    if any(not one.name.isidentifier() for one in facts.inputs):
        raise NotCertain("an input is a list; ask for ModelNew, which takes it apart")
    pointers = _pointers(kernel, inputs, facts.parameters, output)
    main = _main(kernel, inputs)
    given = {one.name: value for one, value in pointers}
    numbers = _Numbers(kernel, facts, main[1], output, {stem(one.name) for one, _ in pointers if one.written})
    for one in kernel.parameters:
        if one.kind is not Kind.POINTER:
            given[one.name] = numbers.value(one)
    numbers.require_bound()
    return Plan(
        values=given,
        output=_output_shape(kernel, main, output),
        output_dtype=output.dtype,
        main=main[0],
        needs_model=bool(facts.parameters),
    )


def _output(facts: ProblemFacts) -> TensorFact:
    tensors = [one for one in facts.outputs if isinstance(one, TensorFact)]
    if len(facts.outputs) != 1 or len(tensors) != 1:
        raise NotCertain(f"the problem returns {len(facts.outputs)} values; ask for ModelNew, which returns them")
    return tensors[0]


def _pointers(
    kernel: BareKernel, inputs: Sequence[tuple[int, TensorFact]], weights: Sequence[TensorFact], output: TensorFact
) -> list[tuple[Parameter, str]]:
    """Return each pointer with the Python of its tensor."""
    pointers = kernel.of_kind(Kind.POINTER)
    written = [one for one in pointers if one.written]
    if len(written) != 1:
        names = ", ".join(one.name for one in written) or "none"
        raise NotCertain(f"it should store through one pointer, the output, and stores through {names}")
    read = [one for one in pointers if not one.written]
    found: list[tuple[Parameter, str]] = [(written[0], "output")]
    _require_dtype(written[0], output)
    for weight in weights:
        last = weight.name.rpartition(".")[2].lower()
        named = [one for one in read if _SHORT.get(stem(one.name), stem(one.name)) == last]
        if len(named) != 1:
            raise NotCertain(f"no argument is called like the model's parameter {weight.name}; ask for ModelNew")
        _require_dtype(named[0], weight)
        found.append((named[0], f"self.{weight.name}"))
        read.remove(named[0])
    if len(read) != len(inputs):
        ours, theirs = ", ".join(one.name for _, one in inputs), ", ".join(one.name for one in read)
        raise NotCertain(f"it reads {len(read)} tensors ({theirs}), and the problem gives {len(inputs)} ({ours})")
    for parameter, (at, tensor) in zip(read, _ordered(read, inputs), strict=True):
        _require_dtype(parameter, tensor)
        found.append((parameter, f"given[{at}]"))
    return found


def _ordered(read: Sequence[Parameter], inputs: Sequence[tuple[int, TensorFact]]) -> Sequence[tuple[int, TensorFact]]:
    """Return the inputs in the order of the pointers: by their names where all have one of them, else as they come."""
    by_name = {tensor.name.lower(): (at, tensor) for at, tensor in inputs}
    stems = [stem(one.name) for one in read]
    if set(stems) == set(by_name):
        return [by_name[one] for one in stems]
    for place, one in enumerate(stems):
        if one in by_name and by_name[one] != inputs[place]:
            raise NotCertain(f"{read[place].name} is called like an input that comes at another place in forward")
    return inputs


def _require_dtype(parameter: Parameter, tensor: TensorFact) -> None:
    if parameter.dtype is not None and parameter.dtype != tensor.dtype:
        raise NotCertain(f"{parameter.name} points at {parameter.dtype}, and {tensor.name} is {tensor.dtype}")


def _is_flat(kernel: BareKernel) -> bool:
    """Tell whether the kernel knows nothing of rows."""
    names = {one.name.lower() for one in kernel.parameters}
    return kernel.shape is Shape.ELEMENTS or (kernel.shape is Shape.CALLED and not names & (ROWS | COLUMNS))


def _main(kernel: BareKernel, inputs: Sequence[tuple[int, TensorFact]]) -> tuple[int, TensorFact]:
    """Return the input that is worked through. Raises NotCertain where others do not lie beside it."""
    main = max(inputs, key=lambda one: math.prod(one[1].shape))
    shape = main[1].shape
    if not shape or 0 in shape:
        raise NotCertain(f"{main[1].name} has no elements to share out")
    fits = {shape} if _is_flat(kernel) else {shape, shape[-1:]}
    other = next((one for _, one in inputs if one.shape not in fits), None)
    if other is not None:
        raise NotCertain(
            f"{other.name} has another shape, {list(other.shape)}, than {main[1].name}, {list(shape)}: how it is read "
            "is not certain; ask for ModelNew"
        )
    return main


def _output_shape(kernel: BareKernel, main: tuple[int, TensorFact], output: TensorFact) -> str:
    """Return the shape of the output, from that of the main input."""
    at, tensor = main
    shape = tensor.shape
    ways = {shape: f"given[{at}].shape"}
    if not _is_flat(kernel):
        ways |= {shape[:-1]: f"given[{at}].shape[:-1]", (*shape[:-1], 1): f"(*given[{at}].shape[:-1], 1)"}
    if output.shape not in ways:
        raise NotCertain(
            f"the output's shape, {list(output.shape)}, is neither that of {tensor.name} nor of its rows; ask for "
            "ModelNew"
        )
    return ways[output.shape]


class _Numbers:
    """What numbers and constants get."""

    def __init__(
        self, kernel: BareKernel, facts: ProblemFacts, main: TensorFact, output: TensorFact, outputs: set[str]
    ) -> None:
        self._kernel = kernel
        self._output = output
        self._outputs = outputs
        self._shape = main.shape
        self._told = self._named(facts)
        self._names = {one.name.lower() for one in kernel.parameters if one.kind is not Kind.POINTER}
        self._sizes: set[str] = set()  # that a parameter gets, strides aside

    @staticmethod
    def _named(facts: ProblemFacts) -> dict[str, tuple[str, object]]:
        """Return by lower-case name the Python and the value of each number that constructor and forward are given."""
        found: dict[str, tuple[str, object]] = {}
        for where, several in (("self.given", facts.init_inputs), ("given", facts.inputs)):
            if any(not one.name.isidentifier() for one in several):
                continue  # a list among them moves the others
            for at, one in enumerate(several):
                if isinstance(one, ScalarFact):
                    found[one.name.lower()] = (f"{where}[{at}]", _number(one.value))
        return found

    def value(self, parameter: Parameter) -> str:
        """Return the Python of what a parameter gets. Raises NotCertain."""
        name = parameter.name.lower()
        of_shape = self._of_shape(name)
        if name in self._told:
            text, value = self._told[name]
            if of_shape is not None and value != of_shape[1]:
                raise NotCertain(f"{parameter.name} may be an argument of the model or a size of its tensors")
            if of_shape is None:
                return self._fitting(parameter, text, value)
        if of_shape is not None:
            if parameter.dtype not in (None, "int32", "int64"):
                raise NotCertain(f"{parameter.name} is a {parameter.dtype}, and sizes are whole numbers")
            self._sizes |= set() if _STRIDE.fullmatch(name) else {of_shape[0]}
            return of_shape[0]
        if parameter.kind is Kind.CONSTANT:
            return self._constant(parameter)
        raise NotCertain(
            f"what {parameter.name} stands for is not known: n_elements, n_rows, n_cols, a row_stride and the names of "
            "the model's own arguments are"
        )

    def require_bound(self) -> None:
        """Raise NotCertain where no size tells the kernel where its data ends."""
        needed = {Shape.ELEMENTS: "elements", Shape.ROWS: "columns"}.get(self._kernel.shape)
        if needed not in self._sizes and (needed is not None or not self._sizes):
            asked = {"elements": "elements there are (n_elements)", "columns": "columns a row has (n_cols)"}
            raise NotCertain(f"no argument says how many {asked.get(needed or '', 'elements or columns there are')}")

    def _of_shape(self, name: str) -> tuple[str, int] | None:
        """Return the Python and the value of a size."""
        columns, count = self._shape[-1], math.prod(self._shape)
        flat = _is_flat(self._kernel)
        beside = COLUMNS | ROWS if flat else COLUMNS
        if name == "n" and self._names & beside:
            raise NotCertain("n may be rows, columns or elements: ask for n_rows, n_cols or n_elements")
        if name in ("n", "size", "length") and flat and self._shape[-2:] == (columns, columns):
            raise NotCertain(f"{name} may be the side of the matrices or the elements: ask for n_elements or n_cols")
        if name in COLUMNS or (name == "n" and not flat):
            return "columns", columns
        if name in ROWS:
            return "rows", count // columns
        if name in ELEMENTS and (flat or self._kernel.shape is Shape.CALLED):
            return "elements", count
        stride = _STRIDE.fullmatch(name)
        if stride is None:
            return None
        of = stem(stride["of"] or "")
        if of in self._outputs or of in ("out", "output"):
            return ("columns", columns) if self._output.shape == self._shape else None
        return "columns", columns

    def _fitting(self, parameter: Parameter, text: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotCertain(f"{parameter.name} is {value!r}, which is not a number")
        if isinstance(value, float) and parameter.dtype in ("int32", "int64"):
            raise NotCertain(f"{parameter.name} is a whole number in the kernel, and {value!r} in the problem")
        return text

    def _constant(self, parameter: Parameter) -> str:
        blocks = [one for one in self._kernel.of_kind(Kind.CONSTANT) if BLOCK.fullmatch(one.name)]
        if blocks == [parameter]:
            if self._kernel.shape is Shape.ROWS:
                return "triton.next_power_of_2(columns)"
            return str(parameter.default if parameter.default is not None else ELEMENT_BLOCK)
        if parameter.default is not None:
            return repr(parameter.default)
        raise NotCertain(f"which value the constant {parameter.name} has is not known; ask for a default")


def _number(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
