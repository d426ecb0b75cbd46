// VALU: 16-bit numbers, alone and packed in pairs.
#include "lanes.h"

namespace hkb {
namespace {

// The remainder by 1, which stays below 1 where the difference is rounded to it.
f32 half_fract(f32 x) {
  const f32 rest = x - std::floor(x);
  return rest > 0x1.ffcp-1f ? 0x1.ffcp-1f : rest;
}
f32 fma_half(f32 a, f32 b, f32 c) { return half_to_f32(half_fma(a, b, c)); }

// v_fma_mix: each source is a float, or a half of a register (op_sel_hi says so, op_sel which).
enum MixTo { MIX_F32, MIX_LOW, MIX_HIGH };
template <MixTo TO> void fma_mix(Wave& w, const Instruction& i) {
  alignas(64) f32 x[3][LANES];
  for (u32 n = 0; n < 3; ++n) {
    const Operand& o = i.o[n + 1];
    for (u32 l = 0; l < LANES; ++l) {
      const u32 word = o.kind == VGPR ? w.v[o.index][l] : scalar32(w, o);
      f32 value = as_f32(word);
      if (o.flags & OP_SEL_HI) value = half_to_f32(static_cast<u16>(o.flags & OP_SEL ? word >> 16 : word));
      if (o.flags & NEG_HI) value = std::fabs(value);  // neg_hi is ABS here
      x[n][l] = o.flags & NEG ? -value : value;
    }
  }
  alignas(64) u32 t[LANES];
  u32* to = w.v[i.o[0].index];
  for (u32 l = 0; l < LANES; ++l) {
    f32 value = std::fma(x[0][l], x[1][l], x[2][l]);
    if (i.clamp) value = clamped(w, value);
    if (TO == MIX_F32) t[l] = bits(value);
    else if (TO == MIX_LOW) t[l] = (to[l] & 0xffff0000) | f32_to_half(value);
    else t[l] = (to[l] & 0xffff) | static_cast<u32>(f32_to_half(value)) << 16;
  }
  store_lanes(to, t, w.exec());
}

// Packed pairs of 16 bits: op_sel chooses the half for the low result, op_sel_hi for the high one.
template <class T, class F> void packed16(Wave& w, const Instruction& i) {
  alignas(64) u32 t[LANES] = {};
  for (u32 half = 0; half < 2; ++half) {
    alignas(64) u32 x[3][LANES] = {};
    for (u32 n = 1; n < i.operands; ++n) {
      const Operand& o = i.o[n];
      const u32 shift = o.flags & (half ? OP_SEL_HI : OP_SEL) ? 16 : 0;
      const u32 sign = is_half<T> && o.flags & (half ? NEG_HI : NEG) ? 0x8000 : 0;
      const u32 scalar = o.kind == VGPR ? 0 : scalar32(w, o);
      for (u32 l = 0; l < LANES; ++l)
        x[n - 1][l] = ((o.kind == VGPR ? w.v[o.index][l] : scalar) >> shift & 0xffff) ^ sign;
    }
    for (u32 l = 0; l < LANES; ++l) {
      auto value = F{}(from_bits<T>(x[0][l]), from_bits<T>(x[1][l]), from_bits<T>(x[2][l]));
      if constexpr (is_half<T>) {
        if (i.clamp) value = clamped(w, value);
      } else if (i.clamp) {
        const bool is_signed = std::is_same_v<T, s16>;
        const i64 low = is_signed ? -32768 : 0, high = is_signed ? 32767 : 65535;
        const i64 wide = static_cast<i64>(static_cast<i32>(value));
        value = static_cast<decltype(value)>(wide < low ? low : wide > high ? high : wide);
      }
      t[l] |= (to_bits<T>(value) & 0xffff) << 16 * half;
    }
  }
  store_lanes(w.v[i.o[0].index], t, w.exec());
}
#define PK(name, T, sources, expression)                                                                      \
  {#name, packed16<T, HKB_LAMBDA(([[maybe_unused]] Value<T> a, [[maybe_unused]] Value<T> b,                    \
                                  [[maybe_unused]] Value<T> c), static_cast<Value<T>>(expression))>, sources}
