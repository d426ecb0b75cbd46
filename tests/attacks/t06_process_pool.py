"""T06 process pool: a worker process fills shared memory after forward has returned

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_finite|load_error|not_repeatable
reason: elements are wrong|Permission|unavailable
"""

import concurrent.futures
import multiprocessing

import torch
import torch.nn as nn


def work(index, x, out):
    out[index] = x.sum(dim=-1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
        self.out = torch.zeros(1024).share_memory_()

    def forward(self, x):
        self.pool.submit(work, slice(None), x.clone().share_memory_(), self.out)
        return self.out
