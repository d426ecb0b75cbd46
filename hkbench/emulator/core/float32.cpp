// VALU: 32-bit floats.
#include "lanes.h"

namespace hkb {
namespace {

// The remainder of x by 1, which stays below 1 where the difference is rounded to it.
f32 fract(f32 x) {
  const f32 rest = x - std::floor(x);
  return rest >= 1 ? 0x1.fffffep-1f : rest;
}
f32 turns_sin(f32 x) { return static_cast<f32>(std::sin((static_cast<f64>(x) - std::rint(static_cast<f64>(x))) * 6.283185307179586477)); }
f32 turns_cos(f32 x) { return static_cast<f32>(std::cos((static_cast<f64>(x) - std::rint(static_cast<f64>(x))) * 6.283185307179586477)); }
f32 mul_legacy(f32 a, f32 b) { return a == 0 || b == 0 ? 0 : a * b; }
f32 rsq(f32 x) { return static_cast<f32>(1.0 / std::sqrt(static_cast<f64>(x))); }

void div_fmas_f32(Wave& w, const Instruction& i) {
  const Source<f32> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<f32> d;
  const u64 flags = w.pair(VCC);
  for (int l = 0; l < 64; ++l) d.set(l, std::fma(a[l], b[l], c[l]));
  if (flags & w.exec())
    for (int l = 0; l < 64; ++l)
      if (lane_on(flags, static_cast<u32>(l))) d.set(l, div_fmas(a[l], b[l], c[l], true));
  d.commit(w, i);
}

// Usual quotients need no fixing but the sign, and are told apart for a whole wave at once.
void div_fixup_f32(Wave& w, const Instruction& i) {
  const Source<f32> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<f32> d;
  u32 unusual = 0;
  for (int l = 0; l < 64; ++l) {
    const u32 x = bits(b[l]), y = bits(c[l]), ex = x >> 23 & 255, ey = y >> 23 & 255;
    unusual |= (bits(a[l]) >> 23 & 255) == 255 || (ex - 1 > 253) | (ey - 1 > 253) | (static_cast<i32>(ey) - static_cast<i32>(ex) < -150);
    d.set(l, as_f32((bits(a[l]) & 0x7fffffff) | ((x ^ y) & 0x80000000)));
  }
  if (unusual)
    for (int l = 0; l < 64; ++l) d.set(l, div_fixup(a[l], b[l], c[l]));
  d.commit(w, i);
}

// Packed: two floats in a pair of registers; op_sel chooses the half for the low result, op_sel_hi for the high one.
template <class F> void packed(Wave& w, const Instruction& i) {
  alignas(64) f32 x[3][LANES];
  alignas(64) u32 t[2][LANES];
  for (u32 half = 0; half < 2; ++half) {
    for (u32 n = 1; n < i.operands; ++n) {
      const Operand& o = i.o[n];
      const bool high = o.flags & (half ? OP_SEL_HI : OP_SEL), negate = o.flags & (half ? NEG_HI : NEG);
      const u32 sign = negate ? 0x80000000 : 0;
      if (o.kind == VGPR) {
        const u32* from = w.v[o.index + high];
        for (u32 l = 0; l < LANES; ++l) x[n - 1][l] = as_f32(from[l] ^ sign);
      } else {
        const u64 both = scalar64(w, o);
        const f32 value = as_f32(static_cast<u32>(high ? both >> 32 : both) ^ sign);
        for (u32 l = 0; l < LANES; ++l) x[n - 1][l] = value;
      }
      if (w.flush)
        for (u32 l = 0; l < LANES; ++l) x[n - 1][l] = std::fabs(x[n - 1][l]) < 0x1p-126f ? 0 * x[n - 1][l] : x[n - 1][l];
    }
    for (u32 l = 0; l < LANES; ++l) t[half][l] = bits(F{}(x[0][l], x[1][l], x[2][l]));
    if (i.clamp || w.flush)
      for (u32 l = 0; l < LANES; ++l) {
        f32 y = as_f32(t[half][l]);
        if (w.flush && std::fabs(y) < 0x1p-126f) y = 0 * y;
        if (i.clamp) y = clamped(w, y);
        t[half][l] = bits(y);
      }
  }
  const u64 exec = w.exec();
  store_lanes(w.v[i.o[0].index], t[0], exec);
  store_lanes(w.v[i.o[0].index + 1], t[1], exec);
}
using PackedAdd = HKB_LAMBDA((f32 a, f32 b, f32), a + b);
using PackedMul = HKB_LAMBDA((f32 a, f32 b, f32), a * b);
using PackedFma = HKB_LAMBDA((f32 a, f32 b, f32 c), std::fma(a, b, c));

// v_fmamk: d = a * literal + b; v_fmaak: d = a * b + literal. Both have the literal where it is printed.
template <bool MIDDLE> void fma_literal(Wave& w, const Instruction& i) {
  const Source<f32> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<f32> d;
  for (int l = 0; l < 64; ++l) d.set(l, std::fma(a[l], b[l], c[l]));
  d.commit(w, i);
}

const Row table[] = {
    V2(v_add_f32, f32, f32, f32, a + b),
    V2(v_sub_f32, f32, f32, f32, a - b),
    V2(v_subrev_f32, f32, f32, f32, b - a),
    V2(v_mul_f32, f32, f32, f32, a* b),
    V2(v_mul_legacy_f32, f32, f32, f32, mul_legacy(a, b)),
    X2(v_max_f32, f32, max_num(a, b)),
    X2(v_min_f32, f32, min_num(a, b)),
    V3(v_fma_f32, f32, f32, f32, f32, std::fma(a, b, c)),
    VACC(v_fmac_f32, f32, f32, f32, std::fma(a, b, c)),
    {"v_fmamk_f32", fma_literal<true>, "=v:f32 x:f32 k:f32 x:f32"},
    {"v_fmaak_f32", fma_literal<false>, "=v:f32 x:f32 x:f32 k:f32"},
    X3(v_max3_f32, f32, max_num(max_num(a, b), c)),
    X3(v_min3_f32, f32, min_num(min_num(a, b), c)),
    X3(v_med3_f32, f32, med3(a, b, c)),
    V3(v_maximum3_f32, f32, f32, f32, f32, maximum(maximum(a, b), c)),
    V3(v_minimum3_f32, f32, f32, f32, f32, minimum(minimum(a, b), c)),
    V1(v_trunc_f32, f32, f32, std::trunc(a)),
    V1(v_ceil_f32, f32, f32, std::ceil(a)),
    V1(v_floor_f32, f32, f32, std::floor(a)),
    V1(v_rndne_f32, f32, f32, std::rint(a)),
    V1(v_fract_f32, f32, f32, fract(a)),
    V1(v_exp_f32, f32, f32, static_cast<f32>(exp2_of(a))),
    V1(v_exp_legacy_f32, f32, f32, static_cast<f32>(exp2_of(a))),
    V1(v_log_f32, f32, f32, static_cast<f32>(log2_of(a))),
    V1(v_log_legacy_f32, f32, f32, static_cast<f32>(log2_of(a))),
    V1(v_rcp_f32, f32, f32, 1.0f / a),
    V1(v_rcp_iflag_f32, f32, f32, 1.0f / a),
    V1(v_rsq_f32, f32, f32, rsq(a)),
    V1(v_sqrt_f32, f32, f32, std::sqrt(a)),
    V1(v_sin_f32, f32, f32, turns_sin(a)),
    V1(v_cos_f32, f32, f32, turns_cos(a)),
    V2(v_ldexp_f32, f32, f32, i32, scale(a, b)),
    V1(v_frexp_exp_i32_f32, i32, f32, frexp_exponent(a)),
    V1(v_frexp_mant_f32, f32, f32, frexp_mantissa(a)),
    {"v_div_scale_f32", scale_division<f32>, "=v:f32 =m:b64 x:f32 x:f32 x:f32"},
    {"v_div_fmas_f32", div_fmas_f32, "=v:f32 x:f32 x:f32 x:f32 vcc"},
    {"v_div_fixup_f32", div_fixup_f32, "=v:f32 x:f32 x:f32 x:f32"},
    {"v_pk_add_f32", packed<PackedAdd>, "=v:p64 x:p64 x:p64"},
    {"v_pk_mul_f32", packed<PackedMul>, "=v:p64 x:p64 x:p64"},
    {"v_pk_fma_f32", packed<PackedFma>, "=v:p64 x:p64 x:p64 x:p64"},
};

}  // namespace
HKB_ROWS(float32_rows, table)
}  // namespace hkb
