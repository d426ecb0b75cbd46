"""A candidate for HipKittens, as far as its class, that the tree kittens_stand_in is enough for."""

SCALE_ROWS = '''
import torch
import torch.nn as nn
from hipkittens_build import build

HIP = r"""
#include "kittens.cuh"
using namespace kittens;
struct globals { gl<float, -1, -1, -1, 64> x; float *out; float scale; };
__global__ __launch_bounds__(64) void scale_rows(const globals g) {
  rv_fl<64> row;
  load(row, g.x.raw_ptr + 64 * blockIdx.x);
  row.data[0] *= g.scale;
  store(g.out + 64 * blockIdx.x, row);
}
void dispatch(const globals &g, hipStream_t stream) { scale_rows<<<g.x.rows(), 64, 0, stream>>>(g); }
"""
extension = build("scale_rows", HIP, {"dispatch": ["x", "out", "scale"]})
'''
