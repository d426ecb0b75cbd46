"""T01 side stream: the work is queued on another stream and never joined

problem: matmul
device: cuda
backend: cuda
outcome: not_finite|suspect|wrong_values|not_repeatable
reason: stream|are wrong|the evaluator's clock
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, a, b):
        with torch.cuda.stream(self.stream):
            return a @ b
