// VALU: 32-bit integers and bits.
#include "lanes.h"

namespace hkb {
namespace {

i32 sext24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
u32 mul_hi(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }
i32 mul_hi(i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }
u32 bfe(u32 x, u32 offset, u32 width) { return x >> (offset & 31) & ((1u << (width & 31)) - 1); }
i32 bfe_signed(i32 x, u32 offset, u32 width) {
  const u32 n = width & 31, field = bfe(static_cast<u32>(x >> (offset & 31)), 0, n);
  const u32 sign = n ? 1u << (n - 1) : 0;
  return static_cast<i32>((field ^ sign) - sign);
}
u32 reversed(u32 x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
u32 first_high(u32 x) { return x ? static_cast<u32>(std::countl_zero(x)) : ~0u; }
u32 first_low(u32 x) { return x ? static_cast<u32>(std::countr_zero(x)) : ~0u; }
u32 first_signed(i32 x) { return x == 0 || x == -1 ? ~0u : first_high(static_cast<u32>(x < 0 ? ~x : x)); }
u32 permuted_byte(u64 data, u32 select) {
  if (select >= 13) return 0xff;
  if (select == 12) return 0;
  if (select >= 8) return data >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
  return static_cast<u32>(data >> 8 * select) & 0xff;
}
u32 perm(u32 a, u32 b, u32 select) {
  const u64 data = static_cast<u64>(a) << 32 | b;
  return permuted_byte(data, select & 0xff) | permuted_byte(data, select >> 8 & 0xff) << 8 |
         permuted_byte(data, select >> 16 & 0xff) << 16 | permuted_byte(data, select >> 24) << 24;
}
u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
u32 sad(u32 a, u32 b, u32 c, u32 width) {
  for (u32 at = 0; at < 32; at += width) c += distance(bfe(a, at, width), bfe(b, at, width));
  return c;
}

// Additions with carries: a lane mask goes out, and for some another comes in. CLAMP saturates.
template <class F, bool CARRY_IN> void with_carry(Wave& w, const Instruction& i) {
  const Source<u32> a(w, i, 2), b(w, i, 3);
  Result<b32> d;
  const u64 in = CARRY_IN ? scalar64(w, i.o[4]) : 0;
  alignas(64) u32 out[LANES];
  for (int l = 0; l < 64; ++l) {
    const i64 sum = F{}(static_cast<i64>(a[l]), static_cast<i64>(b[l]), static_cast<i64>(in >> l & 1));
    out[l] = sum < 0 || sum > 0xffffffff ? 1 : 0;
    d.t[l] = static_cast<u32>(sum);
  }
  const u64 mask = write_mask(w, i);
  d.commit(w, i);
  set_scalar64(w, i.o[1], pack(out) & mask);
}
using Add = HKB_LAMBDA((i64 a, i64 b, i64 c), a + b + c);
using Sub = HKB_LAMBDA((i64 a, i64 b, i64 c), a - b - c);
using SubRev = HKB_LAMBDA((i64 a, i64 b, i64 c), b - a - c);

// 32-bit additions with CLAMP saturate.
template <class T, class F> void add_clamped(Wave& w, const Instruction& i) {
  const Source<T> a(w, i, 1), b(w, i, 2);
  Result<b32> d;
  for (int l = 0; l < 64; ++l) {
    i64 sum = F{}(static_cast<i64>(a[l]), static_cast<i64>(b[l]), i64{0});
    if (i.clamp) {
      const i64 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      sum = sum < low ? low : sum > high ? high : sum;
    }
    d.t[l] = static_cast<u32>(sum);
  }
  Instruction plain = i;
  plain.clamp = 0;
  d.commit(w, plain);
}
template <class T, class F> void add_no_carry(Wave& w, const Instruction& i) {
  if (i.clamp) return add_clamped<T, F>(w, i);
  const Source<T> a(w, i, 1), b(w, i, 2);
  Result<b32> d;
  for (int l = 0; l < 64; ++l) d.t[l] = static_cast<u32>(F{}(static_cast<u32>(a[l]), static_cast<u32>(b[l]), 0u));
  d.commit(w, i);
}

void cndmask(Wave& w, const Instruction& i) {
  const Source<m32> a(w, i, 1), b(w, i, 2);
  Result<b32> d;
  const u64 mask = scalar64(w, i.o[3]);
  std::memcpy(d.t, a.p, sizeof d.t);
  store_lanes(d.t, b.p, mask);
  d.commit(w, i);
}

// Three inputs, and the eight bits of their truth table.
void bitop3(Wave& w, const Instruction& i) {
  const Source<b32> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<b32> d;
  u32 on[8];
  for (u32 k = 0; k < 8; ++k) on[k] = i.imm >> k & 1 ? ~0u : 0u;
  for (int l = 0; l < 64; ++l) {
    const u32 x = a[l], y = b[l], z = c[l];
    d.t[l] = (~x & ((~y & ((~z & on[0]) | (z & on[1]))) | (y & ((~z & on[2]) | (z & on[3]))))) |
             (x & ((~y & ((~z & on[4]) | (z & on[5]))) | (y & ((~z & on[6]) | (z & on[7])))));
  }
  d.commit(w, i);
}
void bitop3_16(Wave& w, const Instruction& i) {
  const Source<h16> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  Result<h16> d;
  for (int l = 0; l < 64; ++l) {
    u32 value = 0;
    for (u32 k = 0; k < 8; ++k)
      if (i.imm >> k & 1) value |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    d.set(l, value & 0xffff);
  }
  d.commit(w, i);
}

const Row table[] = {
    V1(v_mov_b32, b32, b32, a),
    V1(v_not_b32, b32, b32, ~a),
    V1(v_bfrev_b32, b32, b32, reversed(a)),
    V1(v_ffbh_u32, u32, u32, first_high(a)),
    V1(v_ffbl_b32, u32, u32, first_low(a)),
    V1(v_ffbh_i32, u32, i32, first_signed(a)),
    V2(v_bcnt_u32_b32, u32, u32, u32, static_cast<u32>(std::popcount(a)) + b),
    V2(v_and_b32, b32, b32, b32, a& b),
    V2(v_or_b32, b32, b32, b32, a | b),
    V2(v_xor_b32, b32, b32, b32, a ^ b),
    V2(v_xnor_b32, b32, b32, b32, ~(a ^ b)),
    V2(v_lshlrev_b32, b32, b32, b32, b << (a & 31)),
    V2(v_lshrrev_b32, b32, b32, b32, b >> (a & 31)),
    V2(v_ashrrev_i32, i32, b32, i32, b >> (a & 31)),
    V2(v_bfm_b32, b32, b32, b32, ((1u << (a & 31)) - 1) << (b & 31)),
    {"v_add_u32", add_no_carry<u32, Add>, "=v:u32 x:u32 x:u32"},
    {"v_sub_u32", add_no_carry<u32, Sub>, "=v:u32 x:u32 x:u32"},
    {"v_subrev_u32", add_no_carry<u32, SubRev>, "=v:u32 x:u32 x:u32"},
    {"v_add_i32", add_no_carry<i32, Add>, "=v:i32 x:i32 x:i32"},
    {"v_sub_i32", add_no_carry<i32, Sub>, "=v:i32 x:i32 x:i32"},
    {"v_add_co_u32", with_carry<Add, false>, "=v:u32 =m:b64 x:u32 x:u32"},
    {"v_sub_co_u32", with_carry<Sub, false>, "=v:u32 =m:b64 x:u32 x:u32"},
    {"v_subrev_co_u32", with_carry<SubRev, false>, "=v:u32 =m:b64 x:u32 x:u32"},
    {"v_addc_co_u32", with_carry<Add, true>, "=v:u32 =m:b64 x:u32 x:u32 m:b64"},
    {"v_subb_co_u32", with_carry<Sub, true>, "=v:u32 =m:b64 x:u32 x:u32 m:b64"},
    {"v_subbrev_co_u32", with_carry<SubRev, true>, "=v:u32 =m:b64 x:u32 x:u32 m:b64"},
    {"v_cndmask_b32", cndmask, "=v:b32 x:m32 x:m32 m:b64"},
    {"v_bitop3_b32", bitop3, "=v:b32 x:b32 x:b32 x:b32"},
    {"v_bitop3_b16", bitop3_16, "=v:h16 x:h16 x:h16 x:h16"},
    V2(v_max_i32, i32, i32, i32, a > b ? a : b),
    V2(v_min_i32, i32, i32, i32, a < b ? a : b),
    V2(v_max_u32, u32, u32, u32, a > b ? a : b),
    V2(v_min_u32, u32, u32, u32, a < b ? a : b),
    V2(v_mul_lo_u32, u32, u32, u32, a* b),
    V2(v_mul_hi_u32, u32, u32, u32, mul_hi(a, b)),
    V2(v_mul_hi_i32, i32, i32, i32, mul_hi(a, b)),
    V2(v_mul_u32_u24, u32, u32, u32, (a & 0xffffff) * (b & 0xffffff)),
    V2(v_mul_i32_i24, i32, u32, u32, static_cast<i32>(static_cast<i64>(sext24(a)) * sext24(b))),
    V2(v_mul_hi_u32_u24, u32, u32, u32, mul_hi(a & 0xffffff, b & 0xffffff)),
    V2(v_mul_hi_i32_i24, i32, u32, u32, mul_hi(sext24(a), sext24(b))),
    V3(v_mad_u32_u24, u32, u32, u32, u32, (a & 0xffffff) * (b & 0xffffff) + c),
    V3(v_mad_i32_i24, u32, u32, u32, u32, static_cast<u32>(static_cast<i64>(sext24(a)) * sext24(b)) + c),
    V3(v_add3_u32, u32, u32, u32, u32, a + b + c),
    V3(v_lshl_add_u32, u32, u32, u32, u32, (a << (b & 31)) + c),
    V3(v_add_lshl_u32, u32, u32, u32, u32, (a + b) << (c & 31)),
    V3(v_lshl_or_b32, b32, b32, b32, b32, (a << (b & 31)) | c),
    V3(v_and_or_b32, b32, b32, b32, b32, (a & b) | c),
    V3(v_or3_b32, b32, b32, b32, b32, a | b | c),
    V3(v_xad_u32, u32, u32, u32, u32, (a ^ b) + c),
    V3(v_bfe_u32, u32, u32, u32, u32, bfe(a, b, c)),
    V3(v_bfe_i32, i32, i32, u32, u32, bfe_signed(a, b, c)),
    V3(v_bfi_b32, b32, b32, b32, b32, (a & b) | (~a & c)),
    V3(v_alignbit_b32, b32, b32, b32, b32, static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (c & 31))),
    V3(v_alignbyte_b32, b32, b32, b32, b32, static_cast<u32>((static_cast<u64>(a) << 32 | b) >> 8 * (c & 3))),
    V3(v_perm_b32, b32, b32, b32, b32, perm(a, b, c)),
    V3(v_min3_u32, u32, u32, u32, u32, (a < b ? a : b) < c ? (a < b ? a : b) : c),
    V3(v_max3_u32, u32, u32, u32, u32, (a > b ? a : b) > c ? (a > b ? a : b) : c),
    V3(v_med3_u32, u32, u32, u32, u32, middle(a, b, c)),
    V3(v_min3_i32, i32, i32, i32, i32, (a < b ? a : b) < c ? (a < b ? a : b) : c),
    V3(v_max3_i32, i32, i32, i32, i32, (a > b ? a : b) > c ? (a > b ? a : b) : c),
    V3(v_med3_i32, i32, i32, i32, i32, middle(a, b, c)),
    V3(v_sad_u8, u32, u32, u32, u32, sad(a, b, c, 8)),
    V3(v_sad_u16, u32, u32, u32, u32, sad(a, b, c, 16)),
    V3(v_sad_hi_u8, u32, u32, u32, u32, (sad(a, b, 0, 8) << 16) + c),
    V3(v_sad_u32, u32, u32, u32, u32, distance(a, b) + c),
    V3(v_lerp_u8, u32, u32, u32, u32, [&] {
         u32 d = 0;
         for (u32 at = 0; at < 32; at += 8)
           d |= ((a >> at & 0xff) + (b >> at & 0xff) + (c >> at & 1)) >> 1 << at;
         return d;
       }()),
};

}  // namespace
HKB_ROWS(int32_rows, table)
}  // namespace hkb
