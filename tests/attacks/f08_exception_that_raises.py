"""F08 hostile error: the text of the exception raises in turn

problem: rowsum
device: both
backend: cpp
outcome: runtime_error|crash|protocol
reason: Hostile|left|neither a result|Error
"""

import torch.nn as nn


class Hostile(Exception):
    def __str__(self):
        raise SystemExit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        raise Hostile
