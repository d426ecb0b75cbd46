// how: cdna4 gfx950
// link: missing_specialisation
#include "kittens.cuh"
using namespace kittens;
struct silu {
    template <typename T> static __device__ T op(const T& x);
};
template <> __device__ inline float silu::op<float>(const float& x) { return x / (1.f + __expf(-x)); }
__global__ void k(gl<float, -1, -1, -1, -1> x) {
    rt_fl<32, 32> a;
    load(a, x, {0, 0, 0, 0});
    unary_map<silu>(a, a);
    store(x, a, {0, 0, 0, 0});
}
