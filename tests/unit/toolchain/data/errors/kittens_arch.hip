// how: cdna4 gfx942
#include "kittens.cuh"  // -> target_feature
using namespace kittens;
__global__ void k(gl<float, -1, -1, -1, -1> out) {
    rt_bf<32, 32, row_l, rt_16x32_s> a;
    rt_fl<32, 32, col_l> c;
    zero(a);
    zero(c);
    mma_ABt(c, a, a, c);
    store(out, c, {0, 0, 0, 0});
}
