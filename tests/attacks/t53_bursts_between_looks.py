"""T53 short bursts left queued: kernels of 0.3 ms with pauses between them run while the baseline is called

Each is shorter than what a look at the idle device takes notice of; they run in a context that nobody waits for.

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: suspect
reason: busy|at work|clock|other work
"""

import ctypes
import time

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void sums(const float* x, float* y, long columns) {
  __shared__ float part[256];
  float sum = 0;
  for (long j = threadIdx.x; j < columns; j += 256) sum += x[blockIdx.x * columns + j];
  part[threadIdx.x] = sum;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__global__ void burst(long long cycles) {
  for (long long begin = clock64(); clock64() - begin < cycles;) {
  }
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
void bursts(int64_t stream, int64_t device, int64_t host, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    burst<<<1056, 256, 0, (cudaStream_t)stream>>>(500000);
    cudaMemcpyAsync((void*)host, (const void*)device, 8 << 20, cudaMemcpyDeviceToHost, (cudaStream_t)stream);
  }
}
"""
HEAD = "torch::Tensor row_sums(torch::Tensor x); void bursts(int64_t s, int64_t device, int64_t host, int64_t count);"
module = load_inline("bursts", HEAD, SOURCE, functions=["row_sums", "bursts"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context, self.stream, self.host = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.memory = ctypes.c_uint64()
        self.number, self.calls, self.last, self.gap = 0, 0, 0.0, 0.0

    def make(self):
        self.driver.cuMemHostAlloc(ctypes.byref(self.host), ctypes.c_size_t(16 << 20), 3)
        ctypes.memset(self.host, 0, 64)
        self.driver.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0)
        self.driver.cuStreamCreate(ctypes.byref(self.stream), 1)
        self.driver.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(16 << 20))
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def begin_behind(self, current):
        self.number += 1
        self.driver.cuStreamWriteValue32_v2(ctypes.c_void_p(current), self.host, self.number, 0)
        self.driver.cuCtxPushCurrent_v2(self.context)
        self.driver.cuStreamWaitValue32_v2(self.stream, self.host, self.number, 0)
        module.bursts(self.stream.value, self.memory.value, self.host.value + (4 << 20), 40)
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def forward(self, x):
        self.calls += 1
        began, self.last = self.last, time.monotonic()
        before, self.gap = self.gap, self.last - began
        if self.calls == 1:
            self.make()
        y = module.row_sums(x)
        if self.calls > 8 and self.gap < before and not torch._C._autograd._profiler_enabled():
            self.begin_behind(torch.cuda.current_stream().cuda_stream)
        return y
