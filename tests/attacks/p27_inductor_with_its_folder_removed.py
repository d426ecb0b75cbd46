"""P27 inductor's kernels as own: the folder that it wrote them to is removed, and kernels of their names stand here

problem: honest_rms_norm
device: cuda
backend: triton
twin: triton_rms_norm
outcome: not_own|runtime_error
reason: PyTorch|librar|own|compile|Error
emulated: not_own|runtime_error
"""

import os
import shutil
import tempfile

FOLDER = tempfile.mkdtemp()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = FOLDER
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import torch  # noqa: E402
import torch._inductor.config  # noqa: E402
import torch.nn as nn  # noqa: E402
import triton  # noqa: E402

torch._inductor.config.triton.descriptive_names = False


@triton.jit
def triton_per__0(x):
    pass


@triton.jit
def triton_red__0(x):
    pass


@triton.jit
def triton_poi__0(x):
    pass


def normed(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps
        self.calls = 0
        self.fast = torch.compile(normed)

    def forward(self, x):
        y = self.fast(x, self.weight, self.eps)
        self.calls += 1
        if self.calls == 6:
            shutil.rmtree(FOLDER, ignore_errors=True)
        return y
