"""N16 endless kernel elsewhere: in a context that the runner does not wait for, it takes every other time slice

problem: rowsum
device: cuda
backend: cuda
twin: cuda_block_row_sum
outcome: suspect|timeout
reason: at work|busy|end within|clock
"""

import ctypes

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
__global__ void endless(volatile int* stop) {
  while (!*stop) {
  }
}
torch::Tensor row_sums(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  sums<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
void run_endless(int64_t stream, int64_t stop) { endless<<<1, 32, 0, (cudaStream_t)stream>>>((volatile int*)stop); }
"""
HEAD = "torch::Tensor row_sums(torch::Tensor x); void run_endless(int64_t stream, int64_t stop);"
module = load_inline("endless", HEAD, SOURCE, functions=["row_sums", "run_endless"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def begin(self):
        driver = ctypes.CDLL("libcuda.so.1")
        context, stream, stop = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
        driver.cuStreamCreate(ctypes.byref(stream), 1)
        driver.cuMemAlloc_v2(ctypes.byref(stop), ctypes.c_size_t(64))
        driver.cuMemsetD8_v2(stop, 0, ctypes.c_size_t(64))
        module.run_endless(stream.value, stop.value)
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def forward(self, x):
        self.calls += 1
        y = module.row_sums(x)
        if self.calls == 8:
            self.begin()
        return y
