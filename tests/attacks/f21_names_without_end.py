"""F21 a result without end: a dict that never stops naming outputs

problem: rowsum
device: cpu
backend: cpp
outcome: timeout|out_of_memory|limit
reason: in time|within|memory|limit
"""

import itertools

import torch.nn as nn


class Endless(dict):
    def __iter__(self):
        return itertools.count()

    def __getitem__(self, key):
        return None


class ModelNew(nn.Module):
    def forward(self, x):
        return Endless()
