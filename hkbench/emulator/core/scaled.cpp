// MFMA with 8-, 6- and 4-bit floats (gfx950), with or without a scale for each 32 neighbours of K. imm: the format of A
// in bits 0 to 2, that of B in 3 to 5, which byte of the scales' registers in 6 and 7 (A), 8 and 9 (B); bit 10: scaled.
#include "lanes.h"

namespace hkb {
namespace {

const Small* const FORMS[] = {&E4M3_OCP, &E5M2_OCP, &E2M3, &E3M2, &E2M1};
constexpr u32 WIDTHS[] = {8, 8, 6, 6, 4};

// Element k of the 32 that a lane holds.
u32 element(const u32 (*rows)[LANES], u32 lane, u32 k, u32 width) {
  const u32 at = k * width, word = at / 32, shift = at % 32;
  u64 both = rows[word][lane];
  if (shift + width > 32) both |= static_cast<u64>(rows[word + 1][lane]) << 32;
  return static_cast<u32>(both >> shift) & ((1u << width) - 1);
}

f64 scale_of(const Wave& w, const Operand& o, u32 lane, u32 byte) {
  const u32 word = o.kind == VGPR ? w.v[o.index][lane] : scalar32(w, o);
  const u32 exponent = word >> 8 * byte & 0xff;
  return exponent == 255 ? std::numeric_limits<f64>::quiet_NaN() : power2(static_cast<i32>(exponent) - 127);
}

template <u32 M, u32 K> void mfma_small(Wave& w, const Instruction& i) {
  constexpr u32 groups = LANES / M;
  static_assert(K == 32 * groups);
  const bool scaled = i.imm >> 10 & 1;
  f64 left[M][K], right[K][M];
  for (u32 side = 0; side < 2; ++side) {
    const u32 form = i.imm >> 3 * side & 7, width = WIDTHS[form];
    const u32(*rows)[LANES] = &w.v[i.o[1 + side].index];
    f64 values[256];
    for (u32 x = 0; x < 1u << width; ++x) values[x] = small_to_f32(x, *FORMS[form]);
    // The scale of row (column) lane % M, for elements lane / M * 32 and on along K.
    f64 scales[LANES];
    for (u32 lane = 0; lane < LANES; ++lane)
      scales[lane] = scaled ? scale_of(w, i.o[4 + side], lane, i.imm >> (6 + 2 * side) & 3) : 1;
    const u32 piece = width == 8 ? 16 : 32;  // neighbours along K that a lane holds
    for (u32 lane = 0; lane < LANES; ++lane)
      for (u32 e = 0; e < 32; ++e) {
        const u32 at = lane % M, k = e / piece * piece * groups + piece * (lane / M) + e % piece;
        const f64 x = values[element(rows, lane, e, width)] * scales[at + M * (k / 32)];
        if (side) right[k][at] = x;
        else left[at][k] = x;
      }
  }
  const Operand& c = i.o[3];
  f32 sums[M][M];
  for (u32 row = 0; row < M; ++row) {
    const u32 reg = M == 32 ? row / 8 * 4 + row % 4 : row % 4, lane = M == 32 ? row / 4 % 2 * 32 : row / 4 * 16;
    for (u32 col = 0; col < M; ++col) {
      f32 sum = c.kind == VGPR ? as_f32(w.v[c.index + reg][lane + col]) : as_f32(static_cast<u32>(c.value));
      for (u32 k = 0; k < K; ++k) sum = static_cast<f32>(left[row][k] * right[k][col] + static_cast<f64>(sum));
      sums[row][col] = sum;
    }
  }
  for (u32 row = 0; row < M; ++row) {
    const u32 reg = M == 32 ? row / 8 * 4 + row % 4 : row % 4, lane = M == 32 ? row / 4 % 2 * 32 : row / 4 * 16;
    for (u32 col = 0; col < M; ++col) w.v[i.o[0].index + reg][lane + col] = bits(sums[row][col]);
  }
}

const Row table[] = {
    {"v_mfma_f32_16x16x128_f8f6f4@gfx950", mfma_small<16, 128>, "small 4"},
    {"v_mfma_f32_32x32x64_f8f6f4@gfx950", mfma_small<32, 64>, "small 16"},
    {"v_mfma_scale_f32_16x16x128_f8f6f4@gfx950", mfma_small<16, 128>, "small 4 scaled"},
    {"v_mfma_scale_f32_32x32x64_f8f6f4@gfx950", mfma_small<32, 64>, "small 16 scaled"},
};

}  // namespace
HKB_ROWS(scaled_rows, table)
}  // namespace hkb
