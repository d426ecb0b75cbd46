"""load_inline with torch/extension.h, at::parallel_for, memory from at::empty_like.

problem: honest_layer_norm
device: cpu
backend: cpp
outcome: fast|slow
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <cmath>

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor gain, torch::Tensor bias, double eps) {
  TORCH_CHECK(x.dim() == 2 && x.scalar_type() == torch::kFloat, "x: (rows, columns) float32");
  x = x.contiguous();
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), columns = x.size(1);
  const float *from = x.data_ptr<float>(), *g = gain.data_ptr<float>(), *b = bias.data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const float* row = from + r * columns;
      double sum = 0.0, squares = 0.0;
      for (int64_t c = 0; c < columns; ++c) sum += row[c];
      const float mean = float(sum / double(columns));
      for (int64_t c = 0; c < columns; ++c) squares += double(row[c] - mean) * double(row[c] - mean);
      const float scale = float(1.0 / std::sqrt(squares / double(columns) + eps));
      for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = (row[c] - mean) * scale * g[c] + b[c];
    }
  });
  return out;
}
"""

extension = load_inline(
    name="layer_norm_rows",
    cpp_sources=SOURCE,
    functions=["layer_norm"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        return extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
