"""T59 bursts between its calls: kernels of 0.3 ms with short pauses run from the end of each call until the next begins

Whose call is next is drawn; so they run beside whatever is called, and end when its own `forward` begins.

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: suspect
reason: busy|at work|clock|other work
"""

import ctypes

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
__global__ void burst(const volatile int* stop, long long cycles) {
  for (long long begin = clock64(); clock64() - begin < cycles && !*stop;) {
  }
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
void bursts(int64_t stream, int64_t device, int64_t host, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    burst<<<264, 32, 0, (cudaStream_t)stream>>>((const volatile int*)(host + 64), 500000);
    cudaMemcpyAsync((void*)(host + (4 << 20)), (const void*)device, 2 << 20, cudaMemcpyDeviceToHost,
                    (cudaStream_t)stream);
  }
}
"""
HEAD = "torch::Tensor row_sums(torch::Tensor x); void bursts(int64_t s, int64_t device, int64_t host, int64_t count);"
module = load_inline("bursts_until", HEAD, SOURCE, functions=["row_sums", "bursts"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context, self.stream, self.host = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.memory = ctypes.c_uint64()
        self.number, self.calls = 0, 0

    def make(self):
        self.driver.cuMemHostAlloc(ctypes.byref(self.host), ctypes.c_size_t(16 << 20), 3)
        ctypes.memset(self.host, 0, 128)
        self.driver.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0)
        self.driver.cuStreamCreate(ctypes.byref(self.stream), 1)
        self.driver.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(16 << 20))
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def begin_behind(self, current):
        self.number += 1
        self.driver.cuStreamWriteValue32_v2(ctypes.c_void_p(current), self.host, self.number, 0)
        self.driver.cuCtxPushCurrent_v2(self.context)
        self.driver.cuStreamWaitValue32_v2(self.stream, self.host, self.number, 0)
        self.driver.cuStreamWriteValue32_v2(self.stream, ctypes.c_void_p(self.host.value + 64), 0, 0)
        module.bursts(self.stream.value, self.memory.value, self.host.value, 40)
        self.driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            self.make()
        ctypes.memset(self.host.value + 64, 1, 4)
        y = module.row_sums(x)
        if self.calls > 8 and not torch._C._autograd._profiler_enabled():
            self.begin_behind(torch.cuda.current_stream().cuda_stream)
        return y
