// how: cdna4 gfx950 -fsyntax-only -ferror-limit=0
#include "kittens.cuh"
using namespace kittens;
using tensor = gl<bf16, -1, -1, -1, -1>;
struct arguments { tensor a; };

__global__ void products(const arguments g) {
    rt_bf<32, 32> a;
    rt_fl<32, 32, col_l> c;
    mma_ABt(c, a, a, c);  // -> shape_combination
}
__global__ void halves(const arguments g) {
    rt_hf<32, 32, row_l, rt_16x32_s> a;
    rt_fl<32, 32, col_l> c;
    mma_ABt(c, a, a, c);  // -> mma_dtypes
}
__global__ void row_accumulator(const arguments g) {
    rt_bf<32, 32, row_l, rt_16x32_s> a;
    rt_fl<32, 32, row_l> c;
    mma_ABt(c, a, a, c);  // -> accumulator_layout
}
__global__ void names(const arguments g) {
    st_bf<64, 64> s;  // -> shape_argument
    rv_fl<128> v;  // -> shape_argument
    rt_fl<32, 32> r;
    rt_fl<60, 32> odd;  // -> tile_multiple
    one(r);  // -> cdna3_name
    load_global_to_register_buffer<2, false, 256>(nullptr, 1, g.a, {0, 0, 0, 0}, r);  // -> cdna3_name
    warp::load(r, g.a, {0, 0, 0, 0});  // -> unknown_namespace_warp
    semaphore ready;  // -> unknown_namespace_warp
    sqrt(r, r);  // -> tile_function
    sigmoid(r, r);  // -> tile_function
}
__global__ void memory(const arguments g) {
    extern __shared__ alignment_dummy __shm[];
    shared_allocator al((int*)&__shm[0]);
    auto& s = al.allocate<st_bf<64, 64, st_16x32_s>>();
    auto& f = al.allocate<st_fl<64, 64, st_16x32_s>>();
    rt_fl<64, 64, row_l, rt_16x32_s> r;
    rt_bf<64, 64, row_l, rt_16x32_s> b;
    rt_bf<64, 64, row_l, rt_32x16_s> other;
    rt_fl<64, 64> c;
    load(r, s);  // -> shared_tile_dtype
    load(r, f);  // -> shared_tile_dtype
    load(other, s);  // -> shared_tile_shape
    load(g.a, b, {0, 0, 0, 0});  // -> tile_load
    rt_bf<32, 64, row_l, rt_16x32_s> half_of_it;
    load(half_of_it, s);  // -> shared_tile_shape
    rt_fl<64, 64, col_l> turned;
    swap_layout(turned, c);  // -> layout_swap
    rv_naive<float, 256> long_vector;
    rv_naive<float, 128> short_vector;
    copy(short_vector, long_vector);  // -> tile_operands
    group<4>::zero(s);  // -> group_member
    add(s, s, s);  // -> tile_operands
    mul(c, b, b);  // -> tile_operands
    copy(c, b);  // -> tile_operands
    typename rt_fl<64, 64>::row_vec v;
    sub_row(c, c, v);  // -> vector_orientation
}
