// VALU: 64-bit integers and floats.
#include "lanes.h"

namespace hkb {
namespace {


// d = a * b + c with a, b of 32 bits; the second result says which lanes carried.
template <class T, class W> void mad_wide(Wave& w, const Instruction& i) {
  const Source<T> a(w, i, 2), b(w, i, 3);
  const Source<u64> c(w, i, 4);
  Result<u64> d;
  u64 carried = 0;
  for (int l = 0; l < 64; ++l) {
    const W product = static_cast<W>(a[l]) * static_cast<W>(b[l]);
    // The sum has 65 bits, and the uppermost is the carry: a sign where the product has one.
    const auto sum = static_cast<__int128>(product) + static_cast<W>(c[l]);
    carried |= static_cast<u64>(sum >> 64 & 1) << l;
    d.t[l] = static_cast<u64>(sum);
  }
  const u64 exec = w.exec();
  d.commit(w, i);
  set_scalar64(w, i.o[1], carried & exec);
}

void div_fmas_f64(Wave& w, const Instruction& i) {
  const Source<f64> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<f64> d;
  const u64 flags = w.pair(VCC);
  for (int l = 0; l < 64; ++l) d.set(l, div_fmas(a[l], b[l], c[l], lane_on(flags, static_cast<u32>(l))));
  d.commit(w, i);
}

// Two registers, each from either half of a source.
void pk_mov(Wave& w, const Instruction& i) {
  alignas(64) u32 t[2][LANES];
  for (u32 half = 0; half < 2; ++half) {
    const Operand& o = i.o[1 + half];
    const bool high = o.flags & OP_SEL;
    if (o.kind == VGPR) {
      std::memcpy(t[half], w.v[o.index + high], sizeof t[half]);
    } else {
      const u64 both = scalar64(w, o);
      for (u32 l = 0; l < LANES; ++l) t[half][l] = static_cast<u32>(high ? both >> 32 : both);
    }
  }
  const u64 exec = w.exec();
  store_lanes(w.v[i.o[0].index], t[0], exec);
  store_lanes(w.v[i.o[0].index + 1], t[1], exec);
}

const Row table[] = {
    V1(v_mov_b64, b64, b64, a),
    V2(v_lshlrev_b64, b64, b32, b64, b << (a & 63)),
    V2(v_lshrrev_b64, b64, b32, b64, b >> (a & 63)),
    V2(v_ashrrev_i64, i64, b32, i64, b >> (a & 63)),
    V3(v_lshl_add_u64, u64, u64, u32, u64, (a << (b & 7)) + c),
    {"v_mad_u64_u32", mad_wide<u32, u64>, "=v:u64 =m:b64 x:u32 x:u32 x:u64"},
    {"v_mad_i64_i32", mad_wide<i32, i64>, "=v:i64 =m:b64 x:i32 x:i32 x:i64"},
    {"v_pk_mov_b32", pk_mov, "=v:p64 x:p64 x:p64"},
    V2(v_add_f64, f64, f64, f64, a + b),
    V2(v_mul_f64, f64, f64, f64, a* b),
    X2(v_max_f64, f64, max_num(a, b)),
    X2(v_min_f64, f64, min_num(a, b)),
    V3(v_fma_f64, f64, f64, f64, f64, std::fma(a, b, c)),
    VACC(v_fmac_f64, f64, f64, f64, std::fma(a, b, c)),
    V1(v_trunc_f64, f64, f64, std::trunc(a)),
    V1(v_ceil_f64, f64, f64, std::ceil(a)),
    V1(v_floor_f64, f64, f64, std::floor(a)),
    V1(v_rndne_f64, f64, f64, std::rint(a)),
    V1(v_fract_f64, f64, f64, a - std::floor(a) >= 1 ? 0x1.fffffffffffffp-1 : a - std::floor(a)),
    V1(v_rcp_f64, f64, f64, 1.0 / a),
    V1(v_rsq_f64, f64, f64, 1.0 / std::sqrt(a)),
    V1(v_sqrt_f64, f64, f64, std::sqrt(a)),
    V2(v_ldexp_f64, f64, f64, i32, std::ldexp(a, b)),
    V1(v_frexp_exp_i32_f64, i32, f64, frexp_exponent(a)),
    V1(v_frexp_mant_f64, f64, f64, frexp_mantissa(a)),
    V2(v_trig_preop_f64, f64, f64, u32, trig_preop(a, b)),
    {"v_div_scale_f64", scale_division<f64>, "=v:f64 =m:b64 x:f64 x:f64 x:f64"},
    {"v_div_fmas_f64", div_fmas_f64, "=v:f64 x:f64 x:f64 x:f64 vcc"},
    V3(v_div_fixup_f64, f64, f64, f64, f64, div_fixup(a, b, c)),
};

}  // namespace
HKB_ROWS(wide_rows, table)
}  // namespace hkb
