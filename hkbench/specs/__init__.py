"""Kernel specs: a kernel with its launch, its inputs and its outputs, as a problem that hkbench judges."""

from hkbench.specs.load import load_spec, load_specs
from hkbench.specs.records import KernelSpec, Launch, Role, Scalar, Tensor
from hkbench.specs.write import LANGUAGES, candidate, problem

__all__ = [
    "LANGUAGES",
    "KernelSpec",
    "Launch",
    "Role",
    "Scalar",
    "Tensor",
    "candidate",
    "load_spec",
    "load_specs",
    "problem",
]
