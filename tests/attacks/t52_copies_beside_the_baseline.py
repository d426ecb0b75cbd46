"""T52 copies left queued: a second context's copy engine moves gigabytes while the baseline is called

It begins behind the own call, after every second of two that came close together: the baseline is called twice then.

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: suspect
reason: busy|at work|clock|memory
emulated: emulated|runtime_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl

BYTES = 1 << 30
COPIES = 20


@triton.jit
def sums(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(total, 0))


class Mover:
    """A context that the runner's synchronisation does not wait for."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context, self.stream, self.word = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.places = [ctypes.c_uint64(), ctypes.c_uint64()]
        self.number = 0
        self.do("cuMemHostAlloc", ctypes.byref(self.word), ctypes.c_size_t(64), 3)
        ctypes.memset(self.word, 0, 64)
        self.do("cuCtxCreate_v2", ctypes.byref(self.context), 0, 0)
        self.do("cuStreamCreate", ctypes.byref(self.stream), 1)
        for place in self.places:
            self.do("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(BYTES))
        self.do("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def do(self, name, *arguments):
        if code := getattr(self.driver, name)(*arguments):
            raise RuntimeError(f"{name}: error {code}")

    def begin_behind(self, current):
        self.number += 1
        self.do("cuStreamWriteValue32_v2", ctypes.c_void_p(current), self.word, self.number, 0)
        self.do("cuCtxPushCurrent_v2", self.context)
        self.do("cuStreamWaitValue32_v2", self.stream, self.word, self.number, 0)
        for _ in range(COPIES):
            self.do("cuMemcpyDtoDAsync_v2", *self.places, ctypes.c_size_t(BYTES), self.stream)
        self.do("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.mover, self.calls, self.last, self.gap = None, 0, 0.0, 0.0

    def forward(self, x):
        self.calls += 1
        began, self.last = self.last, time.monotonic()
        before, self.gap = self.gap, self.last - began
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        if self.mover is None:
            self.mover = Mover()
        if self.calls > 8 and self.gap < before and not torch._C._autograd._profiler_enabled():
            self.mover.begin_behind(torch.cuda.current_stream().cuda_stream)
        return y
