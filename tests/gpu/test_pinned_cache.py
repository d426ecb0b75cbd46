"""What a call pins in the L2 cache does not outlast the flush before the next one: `pytest -m gpu`."""

from __future__ import annotations

import statistics

import pytest
import torch

from hkbench.protocol.device_stream import Flusher
from hkbench.runner.clock import timed_call

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        torch.version.cuda is None or not torch.cuda.is_available(), reason="pinning L2 lines is CUDA's alone"
    ),
]

BYTES = 8 << 20
CALLS = 25
SOURCE = r"""
#include <torch/types.h>
#include <cuda_runtime.h>

// One thread, each load waiting for the one before: time is latency, of the cache or of the memory.
__global__ void chase(const int* next, int* out, int steps) {
  int at = 0;
  for (int i = 0; i < steps; ++i) at = next[at];
  out[0] = at;
}

void pin(torch::Tensor x) {
  cudaDeviceProp found;
  cudaGetDeviceProperties(&found, 0);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, found.persistingL2CacheMaxSize);
  cudaStreamAttrValue attribute = {};
  attribute.accessPolicyWindow.base_ptr = x.data_ptr();
  attribute.accessPolicyWindow.num_bytes = x.nbytes();
  attribute.accessPolicyWindow.hitRatio = 1.0f;
  attribute.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  attribute.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  TORCH_CHECK(cudaStreamSetAttribute(0, cudaStreamAttributeAccessPolicyWindow, &attribute) == cudaSuccess);
}

torch::Tensor walk(torch::Tensor next, int64_t steps) {
  auto out = torch::empty({1}, next.options());
  chase<<<1, 1>>>(next.data_ptr<int>(), out.data_ptr<int>(), static_cast<int>(steps));
  return out;
}
"""
STEPS = 4000


def test_a_pinned_input_is_read_as_slowly_as_any_other() -> None:
    from torch.utils.cpp_extension import load_inline

    declared = "void pin(torch::Tensor x); torch::Tensor walk(torch::Tensor next, int64_t steps);"
    module = load_inline("pinned_cache", declared, SOURCE, functions=["pin", "walk"])
    device = torch.device("cuda", 0)
    lines = BYTES // 128
    order = torch.randperm(lines)
    following = torch.empty(lines, dtype=torch.long)
    following[order] = order.roll(-1)
    next_ = torch.zeros(lines, 32, dtype=torch.int32)
    next_[:, 0] = (following * 32).to(torch.int32)
    next_ = next_.flatten().to(device)
    flush = Flusher(device, 2 * torch.cuda.get_device_properties(device).L2_cache_size)

    def seconds(flusher: Flusher | None) -> float:
        walk = [timed_call(lambda: module.walk(next_, STEPS), device, flusher) for _ in range(CALLS)]
        return statistics.median(timed.seconds for timed in walk[3:])

    cold = seconds(flush)
    module.pin(next_)
    next_.sum()  # within the window: these lines persist now
    pinned = seconds(flush)
    warm = seconds(None)
    assert warm < 0.8 * cold, f"the walk does not tell cache ({warm * 1e6:.0f} us) from memory ({cold * 1e6:.0f} us)"
    assert pinned > 0.9 * cold, f"pinned {pinned * 1e6:.0f} us, cold {cold * 1e6:.0f} us, warm {warm * 1e6:.0f} us"
