"""P19 PyTorch's arithmetic: at::cpu::silu_out and at::cpu::mul_out, which the dispatcher does not see

problem: problems/level1/2_SwiGLU_fp32.py
device: cpu
backend: cpp
outcome: not_own|suspect
reason: PyTorch|looked at
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>

void swiglu(at::Tensor gate, at::Tensor up, at::Tensor out) {
  at::cpu::silu_out(out, gate);
  at::cpu::mul_out(out, out, up);
}
"""
module = load_inline("swiglu", SOURCE, functions=["swiglu"], extra_cflags=["-O0"])


class ModelNew(nn.Module):
    def forward(self, gate, up):
        out = torch.empty_like(gate)
        module.swiglu(gate, up, out)
        return out
