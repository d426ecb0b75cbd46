"""Build HipKittens kernels and call them with PyTorch's tensors: `build(name, source, functions)`.

A candidate of backend `hipkittens` writes a kernel, a struct of its arguments and a function that launches it; see
docs/hipkittens.md. The package needs no other part of the project, and works wherever there are ROCm, PyTorch and a
checkout of HipKittens. Importing it does not import PyTorch.
"""

from hipkittens_build.builder import BuildError, build

__all__ = ["BuildError", "build"]
