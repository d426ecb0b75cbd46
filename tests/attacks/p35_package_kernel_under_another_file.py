"""P35 another's Triton kernel: the code of PyTorch's says that it comes from the candidate's file

problem: honest_softmax
device: cuda
backend: triton
twin: triton_online_softmax
outcome: not_own
reason: PyTorch|librar|own
emulated: not_own|unsupported
"""

import torch
import torch.nn as nn
from torch.sparse import _triton_ops

kernel = _triton_ops._bsr_softmax_kernel
kernel.fn.__code__ = kernel.fn.__code__.replace(co_filename=__file__)
if hasattr(kernel, "file_name"):
    kernel.file_name = __file__


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = None

    def forward(self, x):
        rows, columns = x.shape
        if self.rows is None:  # one block a row
            self.rows = torch.arange(rows + 1, device=x.device)
        y = x.clone()
        kernel[(rows, 1, 1)](
            *(self.rows, 0, 1, y, 0, columns, columns, 1, columns),
            MAX_ROW_NNZ=columns,
            TILE=columns,
            num_warps=8,
        )
        return y
