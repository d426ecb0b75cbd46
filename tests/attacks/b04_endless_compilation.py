"""B04 endless compilation: a constant expression that takes the compiler hours

problem: rowsum
device: cpu
backend: cpp
outcome: build_timeout|build_error
reason: did not end|exceed|limit
options: --build-timeout 8
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <pybind11/pybind11.h>
constexpr unsigned long spin(unsigned long n) {
  unsigned long x = 1;
  for (unsigned long i = 0; i < n; ++i) x = x * 6364136223846793005UL + i;
  return x;
}
constexpr unsigned long value = spin(1UL << 50);
long answer() { return value; }
"""
flags = ["-fconstexpr-ops-limit=1000000000000000", "-fconstexpr-loop-limit=2000000000"]
module = load_inline("endless", SOURCE, functions=["answer"], extra_cflags=flags, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
