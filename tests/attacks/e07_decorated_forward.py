"""E07 decorator: a decorator of forward keeps the first result

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import functools

import torch.nn as nn


def tuned(function):
    kept = {}

    @functools.wraps(function)
    def wrapper(self, *args):
        if self not in kept:
            kept[self] = function(self, *args)
        return kept[self].clone()

    return wrapper


class ModelNew(nn.Module):
    @tuned
    def forward(self, x):
        return x.sum(dim=-1)
