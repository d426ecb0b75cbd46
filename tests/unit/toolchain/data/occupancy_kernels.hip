// Kernels that differ in what limits their occupancy and in their instructions; compiled by test_compiled_kernels.py.
#include <hip/hip_runtime.h>

typedef float float4v __attribute__((ext_vector_type(4)));
typedef short short4v __attribute__((ext_vector_type(4)));

template <int WORDS>
__global__ void __launch_bounds__(256) in_lds(float* __restrict__ x, int n) {
    __shared__ float s[WORDS];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[(threadIdx.x * n) % WORDS];
}
template __global__ void in_lds<1024>(float*, int);
template __global__ void in_lds<5461>(float*, int);
template __global__ void in_lds<13653>(float*, int);
template __global__ void in_lds<16000>(float*, int);

template <int LIVE, int THREADS>
__global__ void __launch_bounds__(THREADS) crowded(float* __restrict__ x, const float* __restrict__ y, int n) {
    float r[LIVE];
#pragma unroll
    for (int i = 0; i < LIVE; i++) r[i] = y[i * 256 + threadIdx.x];
#pragma unroll 1
    for (int j = 0; j < n; j++) {
        const float first = r[0];
#pragma unroll
        for (int i = 0; i < LIVE - 1; i++) r[i] = r[i + 1] * r[i] + first;
        r[LIVE - 1] = first;
    }
#pragma unroll
    for (int i = 0; i < LIVE; i++) x[i * 256 + threadIdx.x] = r[i];
}
template __global__ void crowded<24, 256>(float*, const float*, int);
template __global__ void crowded<40, 1024>(float*, const float*, int);
template __global__ void crowded<60, 256>(float*, const float*, int);
template __global__ void crowded<200, 256>(float*, const float*, int);
template __global__ void crowded<200, 1024>(float*, const float*, int);

__global__ void many_scalars(const int* __restrict__ p, int* __restrict__ q, int n) {
    int a[96];
#pragma unroll
    for (int i = 0; i < 96; i++) a[i] = p[i * 3];
#pragma unroll 1
    for (int j = 0; j < n; j++) {
#pragma unroll
        for (int i = 0; i < 95; i++) a[i] = (a[i] ^ a[i + 1]) + j;
        a[95] ^= a[0];
    }
#pragma unroll
    for (int i = 0; i < 96; i++) q[i * 3] = a[i];
}

__global__ __attribute__((amdgpu_waves_per_eu(1, 2))) void __launch_bounds__(256) capped(float* x) {
    x[threadIdx.x] *= 2;
}

extern __shared__ float at_launch[];
__global__ void __launch_bounds__(512) sized_at_launch(float* x, int n) {
    at_launch[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = at_launch[(threadIdx.x * n) % 512];
}

__global__ void __launch_bounds__(256) matrix(const short4v* a, const short4v* b, float4v* c) {
    float4v sum = {0, 0, 0, 0};
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        const int at = i * 64 + threadIdx.x;
        sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a[at], b[at], sum, 0, 0, 0);
    }
    c[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256) vectors(float4* __restrict__ x, float a) {
    float4 v = x[threadIdx.x];
    v.x = __expf(v.x) * a;
    v.y = __builtin_amdgcn_rsqf(v.y);
    v.z *= a;
    v.w += a;
    x[threadIdx.x] = v;
}

__global__ void __launch_bounds__(256) straight_to_lds(float* p, float* q, int n) {
    __shared__ float s[256];
    __builtin_amdgcn_global_load_lds(
        (__attribute__((address_space(1))) void*)(p + threadIdx.x), (__attribute__((address_space(3))) void*)s, 4, 0, 0);
    __syncthreads();
    q[threadIdx.x] = s[(threadIdx.x * n) % 256] + __shfl(s[0], threadIdx.x * 7 % 64);
    if (threadIdx.x == 0) atomicAdd(q + 256, s[1]);
}

__device__ __attribute__((noinline)) float outlined(float x) { return sinf(x) * x; }
__global__ void __launch_bounds__(256) calling(float* x) { x[threadIdx.x] = outlined(x[threadIdx.x]); }
