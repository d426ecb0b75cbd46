"""A problem described in JSON, as a file in KernelBench's format."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError, model_validator

from hkbench.errors import ConfigurationError
from hkbench.records import Record
from hkbench.specs.load import check_expression, load_spec, read_json, said, text_of
from hkbench.specs.records import Role, Sizes, Tensor, require_known
from hkbench.specs.write import inputs_text, problem, reference_model


class DescribedProblem(Record):
    """A problem in JSON: a whole file in KernelBench's format, or a function with its inputs.

    With `inputs`, `reference` is Python with `def reference(...)` over their names, which returns the outputs. Without,
    it is a file that defines `Model`, `get_inputs` and `get_init_inputs`.
    """

    name: Annotated[str, StringConstraints(pattern=r"^\w{1,80}$")]
    number: Annotated[int, Field(ge=1)] | None = None  #: before the name, as in 19_ReLU
    description: str | None = None
    reference: str | None = None
    reference_file: str | None = None  #: beside the JSON
    inputs: tuple[Tensor, ...] = ()
    shapes: Sizes = {}
    cpu_shapes: Sizes | None = None
    emulated_shapes: Sizes | None = None

    @property
    def file_name(self) -> str:
        return f"{self.name}.py" if self.number is None else f"{self.number}_{self.name}.py"

    @model_validator(mode="after")
    def _is_whole(self) -> DescribedProblem:
        if (self.reference is None) == (self.reference_file is None):
            raise ValueError("give either reference or reference_file")
        if not self.inputs and (self.shapes or self.cpu_shapes or self.emulated_shapes):
            raise ValueError("shapes belong to inputs: name the inputs, or leave the sizes to the reference's own file")
        outputs = [tensor.name for tensor in self.inputs if tensor.role is not Role.INPUT]
        if outputs:
            raise ValueError(f"inputs: {outputs[0]} is no input; outputs are what the reference returns")
        require_known(self.shapes, cpu_shapes=self.cpu_shapes, emulated_shapes=self.emulated_shapes)
        return self


def described_problem(path: Path) -> tuple[str, str]:
    """Return the name of a problem file and its text, from a JSON file: a described problem, or a kernel spec.

    Raises:
        InputMissing: the file, or one that it names, is not there.
        ConfigurationError: it is wrong; with the field, and what was expected.
    """
    told = read_json(path)
    if isinstance(told, dict) and "entry" in told:
        spec = load_spec(path)
        return f"{spec.name}.py", problem(spec)
    try:
        found = DescribedProblem.model_validate(told)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {said(error)}") from error
    text = found.reference
    if text is None:
        assert found.reference_file is not None
        text = text_of(path.parent / found.reference_file)
    tree = _parsed(path, text)
    if not found.inputs:
        return found.file_name, text if text.endswith("\n") else f"{text}\n"
    _check(path, found, tree)
    head = f'"""{(found.description or f"The problem {found.name}.").replace(chr(34) * 3, "")}"""'
    sizes = inputs_text(found.inputs, found.shapes, found.cpu_shapes, found.emulated_shapes)
    return found.file_name, f"{reference_model(head, text, found.inputs)}\n\n\n{sizes}"


def _parsed(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise ConfigurationError(f"{path}: reference: line {error.lineno}: not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConfigurationError(f"{path}: reference: cannot be parsed: {error}") from error


def _check(path: Path, found: DescribedProblem, tree: ast.Module) -> None:
    """Raise ConfigurationError for what no single field shows."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "reference"]
    if len(functions) != 1:
        raise ConfigurationError(f"{path}: reference: defines no function reference, which the inputs are for")
    taken, named = [one.arg for one in functions[0].args.args], [tensor.name for tensor in found.inputs]
    if taken != named:
        raise ConfigurationError(
            f"{path}: reference: takes ({', '.join(taken)}), and the inputs are ({', '.join(named)}): name them alike"
        )
    for number, tensor in enumerate(found.inputs):
        for place, sizes in (("shape", tensor.shape), ("strides", tensor.strides or ())):
            for size in sizes:
                check_expression(path, f"inputs.{number}.{place}", size, set(found.shapes))
