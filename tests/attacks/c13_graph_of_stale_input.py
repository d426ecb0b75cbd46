"""C13 graph replay: a captured graph reads a copy of the first input for ever

problem: rowsum
device: cuda
backend: cuda
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.x = x.clone()
            self.x.sum(dim=-1)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.y = self.x.sum(dim=-1)
        self.graph.replay()
        return self.y.clone()
