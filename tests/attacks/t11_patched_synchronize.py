"""T11 patched synchronise: synchronize does nothing, so that events and copies come too early

problem: matmul
device: cuda
backend: cuda
outcome: wrong_values|suspect|not_own
reason: are wrong|clock|stream|PyTorch's|libraries'
"""

import torch
import torch.nn as nn

torch.cuda.synchronize = lambda *args, **kwargs: None
torch.cuda.Event.synchronize = lambda self: None
torch.cuda.Stream.synchronize = lambda self: None


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, a, b):
        with torch.cuda.stream(self.stream):
            return a @ b
