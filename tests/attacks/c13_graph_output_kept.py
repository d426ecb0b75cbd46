"""C13 graph replay: the graph's own output buffer is returned each time

problem: rowsum
device: cuda
backend: cuda
outcome: aliased_output|not_own
reason: result before it|PyTorch|library
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            x.sum(dim=-1)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = x.sum(dim=-1)
        self.graph.replay()
        return self.y
