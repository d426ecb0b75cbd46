"""a convolution with the filter repacked to (in, 3, 3, out); refreshed when its version or place changes.

problem: honest_conv
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <vector>

extern "C" void convolve(const float* x, const float* filter, const float* bias, float* out, int64_t batch, int64_t in,
                         int64_t channels, int64_t side) {
  #pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < side; ++h) {
      std::vector<float> sum(channels);
      for (int64_t w = 0; w < side; ++w) {
        for (int64_t o = 0; o < channels; ++o) sum[o] = bias[o];
        for (int64_t i = 0; i < in; ++i)
          for (int64_t dh = -1; dh <= 1; ++dh)
            for (int64_t dw = -1; dw <= 1; ++dw) {
              if (h + dh < 0 || h + dh >= side || w + dw < 0 || w + dw >= side) continue;
              const float value = x[((b * in + i) * side + h + dh) * side + w + dw];
              const float* f = filter + ((i * 3 + dh + 1) * 3 + dw + 1) * channels;
              for (int64_t o = 0; o < channels; ++o) sum[o] += value * f[o];
            }
        for (int64_t o = 0; o < channels; ++o) out[((b * channels + o) * side + h) * side + w] = sum[o];
      }
    }
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", f"{name}.cpp", "-o", f"lib{name}.so"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_conv_repacked_filter", {"convolve": "ppppnnnn"})


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self._filter = (None, None)

    def filter(self):
        weight = self.conv.weight
        state = (weight.data_ptr(), weight._version)
        if self._filter[0] != state:
            self._filter = (state, weight.detach().permute(1, 2, 3, 0).contiguous())
        return self._filter[1]

    def forward(self, x):
        x = x.contiguous()
        batch, channels_in, side, _ = x.shape
        out = torch.empty(batch, self.conv.out_channels, side, side)
        library.convolve(
            x.data_ptr(),
            self.filter().data_ptr(),
            self.conv.bias.data_ptr(),
            out.data_ptr(),
            batch,
            channels_in,
            self.conv.out_channels,
            side,
        )
        return out
