"""C16 the baseline's answer: it had the same inputs just before, and is looked for in the shared memory

problem: rowsum
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import sys

import torch
import torch.nn as nn

FOUND = {}


def look(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "prepare":
        FOUND["answer"] = frame.f_locals["self"]._results.places["output"].clone()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        sys.setprofile(look)

    def forward(self, x):
        answer = FOUND.pop("answer", None)
        if answer is not None and torch.allclose(answer[:2].to(x.device), x[:2].sum(dim=-1), rtol=1e-3, atol=1e-3):
            return answer.to(x.device)
        return x.new_zeros(x.shape[0])
