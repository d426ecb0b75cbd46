"""T58 gone on: a thread of the candidate computes the answer while that is being told and its processes are stopped

problem: honest_row_sum
device: cpu
backend: cpp
outcome: not_finite|wrong_values|not_repeatable
reason: wrong|expected
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include <thread>

static float pairwise(const float* x, int64_t count) {
  if (count <= 256) {
    float sum = 0.0f;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    return sum;
  }
  const int64_t half = count / 2;
  return pairwise(x, half) + pairwise(x + half, count - half);
}

static const float* from;
static float* to;
static int64_t many, wide;
static std::atomic<int> turn{0}, done{0};

static void serve() {
  for (int seen = 0;;) {
    turn.wait(seen);
    seen = turn;
    for (int64_t r = 0; r < many; ++r) to[r] = pairwise(from + r * wide, wide);
    done = seen;
  }
}

extern "C" void row_sums(const float* x, float* out, int64_t rows, int64_t columns) {
  static std::thread* helper = new std::thread(serve);
  (void)helper;
  while (done != turn) ;
  from = x, to = out, many = rows, wide = columns;
  turn.fetch_add(1);
  turn.notify_one();

}
"""


def build():
    Path("kernel.cpp").write_text(SOURCE)
    flags = ("-O3", "-ffast-math", "-std=c++20", "-march=native", "-shared", "-fPIC")
    subprocess.run(["g++", *flags, "kernel.cpp", "-o", "libkernel.so", "-lpthread"], check=True)
    return ctypes.CDLL(str(Path("libkernel.so").resolve()))


library = build()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, out)]
        library.row_sums(*places, *map(ctypes.c_int64, x.shape))
        return out
