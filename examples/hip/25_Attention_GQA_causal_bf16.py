import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only, in HIP: no torch header here, so the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kWaves = 4;        // of a block; they share nothing but the caches
constexpr int kQueries = 16;     // of a wave
constexpr int kKeys = 16;        // at a time
constexpr int kTiles = 8;        // of 16 columns of the output; more columns are another block's
constexpr int kColumns = kTiles * 16;

// The bits of bfloat16 values, as the builtin of MFMA takes them.
typedef short bitsx4 __attribute__((ext_vector_type(4)));
typedef __bf16 bf16x4 __attribute__((ext_vector_type(4)));
typedef float floatx4 __attribute__((ext_vector_type(4)));

// Four values from p on, of which `count` exist; the others are 0.
__device__ __forceinline__ bitsx4 load4(const short* p, int count, bool aligned) {
    if (aligned && count >= 4) return *reinterpret_cast<const bitsx4*>(p);
    bitsx4 values = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (i < count) values[i] = p[i];
    return values;
}

// Keys are the rows and queries the columns of the scores: then a lane has four keys of one query, and the weights are
// in place for the product with the values, of which a lane gives the same keys. That one, too, is transposed: its rows
// are columns of the output.
__global__ void __launch_bounds__(kWaves * 64)
attention_causal(const short* __restrict__ q, const short* __restrict__ k, const short* __restrict__ v,
                 __bf16* __restrict__ out, int shared_by, int positions, int head_dim, float scale, bool aligned) {
    const int first = (blockIdx.x * kWaves + threadIdx.x / 64) * kQueries;
    if (first >= positions) return;
    const int lane = threadIdx.x % 64, group = lane / 16;
    const int query = first + lane % 16;  // may lie past the last position: computed like others, and not stored
    const int64_t size = static_cast<int64_t>(positions) * head_dim;
    // Heads of all members of the batch are counted on, of queries as of keys.
    q += blockIdx.y * size;
    k += blockIdx.y / shared_by * size;
    v += blockIdx.y / shared_by * size;
    out += blockIdx.y * size;
    const int column0 = blockIdx.z * kColumns;

    floatx4 sum[kTiles] = {};
    float largest = -INFINITY, total = 0.0f;
    for (int key0 = 0; key0 < min(first + kQueries, positions); key0 += kKeys) {
        floatx4 score = 0.0f;
        for (int start = 0; start < head_dim; start += 16) {
            const int at = start + group * 4, key = key0 + lane % 16;
            const bitsx4 left =
                load4(k + static_cast<int64_t>(key) * head_dim + at, key < positions ? head_dim - at : 0, aligned);
            const bitsx4 right =
                load4(q + static_cast<int64_t>(query) * head_dim + at, query < positions ? head_dim - at : 0, aligned);
            score = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left, right, score, 0, 0, 0);
        }
        float highest = largest;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            score[r] = key0 + group * 4 + r > query ? -INFINITY : score[r] * scale;
            highest = fmaxf(highest, score[r]);
        }
        // The query's other keys are in lanes 16, 32 and 48 away. Key 0 comes first: the maximum is finite.
        highest = fmaxf(highest, __shfl_xor(highest, 16, 64));
        highest = fmaxf(highest, __shfl_xor(highest, 32, 64));
        const float correction = expf(largest - highest);
        largest = highest;
        floatx4 weight;
#pragma unroll
        for (int r = 0; r < 4; ++r) weight[r] = expf(score[r] - largest);
        total = total * correction + ((weight[0] + weight[1]) + (weight[2] + weight[3]));
        const bitsx4 right = __builtin_bit_cast(bitsx4, __builtin_convertvector(weight, bf16x4));
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            if (column0 + t * 16 >= head_dim) continue;
            const int column = column0 + t * 16 + lane % 16;
            bitsx4 left = 0;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int key = key0 + group * 4 + r;
                if (key < positions && column < head_dim) left[r] = v[static_cast<int64_t>(key) * head_dim + column];
            }
            sum[t] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left, right, sum[t] * correction, 0, 0, 0);
        }
    }
    total += __shfl_xor(total, 16, 64);
    total += __shfl_xor(total, 32, 64);
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int column = column0 + t * 16 + group * 4 + r;
            if (query < positions && column < head_dim)
                out[static_cast<int64_t>(query) * head_dim + column] = static_cast<__bf16>(sum[t][r] / total);
        }
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 8 == 0; }

}  // namespace

// shared_by: the query heads that a head of keys and values serves.
hipError_t launch_attention_causal(const void* q, const void* k, const void* v, void* out, int query_heads,
                                   int shared_by, int positions, int head_dim, hipStream_t stream) {
    if (query_heads == 0 || positions == 0 || head_dim == 0) return hipSuccess;
    constexpr int kRows = kWaves * kQueries;
    const dim3 blocks((positions + kRows - 1) / kRows, query_heads, (head_dim + kColumns - 1) / kColumns);
    attention_causal<<<blocks, dim3(kWaves * 64), 0, stream>>>(
        static_cast<const short*>(q), static_cast<const short*>(k), static_cast<const short*>(v),
        static_cast<__bf16*>(out), shared_by, positions, head_dim, 1.0f / sqrtf(static_cast<float>(head_dim)),
        aligned(q) && aligned(k) && head_dim % 4 == 0);
    return hipGetLastError();
}
"""

# PyTorch's hipify turns the two c10/cuda headers into its c10/hip ones.
CPP_SOURCE = r"""
#include <torch/types.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// shared_by: the query heads that a head of keys and values serves.
hipError_t launch_attention_causal(const void* q, const void* k, const void* v, void* out, int query_heads,
                                   int shared_by, int positions, int head_dim, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, int64_t dims, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous() && t.dim() == dims, name,
                " must be a contiguous GPU tensor of dtype ", dtype, " with ", dims, " dimensions");
}

static void check_launch(hipError_t error) {
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
}

at::Tensor attention_causal(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    check(q, at::kBFloat16, 4, "q");
    check(k, at::kBFloat16, 4, "k");
    check(v, at::kBFloat16, 4, "v");
    TORCH_CHECK(k.sizes() == v.sizes(), "k and v must have the same shape");
    TORCH_CHECK(q.size(0) == k.size(0) && q.size(2) == k.size(2) && q.size(3) == k.size(3) && k.size(1) > 0 &&
                    q.size(1) % k.size(1) == 0,
                "q must be as k, with a multiple of its heads");
    const c10::cuda::CUDAGuard guard(q.device());
    at::Tensor out = at::empty_like(q);
    check_launch(launch_attention_causal(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(),
                                         q.size(0) * q.size(1), q.size(1) / k.size(1), q.size(2), q.size(3),
                                         c10::cuda::getCurrentCUDAStream()));
    return out;
}
"""

extension = load_inline(
    name="attention_gqa_causal_bf16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["attention_causal"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """Attends to positions 0..i in one pass over the keys, 16 queries in a wave, by MFMA with float32 sums."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return extension.attention_causal(q, k, v)
