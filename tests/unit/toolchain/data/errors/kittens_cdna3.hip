// how: cdna3 gfx942 -fsyntax-only -ferror-limit=0
#include "kittens.cuh"
using namespace kittens;
struct arguments { gl<bf16, -1, -1, -1, -1> a; };

__global__ void names(const arguments g) {
    rt_bf<32, 32, ducks::rt_layout::row, rt_16x32_s> a;  // -> cdna4_name
    st_bf<32, 32, st_16x32_s> s;  // -> cdna4_name
    rv_naive<float, 256> v;  // -> cdna4_name
    rt_fl<32, 32> r;
    ones(r);  // -> cdna4_name
    rt_fl<20, 32> odd;  // -> tile_multiple
    warp::load(r, g.a, {0, 0, 0, 0});  // -> unknown_namespace_warp
}
__global__ void row_accumulator(const arguments g) {
    rt_bf<32, 32> a;
    rt_fl<32, 32> c;
    mma_ABt(c, a, a, c);  // -> accumulator_layout
}
__global__ void halves(const arguments g) {
    rt_hf<32, 32> a;
    rt_fl<32, 32, ducks::rt_layout::col> c;
    mma_ABt(c, a, a, c);  // -> mma_dtypes
}
