// how: gfx950
// link: device_undefined missing_specialisation
#include <hip/hip_runtime.h>
__device__ float elsewhere(float x);
struct silu {
    template <typename T> static __device__ T op(const T& x);
};
template <> __device__ inline float silu::op<float>(const float& x) { return x / (1.f + __expf(-x)); }
__global__ void k(float* x, float2* y) {
    x[0] = elsewhere(silu::op<float>(x[1]));
    y[0] = silu::op<float2>(y[1]);
}
