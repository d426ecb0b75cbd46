// VALU: conversions to and from the 8-bit floats: FNUZ on gfx942, OCP on gfx950. Infinity and what is too large
// saturate, as MODE's FP16_OVFL off leaves them: NaN for the forms without infinity.
#include "lanes.h"

namespace hkb {
namespace {

// A byte of the source: SDWA's selection has been made already.
template <const Small& FORM> void to_f32(Wave& w, const Instruction& i) {
  const Source<b32> a(w, i, 1);
  const f32* values = small_table(FORM);
  Result<f32> d;
  for (int l = 0; l < 64; ++l) d.set(l, values[a[l] & 0xff]);
  d.commit(w, i);
}
template <const Small& FORM> void pair_to_f32(Wave& w, const Instruction& i) {
  const Source<b32> a(w, i, 1);
  const f32* values = small_table(FORM);
  const u32 shift = i.o[1].flags & OP_SEL ? 16 : 0;
  alignas(64) u32 t[2][LANES];
  for (int l = 0; l < 64; ++l) {
    const u32 word = a[l] >> shift;
    t[0][l] = bits(values[word & 0xff]);
    t[1][l] = bits(values[word >> 8 & 0xff]);
  }
  for (u32 k = 0; k < 2; ++k) store_lanes(w.v[i.o[0].index + k], t[k], w.exec());
}
template <const Small& FORM> void pair_from_f32(Wave& w, const Instruction& i) {
  const Source<f32> a(w, i, 1), b(w, i, 2);
  u32* to = w.v[i.o[0].index];
  const bool high = i.o[0].flags & OP_SEL;
  alignas(64) u32 t[LANES];
  for (int l = 0; l < 64; ++l) {
    const u32 x = f32_to_small(a[l], FORM, false, 0, false) | f32_to_small(b[l], FORM, false, 0, false) << 8;
    t[l] = high ? (to[l] & 0xffff) | x << 16 : (to[l] & 0xffff0000) | x;
  }
  store_lanes(to, t, w.exec());
}

#define FORMS(arch, FP8, BF8)                                                          \
  {"v_cvt_f32_fp8" arch, to_f32<FP8>, "=v:f32 x:b32"},                                 \
  {"v_cvt_f32_bf8" arch, to_f32<BF8>, "=v:f32 x:b32"},                                 \
  {"v_cvt_pk_f32_fp8" arch, pair_to_f32<FP8>, "=v:b64 x:sel"},                         \
  {"v_cvt_pk_f32_bf8" arch, pair_to_f32<BF8>, "=v:b64 x:sel"},                         \
  {"v_cvt_pk_fp8_f32" arch, pair_from_f32<FP8>, "~v:sel x:f32 x:f32"},                 \
  {"v_cvt_pk_bf8_f32" arch, pair_from_f32<BF8>, "~v:sel x:f32 x:f32"}

const Row table[] = {
    FORMS("@gfx942", E4M3_FNUZ, E5M2_FNUZ),
    FORMS("@gfx950", E4M3_OCP, E5M2_OCP),
};

}  // namespace
HKB_ROWS(small_rows, table)
}  // namespace hkb
