import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Device code only, in HIP: no torch header here, so the compiler is done in a second or two.
HIP_SOURCE = r"""
#include <cstdint>
#include <hip/hip_runtime.h>

namespace {

constexpr int kThreads = 256;        // four waves, two by two over the tile, 32 x 32 of it each
constexpr int kTile = 64;            // output channels and outputs of a block's tile
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

// The product of weight, (out_channels, k), and the inputs that each output reads, (k, out_length); k counts channels
// and places of the filter together.
__global__ void __launch_bounds__(kThreads)
conv1d(const short* __restrict__ x, const short* __restrict__ weight, const __bf16* __restrict__ bias,
       __bf16* __restrict__ out, int in_channels, int length, int out_channels, int out_length, int kernel, int padding,
       bool weight_aligned) {
    __shared__ __align__(16) short weights[kTile][kStride];  // [row][k]
    __shared__ __align__(16) short inputs[kTile][kStride];   // [column][k]: an operand is four k of a column
    x += static_cast<int64_t>(blockIdx.z) * in_channels * length;
    out += static_cast<int64_t>(blockIdx.z) * out_channels * out_length;
    const int k = in_channels * kernel;
    const int row0 = blockIdx.x * kTile, column0 = blockIdx.y * kTile;
    const int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
    const int wave_row = wave / 2 * 32, wave_column = wave % 2 * 32;
    const int a_row = threadIdx.x / 4, a_k = threadIdx.x % 4 * 8;
    const int b_k = threadIdx.x / 8, b_column = threadIdx.x % 8 * 8;

    floatx4 sum[2][2] = {};
    for (int k0 = 0; k0 < k; k0 += kStep) {
        const bitsx8 a8 = load8(weight + static_cast<int64_t>(row0 + a_row) * k + k0 + a_k,
                                row0 + a_row < out_channels ? k - k0 - a_k : 0, weight_aligned);
        const int channel = (k0 + b_k) / kernel;
        const int from = column0 + b_column + (k0 + b_k) % kernel - padding;
        bitsx8 b8 = 0;  // beside the sequence, too
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (k0 + b_k < k && from + i >= 0 && from + i < length)
                b8[i] = x[static_cast<int64_t>(channel) * length + from + i];
        __syncthreads();  // all have read the step before
        *reinterpret_cast<bitsx8*>(&weights[a_row][a_k]) = a8;
#pragma unroll
        for (int i = 0; i < 8; ++i) inputs[b_column + i][b_k] = b8[i];
        __syncthreads();
#pragma unroll
        for (int s = 0; s < kStep; s += 16) {
            bitsx4 left[2], right[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int at = s + lane / 16 * 4;
                left[i] = *reinterpret_cast<const bitsx4*>(&weights[wave_row + i * 16 + lane % 16][at]);
                right[i] = *reinterpret_cast<const bitsx4*>(&inputs[wave_column + i * 16 + lane % 16][at]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    sum[i][j] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left[i], right[j], sum[i][j], 0, 0, 0);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int row = row0 + wave_row + i * 16 + lane / 16 * 4 + r;
                const int column = column0 + wave_column + j * 16 + lane % 16;
                if (row < out_channels && column < out_length)
                    out[static_cast<int64_t>(row) * out_length + column] =
                        static_cast<__bf16>(sum[i][j][r] + static_cast<float>(bias[row]));
            }
}

}  // namespace

hipError_t launch_conv1d(const void* x, const void* weight, const void* bias, void* out, int batch, int in_channels,
                         int length, int out_channels, int out_length, int kernel, int padding, hipStream_t stream) {
    if (batch == 0 || out_channels == 0 || out_length == 0) return hipSuccess;
    const dim3 blocks((out_channels + kTile - 1) / kTile, (out_length + kTile - 1) / kTile, batch);
    const bool aligned = reinterpret_cast<uintptr_t>(weight) % 16 == 0 && in_channels * kernel % 8 == 0;
    conv1d<<<blocks, dim3(kThreads), 0, stream>>>(
        static_cast<const short*>(x), static_cast<const short*>(weight), static_cast<const __bf16*>(bias),
        static_cast<__bf16*>(out), in_channels, length, out_channels, out_length, kernel, padding, aligned);
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

hipError_t launch_conv1d(const void* x, const void* weight, const void* bias, void* out, int batch, int in_channels,
                         int length, int out_channels, int out_length, int kernel, int padding, hipStream_t stream);

static void check(const at::Tensor& t, at::ScalarType dtype, int64_t dims, const char* name) {
    TORCH_CHECK(t.is_cuda() && t.scalar_type() == dtype && t.is_contiguous() && t.dim() == dims, name,
                " must be a contiguous GPU tensor of dtype ", dtype, " with ", dims, " dimensions");
}

static void check_launch(hipError_t error) {
    TORCH_CHECK(error == hipSuccess, "launch failed: ", hipGetErrorString(error));
}

at::Tensor conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t padding) {
    check(x, at::kBFloat16, 3, "x");
    check(weight, at::kBFloat16, 3, "weight");
    check(bias, at::kBFloat16, 1, "bias");
    TORCH_CHECK(weight.size(1) == x.size(1) && bias.size(0) == weight.size(0),
                "weight must be (out_channels, in_channels, kernel), bias (out_channels,)");
    const int64_t out_length = x.size(2) + 2 * padding - weight.size(2) + 1;
    TORCH_CHECK(out_length > 0, "the filter is longer than the padded sequence");
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty({x.size(0), weight.size(0), out_length}, x.options());
    check_launch(launch_conv1d(x.data_ptr(), weight.data_ptr(), bias.data_ptr(), out.data_ptr(), x.size(0), x.size(1),
                               x.size(2), weight.size(0), out_length, weight.size(2), padding,
                               c10::cuda::getCurrentCUDAStream()));
    return out;
}
"""

extension = load_inline(
    name="conv1d_bf16_hip",
    cpp_sources=[CPP_SOURCE],
    cuda_sources=[HIP_SOURCE],
    functions=["conv1d"],
    extra_cflags=["-O2", "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    """Convolves as a product of the weights and the inputs of each output, by MFMA with float32 sums."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int):
        super().__init__()
        weight = torch.randn(out_channels, in_channels, kernel, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / (in_channels * kernel) ** 0.5)
        self.bias = nn.Parameter(0.5 * torch.randn(out_channels, dtype=torch.bfloat16))
        self.padding = kernel // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.conv1d(x, self.weight, self.bias, self.padding)
