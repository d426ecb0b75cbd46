import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only, in HIP: no torch header here, so the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kThreads = 256;        // four waves, two by two over the tile, 64 x 64 of it each
constexpr int kTile = 128;           // rows and columns of a block's tile
constexpr int kOwn = 4;              // times 16 of them are a wave's
constexpr int kStep = 32;            // of the summed dimension, in LDS at a time
constexpr int kStride = kStep + 8;   // padded against bank conflicts; rows stay aligned to 16 bytes

// The bits of bfloat16 values, as the builtin of MFMA takes them.
typedef short bitsx4 __attribute__((ext_vector_type(4)));
typedef short bitsx8 __attribute__((ext_vector_type(8)));
typedef float floatx4 __attribute__((ext_vector_type(4)));

// Eight values from p on, of which `count` exist; the others are 0.
__device__ __forceinline__ bitsx8 load8(const short* p, int count, bool aligned) {
    if (aligned && count >= 8) return *reinterpret_cast<const bitsx8*>(p);
    bitsx8 values = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (i < count) values[i] = p[i];
    return values;
}

__global__ void __launch_bounds__(kThreads)
matmul_scale(const short* __restrict__ a, const short* __restrict__ b, float* __restrict__ out, int m, int n, int k,
             float scale, bool a_aligned, bool b_aligned) {
    __shared__ __align__(16) short a_tile[kTile][kStride];  // [row][k]
    __shared__ __align__(16) short b_tile[kTile][kStride];  // [column][k]: an operand is four k of a column
    const int row0 = blockIdx.x * kTile, column0 = blockIdx.y * kTile;
    const int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
    const int wave_row = wave / 2 * (kTile / 2), wave_column = wave % 2 * (kTile / 2);
    const int a_row = threadIdx.x / 4, a_k = threadIdx.x % 4 * 8;
    const int b_k = threadIdx.x / 8, b_column = threadIdx.x % 8 * 8;

    floatx4 sum[kOwn][kOwn] = {};
    for (int k0 = 0; k0 < k; k0 += kStep) {
        bitsx8 a8[2], b8[2];  // 64 rows or columns further on each
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = row0 + a_row + h * 64, column = column0 + b_column + h * 64;
            a8[h] = load8(a + static_cast<int64_t>(row) * k + k0 + a_k, row < m ? k - k0 - a_k : 0, a_aligned);
            b8[h] = load8(b + static_cast<int64_t>(k0 + b_k) * n + column, k0 + b_k < k ? n - column : 0, b_aligned);
        }
        __syncthreads();  // all have read the step before
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            *reinterpret_cast<bitsx8*>(&a_tile[a_row + h * 64][a_k]) = a8[h];
#pragma unroll
            for (int i = 0; i < 8; ++i) b_tile[b_column + h * 64 + i][b_k] = b8[h][i];
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < kStep; s += 16) {
            bitsx4 left[kOwn], right[kOwn];
#pragma unroll
            for (int i = 0; i < kOwn; ++i) {
                const int at = s + lane / 16 * 4;
                left[i] = *reinterpret_cast<const bitsx4*>(&a_tile[wave_row + i * 16 + lane % 16][at]);
                right[i] = *reinterpret_cast<const bitsx4*>(&b_tile[wave_column + i * 16 + lane % 16][at]);
            }
#pragma unroll
            for (int i = 0; i < kOwn; ++i)
#pragma unroll
                for (int j = 0; j < kOwn; ++j)
                    sum[i][j] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left[i], right[j], sum[i][j], 0, 0, 0);
        }
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int row = row0 + wave_row + i * 16 + lane / 16 * 4 + r;
                const int column = column0 + wave_column + j * 16 + lane % 16;
                if (row < m && column < n)
                    out[static_cast<int64_t>(row) * n + column] = scale * sum[i][j][r];
            }
}

// All threads get the result of all.
template <typename Combine>
__device__ __forceinline__ float over_block(float value, float* scratch, Combine combine) {
#pragma unroll
    for (int offset = 32; offset > 0; offset /= 2) value = combine(value, __shfl_xor(value, offset, 64));
    if (threadIdx.x % 64 == 0) scratch[threadIdx.x / 64] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int wave = 1; wave < kThreads / 64; ++wave) value = combine(value, scratch[wave]);
    return value;
}

// A row a block.
__global__ void __launch_bounds__(kThreads)
softmax(const float* __restrict__ logits, __bf16* __restrict__ out, int classes) {
    __shared__ float scratch[2][kThreads / 64];
    const int64_t start = static_cast<int64_t>(blockIdx.x) * classes;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < classes; i += kThreads)
        largest = logits[start + i] > largest ? logits[start + i] : largest;  // a NaN comes by way of the sum
    largest = over_block(largest, scratch[0], [](float a, float b) { return fmaxf(a, b); });
    float total = 0.0f;
    for (int i = threadIdx.x; i < classes; i += kThreads) total += expf(logits[start + i] - largest);
    total = over_block(total, scratch[1], [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < classes; i += kThreads)
        out[start + i] = static_cast<__bf16>(expf(logits[start + i] - largest) / total);
}

bool aligned(const void* p, int stride) { return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride % 8 == 0; }

}  // namespace

// logits: float32, (rows, classes), for what comes between the two kernels.
hipError_t launch_matmul_scale_softmax(const void* x, const void* weight, float* logits, void* out, int rows,
                                       int in_features, int classes, float scale, hipStream_t stream) {
    if (rows == 0 || classes == 0) return hipSuccess;
    const dim3 blocks((rows + kTile - 1) / kTile, (classes + kTile - 1) / kTile);
    matmul_scale<<<blocks, dim3(kThreads), 0, stream>>>(
        static_cast<const short*>(x), static_cast<const short*>(weight), logits, rows, classes, in_features, scale,
        aligned(x, in_features), aligned(weight, classes));
    softmax<<<dim3(rows), dim3(kThreads), 0, stream>>>(logits, static_cast<__bf16*>(out), classes);
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

hipError_t launch_matmul_scale_softmax(const void* x, const void* weight, float* logits, void* out, int rows,
                                       int in_features, int classes, float scale, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, int64_t dims, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous() && t.dim() == dims, name,
                " must be a contiguous GPU tensor of dtype ", dtype, " with ", dims, " dimensions");
}

static void check_launch(hipError_t error) {
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
}

at::Tensor matmul_scale_softmax(const at::Tensor& x, const at::Tensor& weight, double scale) {
    check(x, at::kBFloat16, 2, "x");
    check(weight, at::kBFloat16, 2, "weight");
    TORCH_CHECK(x.size(1) == weight.size(0), "x must have as many columns as weight has rows");
    const c10::cuda::CUDAGuard guard(x.device());
    const int64_t rows = x.size(0), classes = weight.size(1);
    at::Tensor logits = at::empty({rows, classes}, x.options().dtype(at::kFloat));
    at::Tensor out = at::empty({rows, classes}, x.options());
    check_launch(launch_matmul_scale_softmax(x.data_ptr(), weight.data_ptr(), logits.data_ptr<float>(), out.data_ptr(),
                                             rows, x.size(1), classes, static_cast<float>(scale),
                                             c10::cuda::getCurrentCUDAStream()));
    return out;
}
"""

extension = load_inline(
    name="matmul_scale_softmax_bf16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["matmul_scale_softmax"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """softmax(scale * (x @ weight)): MFMA with float32 logits, then a row in a block."""

    def __init__(self, in_features: int, classes: int, scale: float):
        super().__init__()
        weight = torch.randn(in_features, classes, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / (scale * in_features**0.5))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.matmul_scale_softmax(x, self.weight, self.scale)