// Packed minima and maxima of halves, none of which is a signalling NaN.
template <Handler H> void quiet_halves(Wave& w, const Instruction& i) {
  for (u32 n = 1; w.mode & MODE_IEEE && n < i.operands; ++n)
    for (u32 l = 0; l < LANES; ++l) {
      const u32 x = i.o[n].kind == VGPR ? w.v[i.o[n].index][l] : scalar32(w, i.o[n]);
      if (lane_on(w.exec(), l) && (is_signalling<f16>(x & 0xffff) || is_signalling<f16>(x >> 16)))
        return w.stop(REFUSED_SIGNALLING, i);
    }
  H(w, i);
}
#define TWO "=v:b32 x:k16 x:k16"
#define THREE "=v:b32 x:k16 x:k16 x:k16"

const Row table[] = {
    V2(v_add_f16, f16, f16, f16, a + b),
    V2(v_sub_f16, f16, f16, f16, a - b),
    V2(v_subrev_f16, f16, f16, f16, b - a),
    V2(v_mul_f16, f16, f16, f16, a* b),
    X2(v_max_f16, f16, max_num(a, b)),
    X2(v_min_f16, f16, min_num(a, b)),
    V3_KEEPS(v_fma_f16, f16, f16, f16, f16, fma_half(a, b, c)),
    X3(v_max3_f16, f16, max_num(max_num(a, b), c)),
    X3(v_min3_f16, f16, min_num(min_num(a, b), c)),
    X3(v_med3_f16, f16, med3(a, b, c)),
    V1(v_rcp_f16, f16, f16, 1.0f / a),
    V1(v_rsq_f16, f16, f16, static_cast<f32>(1.0 / std::sqrt(static_cast<f64>(a)))),
    V1(v_sqrt_f16, f16, f16, std::sqrt(a)),
    V1(v_exp_f16, f16, f16, static_cast<f32>(exp2_of(a))),
    V1(v_log_f16, f16, f16, static_cast<f32>(log2_of(a))),
    V1(v_trunc_f16, f16, f16, std::trunc(a)),
    V1(v_ceil_f16, f16, f16, std::ceil(a)),
    V1(v_floor_f16, f16, f16, std::floor(a)),
    V1(v_rndne_f16, f16, f16, std::rint(a)),
    V1(v_fract_f16, f16, f16, half_fract(a)),
    V2(v_ldexp_f16, f16, f16, s16, scale(a, b)),
    V1(v_frexp_exp_i16_f16, s16, f16, frexp_exponent(a)),
    V1(v_frexp_mant_f16, f16, f16, frexp_mantissa(a)),
    V2(v_pack_b32_f16, b32, h16, h16, a | b << 16),
    V2(v_add_u16, h16, h16, h16, a + b),
    V2(v_sub_u16, h16, h16, h16, a - b),
    V2(v_subrev_u16, h16, h16, h16, b - a),
    V2(v_mul_lo_u16, h16, h16, h16, a* b),
    V2(v_lshlrev_b16, h16, h16, h16, b << (a & 15)),
    V2(v_lshrrev_b16, h16, h16, h16, b >> (a & 15)),
    V2(v_ashrrev_i16, s16, h16, s16, b >> (a & 15)),
    V2(v_max_u16, h16, h16, h16, a > b ? a : b),
    V2(v_min_u16, h16, h16, h16, a < b ? a : b),
    V2(v_max_i16, s16, s16, s16, a > b ? a : b),
    V2(v_min_i16, s16, s16, s16, a < b ? a : b),
    V3_KEEPS(v_div_fixup_f16, f16, f16, f16, f16, div_fixup_half(a, b, c)),
    V3(v_fma_legacy_f16, f16, f16, f16, f16, fma_half(a, b, c)),
    V3(v_div_fixup_legacy_f16, f16, f16, f16, f16, div_fixup_half(a, b, c)),
    V3(v_mad_legacy_u16, h16, h16, h16, h16, a* b + c),
    V3(v_mad_legacy_i16, s16, s16, s16, s16, a* b + c),
    V3_KEEPS(v_mad_u16, h16, h16, h16, h16, a* b + c),
    V3_KEEPS(v_mad_i16, s16, s16, s16, s16, a* b + c),
    V3(v_mad_u32_u16, u32, h16, h16, u32, a* b + c),
    V3(v_mad_i32_i16, i32, s16, s16, i32, static_cast<i32>(static_cast<i64>(a) * b + c)),
    V3(v_max3_i16, s16, s16, s16, s16, (a > b ? a : b) > c ? (a > b ? a : b) : c),
    V3(v_min3_i16, s16, s16, s16, s16, (a < b ? a : b) < c ? (a < b ? a : b) : c),
    V3(v_med3_i16, s16, s16, s16, s16, middle(a, b, c)),
    V3(v_max3_u16, h16, h16, h16, h16, (a > b ? a : b) > c ? (a > b ? a : b) : c),
    V3(v_min3_u16, h16, h16, h16, h16, (a < b ? a : b) < c ? (a < b ? a : b) : c),
    V3(v_med3_u16, h16, h16, h16, h16, middle(a, b, c)),
    {"v_fma_mix_f32", fma_mix<MIX_F32>, "=v:f32 x:mix x:mix x:mix"},
    {"v_fma_mixlo_f16", fma_mix<MIX_LOW>, "+v:b32 x:mix x:mix x:mix"},
    {"v_fma_mixhi_f16", fma_mix<MIX_HIGH>, "+v:b32 x:mix x:mix x:mix"},
    PK(v_pk_add_f16, f16, "=v:b32 x:pkf x:pkf", a + b),
    PK(v_pk_mul_f16, f16, "=v:b32 x:pkf x:pkf", a* b),
    {"v_pk_max_f16", quiet_halves<packed16<f16, HKB_LAMBDA((f32 a, f32 b, f32), max_num(a, b))>>, "=v:b32 x:pkf x:pkf"},
    {"v_pk_min_f16", quiet_halves<packed16<f16, HKB_LAMBDA((f32 a, f32 b, f32), min_num(a, b))>>, "=v:b32 x:pkf x:pkf"},
    PK(v_pk_fma_f16, f16, "=v:b32 x:pkf x:pkf x:pkf", fma_half(a, b, c)),
    PK(v_pk_minimum3_f16, f16, "=v:b32 x:pkf x:pkf x:pkf", minimum(minimum(a, b), c)),
    PK(v_pk_maximum3_f16, f16, "=v:b32 x:pkf x:pkf x:pkf", maximum(maximum(a, b), c)),
    PK(v_pk_add_u16, h16, TWO, a + b),
    PK(v_pk_sub_u16, h16, TWO, a - b),
    PK(v_pk_add_i16, s16, TWO, a + b),
    PK(v_pk_sub_i16, s16, TWO, a - b),
    PK(v_pk_mul_lo_u16, h16, TWO, a* b),
    PK(v_pk_mad_u16, h16, THREE, a* b + c),
    PK(v_pk_mad_i16, s16, THREE, a* b + c),
    PK(v_pk_max_u16, h16, TWO, a > b ? a : b),
    PK(v_pk_min_u16, h16, TWO, a < b ? a : b),
    PK(v_pk_max_i16, s16, TWO, a > b ? a : b),
    PK(v_pk_min_i16, s16, TWO, a < b ? a : b),
    PK(v_pk_lshlrev_b16, h16, TWO, b << (a & 15)),
    PK(v_pk_lshrrev_b16, h16, TWO, b >> (a & 15)),
    PK(v_pk_ashrrev_i16, s16, TWO, b >> (a & 15)),
};

}  // namespace
HKB_ROWS(half_rows, table)
}  // namespace hkb
