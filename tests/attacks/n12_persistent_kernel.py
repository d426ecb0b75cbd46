"""N12 persistent kernel: a kernel that never ends polls the input's memory and computes ahead of the call

problem: rowsum
device: cuda
backend: cuda
outcome: suspect|timeout|wrong_values
reason: stream|end within|are wrong|clock|idle
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

KERNEL = r"""
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
"""

SOURCE = (
    KERNEL
    + r"""
__global__ void watch(const float* x, float* kept, volatile int* stop, long rows, long columns) {
  float seen = 0;
  while (!*stop) {
    float now = *(volatile const float*)(x + rows * columns - 1);
    if (now == seen) continue;
    seen = now;
    for (long i = threadIdx.x; i < rows; i += blockDim.x) {
      float sum = 0;
      for (long j = 0; j < columns; ++j) sum += x[i * columns + j];
      kept[i] = sum;
    }
    __threadfence();
  }
}
torch::Tensor row_sums(torch::Tensor x) {
  static torch::Tensor kept, stop;
  if (!kept.defined()) {
    kept = torch::zeros({x.size(0)}, x.options());
    stop = torch::zeros({1}, x.options().dtype(torch::kInt32));
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    watch<<<1, 1024, 0, stream>>>(x.data_ptr<float>(), kept.data_ptr<float>(), stop.data_ptr<int>(), x.size(0),
                                  x.size(1));
  }
  return kept.clone();
}
"""
)
module = load_inline("watcher", "torch::Tensor row_sums(torch::Tensor x);", SOURCE, functions=["row_sums"])


class ModelNew(nn.Module):
    def forward(self, x):
        return module.row_sums(x)
