// SALU: one value a wave. Each row has the registers' types, an expression of a, b (and d, what the destination held),
// and the effect on SCC.
#include "lanes.h"

namespace hkb {
namespace {

template <class T> Value<T> get(const Wave& w, const Operand& o) {
  if constexpr (is_wide<T>) return bit_cast<Value<T>>(scalar64(w, o));
  else return bit_cast<Value<T>>(scalar32(w, o));
}
template <class T> void put(Wave& w, const Operand& o, Value<T> x) {
  if constexpr (is_wide<T>) set_scalar64(w, o, bit_cast<u64>(x));
  else set_scalar32(w, o, bit_cast<u32>(x));
}
template <class D, class A, class F> void one(Wave& w, const Instruction& i) {
  u32 scc = w.scc;
  const auto x = F{}(get<A>(w, i.o[1]), get<D>(w, i.o[0]), scc);
  put<D>(w, i.o[0], x);
  w.scc = scc;
}
template <class D, class A, class B, class F> void two(Wave& w, const Instruction& i) {
  u32 scc = w.scc;
  const auto x = F{}(get<A>(w, i.o[1]), get<B>(w, i.o[2]), scc);
  put<D>(w, i.o[0], x);
  w.scc = scc;
}
template <class A, class B, class F> void test(Wave& w, const Instruction& i) {
  w.scc = F{}(get<A>(w, i.o[0]), get<B>(w, i.o[1]));
}
template <class F> void save_exec(Wave& w, const Instruction& i) {
  const u64 exec = w.exec(), source = scalar64(w, i.o[1]), result = F{}(source, exec);
  set_scalar64(w, i.o[0], exec);
  w.set_pair(EXEC, result);
  w.scc = result != 0;
}
template <class F> void write_exec(Wave& w, const Instruction& i) {
  const u64 result = F{}(scalar64(w, i.o[1]), w.exec());
  set_scalar64(w, i.o[0], result);
  w.set_pair(EXEC, result);
  w.scc = result != 0;
}

// SCC as most rows have it: the result is not zero.
#define NONZERO(type, expression) [&] { const Value<type> r = (expression); scc = r != 0; return r; }()
#define MAYBE [[maybe_unused]]
#define S1(name, D, A, in, out, expression) \
  {#name, one<D, A, HKB_LAMBDA((MAYBE Value<A> a, MAYBE Value<D> d, MAYBE u32& scc), (expression))>, \
   in "s:" #D " c:" #A out}
#define S2(name, D, A, B, out, expression) \
  {#name, two<D, A, B, HKB_LAMBDA((MAYBE Value<A> a, MAYBE Value<B> b, MAYBE u32& scc), (expression))>, \
   "=s:" #D " c:" #A " c:" #B out}
#define ST(name, A, B, expression) \
  {#name, test<A, B, HKB_LAMBDA((MAYBE Value<A> a, MAYBE Value<B> b), (expression))>, "c:" #A " c:" #B " =scc"}
#define SAVE(name, expression) \
  {#name, save_exec<HKB_LAMBDA((u64 a, u64 e), (expression))>, "=s:b64 c:b64 exec =exec =scc"}
#define WRITE(name, expression) \
  {#name, write_exec<HKB_LAMBDA((u64 a, u64 e), (expression))>, "=s:b64 c:b64 exec =exec =scc"}
#define LOGIC(name, expression)                                        \
  S2(s_##name##_b32, b32, b32, b32, " =scc", NONZERO(b32, expression)), \
  S2(s_##name##_b64, b64, b64, b64, " =scc", NONZERO(b64, expression))
#define COMPARE(suffix, T)                    \
  ST(s_cmp_eq_##suffix, T, T, a == b),        \
  ST(s_cmp_lg_##suffix, T, T, a != b),        \
  ST(s_cmp_gt_##suffix, T, T, a > b),         \
  ST(s_cmp_ge_##suffix, T, T, a >= b),        \
  ST(s_cmp_lt_##suffix, T, T, a < b),         \
  ST(s_cmp_le_##suffix, T, T, a <= b)
#define SK(name, T, how, expression) \
  {#name, test<T, T, HKB_LAMBDA((T a, T b), (expression))>, "c:" #T " " how ":" #T " =scc"}
#define COMPARE_K(suffix, T, how)                  \
  SK(s_cmpk_eq_##suffix, T, how, a == b),          \
  SK(s_cmpk_lg_##suffix, T, how, a != b),          \
  SK(s_cmpk_gt_##suffix, T, how, a > b),           \
  SK(s_cmpk_ge_##suffix, T, how, a >= b),          \
  SK(s_cmpk_lt_##suffix, T, how, a < b),           \
  SK(s_cmpk_le_##suffix, T, how, a <= b)

u32 add(u32 a, u32 b, u32 c, u32& scc) {
  const u64 sum = static_cast<u64>(a) + b + c;
  scc = sum >> 32 != 0;
  return static_cast<u32>(sum);
}
u32 sub(u32 a, u32 b, u32 c, u32& scc) {
  scc = static_cast<u64>(b) + c > a;
  return a - b - c;
}
i32 add_signed(i32 a, i32 b, u32& scc) {
  i32 r;
  scc = __builtin_add_overflow(a, b, &r);
  return r;
}
i32 sub_signed(i32 a, i32 b, u32& scc) {
  i32 r;
  scc = __builtin_sub_overflow(a, b, &r);
  return r;
}
template <class T> T pick(bool first, T a, T b, u32& scc) {
  scc = first;
  return first ? a : b;
}
u64 field(u64 x, u32 control, u32 bits_) {
  const u32 offset = control & (bits_ - 1), width = control >> 16 & 127;
  const u64 mask = width >= 64 ? ~u64{0} : (u64{1} << width) - 1;
  return x >> offset & mask;
}
i64 signed_field(i64 x, u32 control, u32 bits_) {
  const u32 offset = control & (bits_ - 1);
  u32 width = control >> 16 & 127;
  if (width > bits_) width = bits_;
  if (!width) return 0;
  const u64 raw = field(static_cast<u64>(x >> offset), width << 16, 64);
  return static_cast<i64>(raw << (64 - width)) >> (64 - width);
}
u64 shifted_add(u32 a, u32 b, u32 n, u32& scc) {
  const u64 sum = (static_cast<u64>(a) << n) + b;
  scc = sum >> 32 != 0;
  return sum;
}
u32 flbit(i64 x, int width) {
  if (x == 0 || x == -1) return ~0u;
  const u64 y = static_cast<u64>(x < 0 ? ~x : x);
  return static_cast<u32>(std::countl_zero(y)) - static_cast<u32>(64 - width);
}
u64 reversed(u64 x) {
  u64 r = 0;
  for (int k = 0; k < 64; ++k) r |= (x >> k & 1) << (63 - k);
  return r;
}
u64 replicated(u32 x) {
  u64 r = 0;
  for (int k = 0; k < 32; ++k) r |= (x >> k & 1 ? u64{3} : 0) << 2 * k;
  return r;
}
template <class T> T quads(T x, bool whole) {
  T r = 0;
  for (unsigned k = 0; k < 2 * sizeof(T); ++k)
    if (x >> 4 * k & 15) r |= whole ? T{15} << 4 * k : T{1} << k;
  return r;
}

const Row table[] = {
    S1(s_mov_b32, b32, b32, "=", "", a),
    S1(s_mov_b64, b64, b64, "=", "", a),
    {"s_movk_i32", one<b32, b32, HKB_LAMBDA((u32 a, u32, u32&), a)>, "=s:b32 i:b32"},
    S1(s_cmov_b32, b32, b32, "+", " scc", scc ? a : d),
    S1(s_cmov_b64, b64, b64, "+", " scc", scc ? a : d),
    {"s_cmovk_i32", one<b32, b32, HKB_LAMBDA((u32 a, u32 d, u32& scc), scc ? a : d)>, "+s:b32 i:b32 scc"},
    S1(s_not_b32, b32, b32, "=", " =scc", NONZERO(b32, ~a)),
    S1(s_not_b64, b64, b64, "=", " =scc", NONZERO(b64, ~a)),
    S1(s_brev_b32, b32, b32, "=", "", static_cast<u32>(reversed(a) >> 32)),
    S1(s_brev_b64, b64, b64, "=", "", reversed(a)),
    S1(s_wqm_b32, b32, b32, "=", " =scc", NONZERO(b32, quads(a, true))),
    S1(s_wqm_b64, b64, b64, "=", " =scc", NONZERO(b64, quads(a, true))),
    S1(s_quadmask_b32, b32, b32, "=", " =scc", NONZERO(b32, quads(a, false))),
    S1(s_quadmask_b64, b64, b64, "=", " =scc", NONZERO(b64, quads(a, false))),
    S1(s_bcnt0_i32_b32, b32, b32, "=", " =scc", NONZERO(b32, static_cast<u32>(std::popcount(~a)))),
    S1(s_bcnt0_i32_b64, b32, b64, "=", " =scc", NONZERO(b32, static_cast<u32>(std::popcount(~a)))),
    S1(s_bcnt1_i32_b32, b32, b32, "=", " =scc", NONZERO(b32, static_cast<u32>(std::popcount(a)))),
    S1(s_bcnt1_i32_b64, b32, b64, "=", " =scc", NONZERO(b32, static_cast<u32>(std::popcount(a)))),
    S1(s_ff0_i32_b32, b32, b32, "=", "", ~a ? static_cast<u32>(std::countr_one(a)) : ~0u),
    S1(s_ff0_i32_b64, b32, b64, "=", "", ~a ? static_cast<u32>(std::countr_one(a)) : ~0u),
    S1(s_ff1_i32_b32, b32, b32, "=", "", a ? static_cast<u32>(std::countr_zero(a)) : ~0u),
    S1(s_ff1_i32_b64, b32, b64, "=", "", a ? static_cast<u32>(std::countr_zero(a)) : ~0u),
    S1(s_flbit_i32_b32, b32, b32, "=", "", a ? static_cast<u32>(std::countl_zero(a)) : ~0u),
    S1(s_flbit_i32_b64, b32, b64, "=", "", a ? static_cast<u32>(std::countl_zero(a)) : ~0u),
    S1(s_flbit_i32, b32, i32, "=", "", flbit(a, 32)),
    S1(s_flbit_i32_i64, b32, i64, "=", "", flbit(a, 64)),
    S1(s_sext_i32_i8, i32, b32, "=", "", static_cast<i8>(a)),
    S1(s_sext_i32_i16, i32, b32, "=", "", static_cast<i16>(a)),
    S1(s_bitset0_b32, b32, b32, "+", "", d & ~(1u << (a & 31))),
    S1(s_bitset1_b32, b32, b32, "+", "", d | 1u << (a & 31)),
    S1(s_bitset0_b64, b64, b32, "+", "", d & ~(u64{1} << (a & 63))),
    S1(s_bitset1_b64, b64, b32, "+", "", d | u64{1} << (a & 63)),
    S1(s_bitreplicate_b64_b32, b64, b32, "=", "", replicated(a)),
    S1(s_abs_i32, b32, b32, "=", " =scc", NONZERO(b32, a >> 31 ? 0u - a : a)),
    SAVE(s_and_saveexec_b64, a& e),
    SAVE(s_or_saveexec_b64, a | e),
    SAVE(s_xor_saveexec_b64, a ^ e),
    SAVE(s_andn2_saveexec_b64, a & ~e),
    SAVE(s_orn2_saveexec_b64, a | ~e),
    SAVE(s_nand_saveexec_b64, ~(a & e)),
    SAVE(s_nor_saveexec_b64, ~(a | e)),
    SAVE(s_xnor_saveexec_b64, ~(a ^ e)),
    SAVE(s_andn1_saveexec_b64, ~a & e),
    SAVE(s_orn1_saveexec_b64, ~a | e),
    WRITE(s_andn1_wrexec_b64, ~a & e),
    WRITE(s_andn2_wrexec_b64, a & ~e),
    S2(s_add_u32, u32, u32, u32, " =scc", add(a, b, 0, scc)),
    S2(s_sub_u32, u32, u32, u32, " =scc", sub(a, b, 0, scc)),
    S2(s_addc_u32, u32, u32, u32, " scc =scc", add(a, b, scc, scc)),
    S2(s_subb_u32, u32, u32, u32, " scc =scc", sub(a, b, scc, scc)),
    S2(s_add_i32, i32, i32, i32, " =scc", add_signed(a, b, scc)),
    S2(s_sub_i32, i32, i32, i32, " =scc", sub_signed(a, b, scc)),
    S2(s_min_i32, i32, i32, i32, " =scc", pick(a < b, a, b, scc)),
    S2(s_max_i32, i32, i32, i32, " =scc", pick(a > b, a, b, scc)),
    S2(s_min_u32, u32, u32, u32, " =scc", pick(a < b, a, b, scc)),
    S2(s_max_u32, u32, u32, u32, " =scc", pick(a > b, a, b, scc)),
    S2(s_cselect_b32, b32, b32, b32, " scc", scc ? a : b),
    S2(s_cselect_b64, b64, b64, b64, " scc", scc ? a : b),
    LOGIC(and, a& b),
    LOGIC(or, a | b),
    LOGIC(xor, a ^ b),
    LOGIC(andn2, a & ~b),
    LOGIC(orn2, a | ~b),
    LOGIC(nand, ~(a & b)),
    LOGIC(nor, ~(a | b)),
    LOGIC(xnor, ~(a ^ b)),
    S2(s_lshl_b32, b32, b32, b32, " =scc", NONZERO(b32, a << (b & 31))),
    S2(s_lshl_b64, b64, b64, b32, " =scc", NONZERO(b64, a << (b & 63))),
    S2(s_lshr_b32, b32, b32, b32, " =scc", NONZERO(b32, a >> (b & 31))),
    S2(s_lshr_b64, b64, b64, b32, " =scc", NONZERO(b64, a >> (b & 63))),
    S2(s_ashr_i32, i32, i32, b32, " =scc", NONZERO(i32, a >> (b & 31))),
    S2(s_ashr_i64, i64, i64, b32, " =scc", NONZERO(i64, a >> (b & 63))),
    S2(s_bfm_b32, b32, b32, b32, "", ((1u << (a & 31)) - 1) << (b & 31)),
    S2(s_bfm_b64, b64, b32, b32, "", ((u64{1} << (a & 63)) - 1) << (b & 63)),
    S2(s_mul_i32, u32, u32, u32, "", a* b),
    S2(s_mul_hi_u32, u32, u32, u32, "", static_cast<u32>(static_cast<u64>(a) * b >> 32)),
    S2(s_mul_hi_i32, i32, i32, i32, "", static_cast<i32>(static_cast<i64>(a) * b >> 32)),
    S2(s_bfe_u32, u32, u32, b32, " =scc", NONZERO(u32, static_cast<u32>(field(a, b, 32)))),
    S2(s_bfe_i32, i32, i32, b32, " =scc", NONZERO(i32, static_cast<i32>(signed_field(a, b, 32)))),
    S2(s_bfe_u64, u64, u64, b32, " =scc", NONZERO(u64, field(a, b, 64))),
    S2(s_bfe_i64, i64, i64, b32, " =scc", NONZERO(i64, signed_field(a, b, 64))),
    S2(s_absdiff_i32, u32, u32, u32, " =scc", NONZERO(u32, static_cast<i32>(a - b) < 0 ? b - a : a - b)),
    S2(s_lshl1_add_u32, u32, u32, u32, " =scc", static_cast<u32>(shifted_add(a, b, 1, scc))),
    S2(s_lshl2_add_u32, u32, u32, u32, " =scc", static_cast<u32>(shifted_add(a, b, 2, scc))),
    S2(s_lshl3_add_u32, u32, u32, u32, " =scc", static_cast<u32>(shifted_add(a, b, 3, scc))),
    S2(s_lshl4_add_u32, u32, u32, u32, " =scc", static_cast<u32>(shifted_add(a, b, 4, scc))),
    S2(s_pack_ll_b32_b16, b32, b32, b32, "", (a & 0xffff) | b << 16),
    S2(s_pack_lh_b32_b16, b32, b32, b32, "", (a & 0xffff) | (b & 0xffff0000)),
    S2(s_pack_hh_b32_b16, b32, b32, b32, "", a >> 16 | (b & 0xffff0000)),
    {"s_addk_i32", one<i32, i32, HKB_LAMBDA((i32 a, i32 d, u32& scc), add_signed(d, a, scc))>, "+s:i32 i:i32 =scc"},
    {"s_mulk_i32", one<u32, u32, HKB_LAMBDA((u32 a, u32 d, u32&), a* d)>, "+s:u32 i:u32"},
    COMPARE(i32, i32),
    COMPARE(u32, u32),
    ST(s_cmp_eq_u64, u64, u64, a == b),
    ST(s_cmp_lg_u64, u64, u64, a != b),
    COMPARE_K(i32, i32, "i"),
    COMPARE_K(u32, u32, "n"),
    ST(s_bitcmp0_b32, b32, b32, !(a >> (b & 31) & 1)),
    ST(s_bitcmp1_b32, b32, b32, a >> (b & 31) & 1),
    ST(s_bitcmp0_b64, b64, b32, !(a >> (b & 63) & 1)),
    ST(s_bitcmp1_b64, b64, b32, a >> (b & 63) & 1),
};

}  // namespace
HKB_ROWS(scalar_rows, table)
}  // namespace hkb
