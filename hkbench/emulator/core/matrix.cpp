// MFMA: D = A * B + C. A lane of A (of B) holds neighbouring elements of K in row (column) lane % M, for block or group
// of K lane / M. Sums of floats are fused multiply-adds in float, one product after the other.
#include "lanes.h"

namespace hkb {
namespace {

// Each element type: how many a register holds, and its value. FNUZ or OCP is chosen by the mnemonic's architecture.
struct ElementF32 {
  static constexpr u32 per = 1;
  static f32 get(u32 word, u32) { return as_f32(word); }
};
struct ElementF16 {
  static constexpr u32 per = 2;
  static f32 get(u32 word, u32 k) { return half_to_f32(static_cast<u16>(word >> 16 * k)); }
};
struct ElementBf16 {
  static constexpr u32 per = 2;
  static f32 get(u32 word, u32 k) { return as_f32(k ? word & 0xffff0000 : word << 16); }
};
struct ElementXf32 {  // a float of which 10 bits of fraction count
  static constexpr u32 per = 1;
  static f32 get(u32 word, u32) { return as_f32(word & 0xffffe000); }
};
template <const Small& FORM> struct ElementF8 {
  static constexpr u32 per = 4;
  static f32 get(u32 word, u32 k) {
    static const f32* const values = small_table(FORM);
    return values[word >> 8 * k & 0xff];
  }
};
struct ElementI8 {
  static constexpr u32 per = 4;
  static i32 get(u32 word, u32 k) { return static_cast<i8>(word >> 8 * k); }
};

struct Sum32 {
  using T = f32;
  static T from(u32 x) { return as_f32(x); }
  static u32 to(T x) { return bits(x); }
  template <class V> static V step(T a, V b, V c) {
    V sum;
    for (u32 n = 0; n < sizeof(V) / sizeof(T); ++n) sum[n] = __builtin_fmaf(a, b[n], c[n]);
    return sum;
  }
};
struct SumI32 {
  using T = u32;
  static T from(u32 x) { return x; }
  static u32 to(T x) { return x; }
  template <class V> static V step(T a, V b, V c) { return a * b + c; }
};

// The register and the first lane of row `row` of block `block` of D; its columns are the lanes from there on.
template <u32 M> constexpr u32 result_register(u32 row, u32 block) {
  if constexpr (M == 32) return 16 * block + row / 8 * 4 + row % 4;
  else if constexpr (M == 16) return 4 * block + row % 4;
  else return row;
}
template <u32 M> constexpr u32 result_lane(u32 row, u32 block) {
  if constexpr (M == 32) return row / 4 % 2 * 32;
  else if constexpr (M == 16) return row / 4 * 16;
  else return 4 * block;
}

// Adds to `sum` the product of left and right, of which left is transposed.
template <u32 M, u32 K, class S, class T = typename S::T>
void multiply(const T (&left)[K][M], const T (&right)[K][M], T (&sum)[M][M]) {
  constexpr u32 wide = M < 16 ? M : 16, parts = M / wide;
  constexpr u32 rows = M == 16 ? 8 : 4;  // at a time: their sums do not wait for one another
  typedef T V __attribute__((vector_size(wide * sizeof(T))));
  for (u32 first = 0; first < M; first += rows) {
    V line[rows][parts];
    std::memcpy(&line, sum[first], sizeof line);
    for (u32 k = 0; k < K; ++k) {
      V b[parts];
      std::memcpy(&b, right[k], sizeof b);
#pragma GCC unroll 8
      for (u32 r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (u32 part = 0; part < parts; ++part) line[r][part] = S::step(left[k][first + r], b[part], line[r][part]);
    }
    std::memcpy(sum[first], &line, sizeof line);
  }
}

template <u32 M, u32 K, u32 BLOCKS, class A, class B, class S> void mfma(Wave& w, const Instruction& i) {
  using T = typename S::T;
  constexpr u32 groups = LANES / (M * BLOCKS), each = K / groups;  // elements of K that a lane holds
  static_assert(each >= 1 && each % A::per == 0 && groups * M * BLOCKS == LANES);
  const u32(*a)[LANES] = &w.v[i.o[1].index];
  const u32(*b)[LANES] = &w.v[i.o[2].index];
  const Operand& c = i.o[3];
  alignas(64) T left[K][M], right[K][M], sum[BLOCKS][M][M];
  for (u32 block = 0; block < BLOCKS; ++block) {
    for (u32 group = 0; group < groups; ++group)
      for (u32 e = 0; e < each; ++e) {
        const u32 lane = block * M + group * M, k = group * each + e;
        for (u32 r = 0; r < M; ++r) left[k][r] = A::get(a[e / A::per][lane + r], e % A::per);
        for (u32 r = 0; r < M; ++r) right[k][r] = B::get(b[e / B::per][lane + r], e % B::per);
      }
    for (u32 row = 0; row < M; ++row) {
      const u32 reg = result_register<M>(row, block), lane = result_lane<M>(row, block);
      for (u32 col = 0; col < M; ++col)
        sum[block][row][col] = S::from(c.kind == VGPR ? w.v[c.index + reg][lane + col] : static_cast<u32>(c.value));
    }
    multiply<M, K, S>(left, right, sum[block]);
  }
  for (u32 block = 0; block < BLOCKS; ++block)
    for (u32 row = 0; row < M; ++row) {
      u32* to = w.v[i.o[0].index + result_register<M>(row, block)] + result_lane<M>(row, block);
      for (u32 col = 0; col < M; ++col) to[col] = S::to(sum[block][row][col]);
    }
}

// Doubles: rows of D lie 4 apart in a lane's registers. blgp negates A, B, C.
void mfma_f64_16(Wave& w, const Instruction& i) {
  const Source<f64> a(w, i, 1), b(w, i, 2);
  const Operand& c = i.o[3];
  f64 d[4][LANES];
  for (u32 reg = 0; reg < 4; ++reg)
    for (u32 l = 0; l < LANES; ++l) {
      const u32 row = 4 * reg + l / 16, col = l % 16;
      f64 sum = as_f64(c.kind == VGPR ? w.v[c.index + 2 * reg][l] | static_cast<u64>(w.v[c.index + 2 * reg + 1][l]) << 32 : c.value);
      for (u32 k = 0; k < 4; ++k) sum = std::fma(a[static_cast<int>(16 * k + row)], b[static_cast<int>(16 * k + col)], sum);
      d[reg][l] = sum;
    }
  for (u32 reg = 0; reg < 4; ++reg)
    for (u32 l = 0; l < LANES; ++l) {
      w.v[i.o[0].index + 2 * reg][l] = static_cast<u32>(bits(d[reg][l]));
      w.v[i.o[0].index + 2 * reg + 1][l] = static_cast<u32>(bits(d[reg][l]) >> 32);
    }
}
void mfma_f64_4(Wave& w, const Instruction& i) {
  const Source<f64> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  f64 d[LANES];
  for (u32 l = 0; l < LANES; ++l) {
    const u32 col = l % 4, block = l / 4 % 4, row = l / 16;
    f64 sum = c[static_cast<int>(l)];
    for (u32 k = 0; k < 4; ++k)
      sum = std::fma(a[static_cast<int>(row + 4 * block + 16 * k)], b[static_cast<int>(col + 4 * block + 16 * k)], sum);
    d[l] = sum;
  }
  for (u32 l = 0; l < LANES; ++l) {
    w.v[i.o[0].index][l] = static_cast<u32>(bits(d[l]));
    w.v[i.o[0].index + 1][l] = static_cast<u32>(bits(d[l]) >> 32);
  }
}

using F32 = ElementF32;
using F16 = ElementF16;
using BF16 = ElementBf16;
using XF32 = ElementXf32;
using FP8 = ElementF8<E4M3_OCP>;
using BF8 = ElementF8<E5M2_OCP>;
using FP8Z = ElementF8<E4M3_FNUZ>;
using BF8Z = ElementF8<E5M2_FNUZ>;
using I8 = ElementI8;
#define M(name, M_, K, BLOCKS, A, ab, S, cd) \
  {"v_mfma_" name, mfma<M_, K, BLOCKS, A, A, S>, "mfma " #ab " " #cd}
#define M8(arch, suffix, A, B)                                                                    \
  {"v_mfma_f32_16x16x32_" suffix arch, mfma<16, 32, 1, A, B, Sum32>, "mfma 2 4"},                 \
  {"v_mfma_f32_32x32x16_" suffix arch, mfma<32, 16, 1, A, B, Sum32>, "mfma 2 16"}

const Row table[] = {
    M("f32_32x32x8_bf16", 32, 8, 1, BF16, 2, Sum32, 16),
    M("f32_16x16x16_bf16", 16, 16, 1, BF16, 2, Sum32, 4),
    M("f32_32x32x4_2b_bf16", 32, 4, 2, BF16, 2, Sum32, 32),
    M("f32_16x16x4_4b_bf16", 16, 4, 4, BF16, 2, Sum32, 16),
    M("f32_4x4x4_16b_bf16", 4, 4, 16, BF16, 2, Sum32, 4),
    M("f32_32x32x16_bf16", 32, 16, 1, BF16, 4, Sum32, 16),
    M("f32_16x16x32_bf16", 16, 32, 1, BF16, 4, Sum32, 4),
    M("f32_32x32x8_f16", 32, 8, 1, F16, 2, Sum32, 16),
    M("f32_16x16x16_f16", 16, 16, 1, F16, 2, Sum32, 4),
    M("f32_32x32x4_2b_f16", 32, 4, 2, F16, 2, Sum32, 32),
    M("f32_16x16x4_4b_f16", 16, 4, 4, F16, 2, Sum32, 16),
    M("f32_4x4x4_16b_f16", 4, 4, 16, F16, 2, Sum32, 4),
    M("f32_32x32x16_f16", 32, 16, 1, F16, 4, Sum32, 16),
    M("f32_16x16x32_f16", 16, 32, 1, F16, 4, Sum32, 4),
    M("f32_32x32x2_f32", 32, 2, 1, F32, 1, Sum32, 16),
    M("f32_16x16x4_f32", 16, 4, 1, F32, 1, Sum32, 4),
    M("f32_32x32x1_2b_f32", 32, 1, 2, F32, 1, Sum32, 32),
    M("f32_16x16x1_4b_f32", 16, 1, 4, F32, 1, Sum32, 16),
    M("f32_4x4x1_16b_f32", 4, 1, 16, F32, 1, Sum32, 4),
    M("f32_32x32x4_xf32", 32, 4, 1, XF32, 2, Sum32, 16),
    M("f32_16x16x8_xf32", 16, 8, 1, XF32, 2, Sum32, 4),
    M("i32_32x32x16_i8", 32, 16, 1, I8, 2, SumI32, 16),
    M("i32_16x16x32_i8", 16, 32, 1, I8, 2, SumI32, 4),
    M("i32_32x32x32_i8", 32, 32, 1, I8, 4, SumI32, 16),
    M("i32_16x16x64_i8", 16, 64, 1, I8, 4, SumI32, 4),
    M("i32_32x32x4_2b_i8", 32, 4, 2, I8, 1, SumI32, 32),
    M("i32_16x16x4_4b_i8", 16, 4, 4, I8, 1, SumI32, 16),
    M("i32_4x4x4_16b_i8", 4, 4, 16, I8, 1, SumI32, 4),
    M8("@gfx950", "fp8_fp8", FP8, FP8),
    M8("@gfx950", "fp8_bf8", FP8, BF8),
    M8("@gfx950", "bf8_fp8", BF8, FP8),
    M8("@gfx950", "bf8_bf8", BF8, BF8),
    M8("@gfx942", "fp8_fp8", FP8Z, FP8Z),
    M8("@gfx942", "fp8_bf8", FP8Z, BF8Z),
    M8("@gfx942", "bf8_fp8", BF8Z, FP8Z),
    M8("@gfx942", "bf8_bf8", BF8Z, BF8Z),
    {"v_mfma_f64_16x16x4_f64", mfma_f64_16, "mfma64 2 8"},
    {"v_mfma_f64_4x4x4_4b_f64", mfma_f64_4, "mfma64 2 2"},
};

}  // namespace
HKB_ROWS(matrix_rows, table)
}  // namespace hkb
