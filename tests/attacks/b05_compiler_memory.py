"""B05 compiler bomb: a template tree takes gigabytes of the compiler's memory

problem: rowsum
device: cpu
backend: cpp
outcome: build_timeout|load_error|out_of_memory
reason: did not end within|memory
options: --memory-gib 1.5 --build-timeout 20
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <pybind11/pybind11.h>
template <int N, unsigned long P> struct Tree {
  static constexpr unsigned long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <unsigned long P> struct Tree<0, P> { static constexpr unsigned long value = P; };
long answer() { return Tree<26, 1>::value; }
"""
module = load_inline("bomb", SOURCE, functions=["answer"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
