"""T48 copied while written: the copy engine follows the evaluator's writing of the inputs, before the gate opens

A stream waits until a word of the input is no longer poison; the copy engine works beside the evaluator's kernels.

problem: stacked
device: cuda
backend: triton
twin: triton_stacked_copies
outcome: suspect|wrong_values|not_finite|not_repeatable|impossible
reason: stream|are wrong|NaN|repeat|clock|less than
emulated: not_own|runtime_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl

PIECES = 24
ANY_ZERO_BIT = 3  # CU_STREAM_WAIT_VALUE_NOR: with 0, until some bit of the word is 0


@triton.jit
def copied(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < count), mask=place < count)


def wait_for_last_word(stream, tensor):
    driver = ctypes.CDLL("libcuda.so.1")
    word = ctypes.c_void_p(tensor.data_ptr() + tensor.nbytes - 4)
    if driver.cuStreamWaitValue32_v2(ctypes.c_void_p(stream.cuda_stream), word, 0, ANY_ZERO_BIT):
        raise RuntimeError("cuStreamWaitValue32")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        early = self.calls > 8 and not torch._C._autograd._profiler_enabled()
        y = torch.empty(2 * a.shape[0], a.shape[1], device=a.device)
        half = a.shape[0] // 2
        sources = [*a[half:].chunk(PIECES // 3), *b.chunk(PIECES - PIECES // 3)]
        now = torch.cuda.current_stream()
        if not early:
            self.side.wait_stream(now)
        with torch.cuda.stream(self.side):
            at = half
            for number, source in enumerate(sources):
                if early:  # one piece behind
                    wait_for_last_word(self.side, sources[min(number + 1, PIECES - 1)])
                y[at : at + source.shape[0]].copy_(source)
                at += source.shape[0]
        count = half * a.shape[1]
        copied[(triton.cdiv(count, 4096),)](a, y, count, BLOCK=4096)
        now.wait_stream(self.side)
        return y
