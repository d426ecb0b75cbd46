"""P23 forged trace: MKL multiplies, an own loop takes a tenth of the time, and the trace calls all operators copies

`cpu_casts_around_a_product` has the casts and an own product between them.

problem: problems/level1/22_Batched_matmul_bf16.py
device: cpu
backend: cpp
outcome: not_own
reason: allowed|own
"""

import ctypes
import pathlib
import subprocess
import sys
import time

import torch
import torch.nn as nn

SOURCE = r"""
#include <chrono>
extern "C" void settle(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  volatile long turns = 0;
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 1000; ++i) turns = turns + 1;
}
"""
pathlib.Path("settle.cpp").write_text(SOURCE)
subprocess.run(["g++", "-O2", "-shared", "-fPIC", "settle.cpp", "-o", "settle.so"], check=True)
settle = ctypes.CDLL(str(pathlib.Path("settle.so").resolve())).settle
settle.argtypes = [ctypes.c_double]
runner = next(vars(module) for name, module in list(sys.modules.items()) if name.endswith("runner.main"))
plain = runner["traced_call"]


def traced(*arguments):
    timed, seen = plain(*arguments)
    for row in seen.get("kernels", ()):
        row["name"] = "aten::copy_"
    return timed, seen


runner["traced_call"] = traced


class ModelNew(nn.Module):
    def forward(self, a, b):
        start = time.perf_counter()
        product = torch.bmm(a.float(), b.float()).to(a.dtype)
        settle(0.15 * (time.perf_counter() - start))
        return product
