// how: gfx942 -fsyntax-only -ferror-limit=0
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

__global__ void mask(float* x) {
    x[0] += __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 16);  // -> warp_mask_width
}
__global__ void nvidia_bf16(const float* x) {
    __nv_bfloat16 b = __float2bfloat16(x[0]);  // -> bf16_mixup
}
__global__ void legacy_bf16(const hip_bfloat16* x) {}  // -> bf16_mixup
__global__ void half_and_bf16(const __hip_bfloat16* x, __half* y) {
    y[0] = x[0];  // -> bf16_mixup
}
__global__ void half_arithmetic(const __half* x, __half* y) {
    y[0] = x[0] * x[1];  // -> half_operators
    float f = x[0];  // -> half_operators
    y[1] = 1.0f;  // -> half_operators
}
__global__ void intrinsics(int* x) {
    __nanosleep(8);  // -> cuda_intrinsic
    x[0] = __dp4a(x[1], x[2], x[3]);  // -> cuda_intrinsic
    __pipeline_wait_prior(0);  // -> cuda_intrinsic
    __pipeline_commit();  // -> cuda_intrinsic
    __stcs(x, 1);  // -> cuda_intrinsic
}
__global__ void tensor_cores() {
    nvcuda::wmma::fragment<float> c;  // -> cuda_intrinsic
}
__global__ void group_reduction(float* x) {
    auto tile = cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block());
    x[0] = cooperative_groups::reduce(tile, x[1], 0);  // -> cooperative_groups
}
__global__ void atomics(__hip_bfloat16* y) {
    atomicAdd(y, y[1]);  // -> atomic_overload
}
typedef float float4_t __attribute__((ext_vector_type(4)));
typedef short short4_t __attribute__((ext_vector_type(4)));
__global__ void builtins(float4_t* c, const short4_t* a, const float4_t* b, int n) {
    __builtin_amdgcn_s_setprio(n);  // -> constant_argument
    c[0] = __builtin_amdgcn_mfma_f32_16x16x16_bf16(a[0], a[1], c[0], 0, 0, 0);  // -> amd_builtin
    c[1] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[0], a[1], c[0]);  // -> builtin_arguments
    c[2] = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(b[0], a[1], c[0], 0, 0, 0);  // -> builtin_arguments
}
