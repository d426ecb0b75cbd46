"""What a problem's own code says of its tensors."""

from __future__ import annotations

import contextlib
import inspect

import torch

from hkbench.analysis.graph import GraphTrace
from hkbench.analysis.reference import Leaves, Reference
from hkbench.errors import ProblemError
from hkbench.protocol.wire import leaves
from hkbench.records import GraphFacts, Problem, ProblemFacts, ScalarFact, SizeSet, TensorFact


def problem_facts(problem: Problem, sizes: SizeSet) -> ProblemFacts:
    """Return shapes and dtypes of inputs, constructor arguments, outputs, parameters; the operators of one pass.

    Runs the problem on the meta device, which computes shapes and allocates nothing; code that needs real numbers
    is run on the CPU instead.

    Raises:
        ProblemError: the problem's own code fails.
    """
    with contextlib.suppress(ProblemError, RuntimeError, TypeError, ValueError):
        return _facts(problem, sizes, torch.device("meta"))
    try:
        return _facts(problem, sizes, torch.device("cpu"))
    except (RuntimeError, TypeError, ValueError) as error:
        raise ProblemError(f"{problem.path}: its own code fails: {error}") from error


def _facts(problem: Problem, sizes: SizeSet, device: torch.device) -> ProblemFacts:
    with torch.device(device):
        reference = Reference(problem, sizes, device, seed=0)
    inputs = reference.inputs(0)
    outputs, graph = _outputs(reference, inputs)
    names = list(inspect.signature(reference.model.forward).parameters)
    init_names = list(inspect.signature(type(reference.model).__init__).parameters)[1:]
    return ProblemFacts(
        sizes=sizes,
        inputs=_named(names, inputs),
        init_inputs=_named(init_names, reference.init_inputs),
        outputs=tuple(_fact(path, leaf) for path, leaf in outputs.items()),
        parameters=tuple(_tensor(name, value) for name, value in reference.model.state_dict().items()),
        graph=graph,
    )


def _outputs(reference: Reference, inputs: list[object]) -> tuple[Leaves, GraphFacts | None]:
    """Return the outputs of one pass, and what it contains. Code that a trace disturbs runs once more without."""
    trace = GraphTrace()
    try:
        outputs = reference.native(inputs, around=trace)
    except ProblemError:
        return reference.native(inputs), None
    given = [leaf for _, leaf in leaves(inputs, "")]
    held = [*given, *reference.model.state_dict().values(), *outputs.values()]
    return outputs, trace.facts([leaf for leaf in held if isinstance(leaf, torch.Tensor)])


def _named(names: list[str], values: list[object]) -> tuple[TensorFact | ScalarFact, ...]:
    padded = names + [f"argument_{number}" for number in range(len(names), len(values))]
    return tuple(
        _fact(path, leaf) for name, value in zip(padded, values, strict=False) for path, leaf in leaves(value, name)
    )


def _fact(name: str, value: object) -> TensorFact | ScalarFact:
    return _tensor(name, value) if isinstance(value, torch.Tensor) else ScalarFact(name=name, value=repr(value))


def _tensor(name: str, value: torch.Tensor) -> TensorFact:
    return TensorFact(
        name=name,
        shape=tuple(value.shape),
        dtype=str(value.dtype).removeprefix("torch."),
        strides=tuple(value.stride()),
    )
