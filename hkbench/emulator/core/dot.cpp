// VALU: dot products of packed numbers. Integer ones saturate with CLAMP.
#include "lanes.h"

namespace hkb {
namespace {

template <u32 WIDTH, bool SIGNED> i64 field(u32 x, u32 k) {
  const u32 raw = x >> WIDTH * k << (32 - WIDTH);
  return SIGNED ? i64{static_cast<i32>(raw) >> (32 - WIDTH)} : i64{raw >> (32 - WIDTH)};
}

// C is the accumulator's operand: 3, or 0 for the forms that add to their destination.
template <u32 WIDTH, bool SIGNED, u32 C> void integer_dot(Wave& w, const Instruction& i) {
  const Source<b32> a(w, i, 1), b(w, i, 2), c(w, i, C);
  Result<b32> d;
  for (int l = 0; l < 64; ++l) {
    i64 sum = SIGNED ? i64{static_cast<i32>(c[l])} : i64{c[l]};
    for (u32 k = 0; k < 32 / WIDTH; ++k) sum += field<WIDTH, SIGNED>(a[l], k) * field<WIDTH, SIGNED>(b[l], k);
    if (i.clamp) {
      const i64 low = SIGNED ? i64{INT32_MIN} : 0, high = SIGNED ? i64{INT32_MAX} : i64{UINT32_MAX};
      sum = sum < low ? low : sum > high ? high : sum;
    }
    d.t[l] = static_cast<u32>(sum);
  }
  store_lanes(w.v[i.o[0].index], d.t, write_mask(w, i));
}

template <class H> f32 half_dot(u32 a, u32 b, f32 c) {
  c += from_bits<H>(a) * from_bits<H>(b);
  return c + from_bits<H>(a >> 16) * from_bits<H>(b >> 16);
}
f32 brain_dot(u32 a, u32 b, f32 c) {
  return from_bits<bf16>(a) * from_bits<bf16>(b) + from_bits<bf16>(a >> 16) * from_bits<bf16>(b >> 16) + c;
}

#define THREE "=v:b32 x:b32 x:b32 x:b32"
#define TWO "+v:b32 x:b32 x:b32"
const Row table[] = {
    {"v_dot4_i32_i8", integer_dot<8, true, 3>, THREE},
    {"v_dot4_u32_u8", integer_dot<8, false, 3>, THREE},
    {"v_dot8_i32_i4", integer_dot<4, true, 3>, THREE},
    {"v_dot8_u32_u4", integer_dot<4, false, 3>, THREE},
    {"v_dot2_i32_i16", integer_dot<16, true, 3>, THREE},
    {"v_dot2_u32_u16", integer_dot<16, false, 3>, THREE},
    {"v_dot4c_i32_i8", integer_dot<8, true, 0>, TWO},
    {"v_dot8c_i32_i4", integer_dot<4, true, 0>, TWO},
    {"v_dot2c_i32_i16", integer_dot<16, true, 0>, TWO},
    V3(v_dot2_f32_f16, f32, b32, b32, f32, half_dot<f16>(a, b, c)),
    VACC(v_dot2c_f32_f16, f32, b32, b32, half_dot<f16>(a, b, c)),
    V3(v_dot2_f32_bf16, f32, b32, b32, f32, brain_dot(a, b, c)),
};

}  // namespace
HKB_ROWS(dot_rows, table)
}  // namespace hkb
