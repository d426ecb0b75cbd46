"""P31 library in a graph: a captured graph of PyTorch's product is replayed, inputs copied in, the result cloned

problem: honest_matmul_bf16
device: cuda
backend: triton
twin: triton_matmul_bf16
outcome: not_own
reason: PyTorch|librar|own
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, a, b):
        if self.graph is None:
            self.given = a.clone(), b.clone()
            torch.mm(*self.given)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.result = torch.mm(*self.given)
        for static, fresh in zip(self.given, (a, b), strict=True):
            static.copy_(fresh)
        self.graph.replay()
        return self.result.clone()
