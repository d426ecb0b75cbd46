"""S06 answer from the frames: local variables of the callers are searched for the expected output

problem: rowsum
device: both
backend: cpp
outcome: not_finite|wrong_values|wrong_type
reason: elements are wrong|on device cpu
"""

import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        wanted = (x.shape[0],)
        frame = sys._getframe(1)
        while frame is not None:
            for value in list(frame.f_locals.values()):
                for item in [value, *(vars(value).values() if hasattr(value, "__dict__") else ())]:
                    for leaf in item.values() if isinstance(item, dict) else [item]:
                        if isinstance(leaf, torch.Tensor) and tuple(leaf.shape) == wanted:
                            return leaf
            frame = frame.f_back
        return torch.zeros(wanted, device=x.device)
