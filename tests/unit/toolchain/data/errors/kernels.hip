// how: gfx942 -fsyntax-only -ferror-limit=0
#include <hip/hip_runtime.h>

#include <algorithm>

__global__ int returns() { return 0; }  // -> kernel_return
float on_the_host(float x) { return x; }
__global__ void calls_host(float* x) {
    x[0] = on_the_host(x[1]);  // -> host_function
}
__global__ void std_max(float* x, double d) {
    x[0] = std::max(x[0], d);  // -> conflicting_types
}
__device__ int over(int a, float b);
__device__ int over(float a, int b);
__global__ void ambiguous(int* x) {
    x[0] = over(1, 2);  // -> ambiguous_call
}
__global__ void length(float* x, int n) {
    __shared__ float s[n];  // -> array_bound
    s[0] = x[0];
}
__global__ void dynamic_float() { extern __shared__ float memory[]; }
__global__ void dynamic_double() {
    extern __shared__ double memory[];  // -> shared_redeclared
}
__global__ void constness(const float* x) {
    float4* v = reinterpret_cast<float4*>(x);  // -> const_pointer
    float* w = x;  // -> const_pointer
    x[0] = 1;  // -> const_pointer
}
__global__ void two(float* x, int n) {}
template <int N> __global__ void sized(float* x) {}
void launch(float* x, long n) {
    two<<<1, 64>>>(x);  // -> call_arguments
    two<<<dim3{n, 1, 1}, 64>>>(x, 1);  // -> narrowing
    two(x, 1);  // -> kernel_call
    sized<n><<<1, 64>>>(x);  // -> template_argument
}
constexpr int threads = 64 / 128;
__global__ void __launch_bounds__(threads) no_threads(float* x) {}  // -> launch_bounds
__global__ void members(float* x) {
    float4 v;
    v.q = 1;  // -> no_member
    dim3{}[1] = 1;  // -> type_conversion
    x[0] = scale_factor;  // -> undeclared
}
float twice(float x) { return x; }
float twice(float x) { return x; }  // -> redefinition
__device__ float rsqrtf(float x) { return x; }  // -> redefinition
__global__ void grammar(int* x) {
    x[0] = 3  // -> syntax
}
