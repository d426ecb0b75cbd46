// Vector operands: how 64 lanes are fetched and written, with all modifiers. The tables of mnemonics are built on it.
#pragma once
#include <bit>

#include "numbers.h"
#include "wave.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace hkb {

// Operand types that C++ has no name for.
struct f16 {};   // a half in the low 16 bits; its value is a float
struct bf16 {};
struct b32 {};   // bits, without number: no NEG or ABS
struct b64 {};
struct m32 {};   // bits that NEG and ABS apply to, and the flushing of denormals does not
struct h16 {};   // 16 bits, unsigned
struct s16 {};   // 16 bits, signed

template <class T> struct TypeOf { using Value = T; };
template <> struct TypeOf<f16> { using Value = f32; };
template <> struct TypeOf<bf16> { using Value = f32; };
template <> struct TypeOf<b32> { using Value = u32; };
template <> struct TypeOf<m32> { using Value = u32; };
template <> struct TypeOf<b64> { using Value = u64; };
template <> struct TypeOf<h16> { using Value = u32; };
template <> struct TypeOf<s16> { using Value = i32; };
template <class T> using Value = typename TypeOf<T>::Value;
template <class T> inline constexpr bool is_wide = sizeof(Value<T>) == 8;
template <class T> inline constexpr bool is_half = std::is_same_v<T, f16>;
template <class T> inline constexpr bool is_16 =
    is_half<T> || std::is_same_v<T, h16> || std::is_same_v<T, s16> || std::is_same_v<T, bf16>;

template <class T> inline Value<T> from_bits(u32 x) {
  if constexpr (std::is_same_v<T, f16>) return half_to_f32(static_cast<u16>(x));
  else if constexpr (std::is_same_v<T, bf16>) return bf16_to_f32(static_cast<u16>(x));
  else if constexpr (std::is_same_v<T, h16>) return x & 0xffff;
  else if constexpr (std::is_same_v<T, s16>) return static_cast<i16>(x);
  else return bit_cast<Value<T>>(x);
}
template <class T> inline u32 to_bits(Value<T> x) {
  if constexpr (std::is_same_v<T, f16>) return f32_to_half(x);
  else if constexpr (std::is_same_v<T, bf16>) return f32_to_bf16(x);
  else if constexpr (std::is_same_v<T, h16>) return x & 0xffff;
  else if constexpr (std::is_same_v<T, s16>) return static_cast<u32>(x) & 0xffff;
  else return bit_cast<u32>(x);
}

// Between 0 and 1; what NaN comes to is MODE's.
template <class T> inline T clamped(const Wave& w, T x) {
  if (x != x) return w.mode & MODE_DX10_CLAMP ? T{0} : x;
  return x > 0 ? x > 1 ? T{1} : x : T{0};
}

u32 scalar32(const Wave& w, const Operand& o);
u64 scalar64(const Wave& w, const Operand& o);
void set_scalar32(Wave& w, const Operand& o, u32 value);
void set_scalar64(Wave& w, const Operand& o, u64 value);
// Fill `t` with what operand `n` is after DPP, SDWA, neg, abs and the flushing of denormals. `bits_`: of its type.
void fetch_slow(const Wave& w, const Instruction& i, u32 n, u32* t, bool is_float, u32 bits_, bool flushes);
u64 dpp_mask(const Wave& w, const Instruction& i);
// Change the results by omod, clamp, op_sel and SDWA, and write them.
void commit_slow(Wave& w, const Instruction& i, u32* t, u64 mask, bool is_float, u32 bits_);
void commit_slow64(Wave& w, const Instruction& i, u64* t, u64 mask, bool is_float);

inline u64 write_mask(const Wave& w, const Instruction& i) { return i.dpp ? w.exec() & dpp_mask(w, i) : w.exec(); }

inline void store_lanes(u32* to, const u32* from, u64 mask) {
  if (mask == ~u64{0}) {
    std::memcpy(to, from, 4 * LANES);
    return;
  }
#ifdef __AVX512F__
  for (int q = 0; q < 4; ++q)
    _mm512_mask_storeu_epi32(to + 16 * q, static_cast<__mmask16>(mask >> 16 * q), _mm512_loadu_si512(from + 16 * q));
#else
  for (u32 l = 0; l < LANES; ++l) to[l] = mask >> l & 1 ? from[l] : to[l];
#endif
}

// One bit a lane of what is not zero.
inline u64 pack(const u32* t) {
  u64 mask = 0;
#ifdef __AVX512F__
  for (int q = 0; q < 4; ++q) {
    const __m512i x = _mm512_loadu_si512(t + 16 * q);
    mask |= static_cast<u64>(_mm512_test_epi32_mask(x, x)) << 16 * q;
  }
#else
  for (u32 l = 0; l < LANES; ++l) mask |= static_cast<u64>(t[l] != 0) << l;
#endif
  return mask;
}

template <class T, bool WIDE = is_wide<T>> struct Source;

template <class T> struct Source<T, false> {
  static constexpr bool flushes = std::is_same_v<T, f32>, is_float = flushes || is_half<T> || std::is_same_v<T, m32>;
  const u32* p;
  alignas(64) u32 t[LANES];

  Source(const Wave& w, const Instruction& i, u32 n) {
    const Operand& o = i.o[n];
    if (o.flags == 0 && !i.dpp && !i.sdwa && (!flushes || !w.flush)) {
      if (o.kind == VGPR) {
        p = w.v[o.index];
        return;
      }
      const u32 x = scalar32(w, o);
      for (u32& each : t) each = x;
    } else {
      fetch_slow(w, i, n, t, is_float, is_16<T> ? 16 : 32, flushes);
    }
    p = t;
  }
  Value<T> operator[](int l) const { return from_bits<T>(p[l]); }
};

template <class T> struct Source<T, true> {
  alignas(64) u64 t[LANES];

  Source(const Wave& w, const Instruction& i, u32 n) {
    const Operand& o = i.o[n];
    if (o.kind == VGPR) {
      const u32 *low = w.v[o.index], *high = w.v[o.index + 1];
      for (u32 l = 0; l < LANES; ++l) t[l] = low[l] | static_cast<u64>(high[l]) << 32;
    } else {
      const u64 x = scalar64(w, o);
      for (u64& each : t) each = x;
    }
    if constexpr (std::is_same_v<T, f64>) {
      if (o.flags & ABS)
        for (u64& each : t) each &= ~(u64{1} << 63);
      if (o.flags & NEG)
        for (u64& each : t) each ^= u64{1} << 63;
    }
  }
  Value<T> operator[](int l) const { return bit_cast<Value<T>>(t[l]); }
};

template <class T, bool WIDE = is_wide<T>> struct Result;

template <class T> struct Result<T, false> {
  static constexpr bool is_float = std::is_same_v<T, f32> || is_half<T>;
  alignas(64) u32 t[LANES];
  void set(int l, Value<T> x) { t[l] = to_bits<T>(x); }
  void commit(Wave& w, const Instruction& i) {
    const u64 mask = write_mask(w, i);
    if (i.omod | i.clamp | i.sdwa | (i.o[0].flags & (OP_SEL | OP_SEL_HI)) | (is_float && w.flush))
      commit_slow(w, i, t, mask, is_float, is_16<T> ? 16 : 32);
    else
      store_lanes(w.v[i.o[0].index], t, mask);
  }
};

template <class T> struct Result<T, true> {
  alignas(64) u64 t[LANES];
  void set(int l, Value<T> x) { t[l] = bit_cast<u64>(x); }
  void commit(Wave& w, const Instruction& i) { commit_slow64(w, i, t, w.exec(), std::is_same_v<T, f64>); }
};

template <class D, class A, class F> void unary(Wave& w, const Instruction& i) {
  const Source<A> a(w, i, 1);
  Result<D> d;
  for (int l = 0; l < 64; ++l) d.set(l, F{}(a[l]));
  d.commit(w, i);
}
template <class D, class A, class B, class F> void binary(Wave& w, const Instruction& i) {
  const Source<A> a(w, i, 1);
  const Source<B> b(w, i, 2);
  Result<D> d;
  for (int l = 0; l < 64; ++l) d.set(l, F{}(a[l], b[l]));
  d.commit(w, i);
}
template <class D, class A, class B, class C, class F> void ternary(Wave& w, const Instruction& i) {
  const Source<A> a(w, i, 1);
  const Source<B> b(w, i, 2);
  const Source<C> c(w, i, 3);
  Result<D> d;
  for (int l = 0; l < 64; ++l) d.set(l, F{}(a[l], b[l], c[l]));
  d.commit(w, i);
}
// The destination is the third source: v_fmac and its like.
template <class D, class A, class B, class F> void accumulate(Wave& w, const Instruction& i) {
  const Source<A> a(w, i, 1);
  const Source<B> b(w, i, 2);
  const Source<D> c(w, i, 0);
  Result<D> d;
  for (int l = 0; l < 64; ++l) d.set(l, F{}(a[l], b[l], c[l]));
  d.commit(w, i);
}
template <class A, class B, class F> void compare(Wave& w, const Instruction& i) {
  const Source<A> a(w, i, 1);
  const Source<B> b(w, i, 2);
  alignas(64) u32 t[LANES];
  for (int l = 0; l < 64; ++l) t[l] = F{}(a[l], b[l]) ? ~0u : 0u;
  set_scalar64(w, i.o[0], pack(t) & write_mask(w, i));
}

// v_div_scale: the scaled operand, and for each lane whether it was scaled.
template <class T> void scale_division(Wave& w, const Instruction& i) {
  const Source<T> a(w, i, 2), b(w, i, 3), c(w, i, 4);
  Result<T> d;
  u64 scaled = 0;
  for (int l = 0; l < 64; ++l) {
    bool flag;
    d.set(l, div_scale(a[l], b[l], c[l], flag));
    scaled |= static_cast<u64>(flag) << l;
  }
  const u64 exec = w.exec();
  d.commit(w, i);
  set_scalar64(w, i.o[1], scaled & exec);
}

// Rows of the tables: a name, the types of result and sources, and an expression of a, b, c.
#define HKB_LAMBDA(arguments, expression) decltype([] arguments { return expression; })
#define V1(name, D, A, expression)                                                                        \
  {#name, unary<D, A, HKB_LAMBDA(([[maybe_unused]] Value<A> a), (expression))>, "=v:" #D " x:" #A}
// A minimum or maximum, H, in IEEE mode: the first source that is a signalling NaN is the result, quiet. Of halves and
// of three sources that is refused.
template <class T> inline bool is_signalling(u64 x) {
  constexpr u64 quiet = is_wide<T> ? u64{1} << 51 : is_16<T> ? 1 << 9 : 1 << 22;
  constexpr u64 all = is_wide<T> ? ~u64{0} >> 1 : is_16<T> ? 0x7fff : 0x7fffffff, top = all & ~(2 * quiet - 1);
  return (x & top) == top && x & (quiet - 1) && !(x & quiet);
}
template <Handler H, class T> void extreme(Wave& w, const Instruction& i) {
  if (!(w.mode & MODE_IEEE)) return H(w, i);
  constexpr bool wide = is_wide<T>;
  u64 where = 0, value[LANES];
  for (u32 n = i.operands - 1; n; --n) {
    const Source<T> source(w, i, n);
    const auto* x = [&] {
      if constexpr (wide) return source.t;
      else return source.p;
    }();
    u32 any = 0;
    for (u32 l = 0; l < LANES; ++l) any |= is_signalling<T>(x[l]);
    for (u32 l = 0; any && l < LANES; ++l)
      if (is_signalling<T>(x[l])) {
        where |= u64{1} << l;
        value[l] = x[l] | (wide ? u64{1} << 51 : 1 << 22);
      }
  }
  where &= write_mask(w, i);
  if (where && (is_16<T> || i.operands > 3 || i.clamp || i.omod || i.sdwa)) return w.stop(REFUSED_SIGNALLING, i);
  H(w, i);
  for (; where; where &= where - 1) {
    const u32 l = static_cast<u32>(std::countr_zero(where));
    w.v[i.o[0].index][l] = static_cast<u32>(value[l]);
    if constexpr (wide) w.v[i.o[0].index + 1][l] = static_cast<u32>(value[l] >> 32);
  }
}
#define X2(name, T, expression)                                                                            \
  {#name, extreme<binary<T, T, T, HKB_LAMBDA((Value<T> a, Value<T> b), (expression))>, T>, "=v:" #T " x:" #T " x:" #T}
#define X3(name, T, expression)                                                                            \
  {#name, extreme<ternary<T, T, T, T, HKB_LAMBDA((Value<T> a, Value<T> b, Value<T> c), (expression))>, T>, \
   "=v:" #T " x:" #T " x:" #T " x:" #T}
#define V2(name, D, A, B, expression)                                                                     \
  {#name, binary<D, A, B, HKB_LAMBDA(([[maybe_unused]] Value<A> a, [[maybe_unused]] Value<B> b), (expression))>, \
   "=v:" #D " x:" #A " x:" #B}
#define V3(name, D, A, B, C, expression)                                                                  \
  {#name, ternary<D, A, B, C, HKB_LAMBDA(([[maybe_unused]] Value<A> a, [[maybe_unused]] Value<B> b,       \
                                          [[maybe_unused]] Value<C> c), (expression))>,                   \
   "=v:" #D " x:" #A " x:" #B " x:" #C}
#define VACC(name, D, A, B, expression)                                                                   \
  {#name, accumulate<D, A, B, HKB_LAMBDA(([[maybe_unused]] Value<A> a, [[maybe_unused]] Value<B> b,       \
                                          [[maybe_unused]] Value<D> c), (expression))>,                   \
   "+v:" #D " x:" #A " x:" #B}
// The same for 16-bit results that leave the other half of the register as it was.
#define V3_KEEPS(name, D, A, B, C, expression)                                                            \
  {#name, ternary<D, A, B, C, HKB_LAMBDA(([[maybe_unused]] Value<A> a, [[maybe_unused]] Value<B> b,       \
                                          [[maybe_unused]] Value<C> c), (expression))>,                   \
   "~v:" #D " x:" #A " x:" #B " x:" #C}
#define VC(name, A, B, expression)                                                                        \
  {#name, compare<A, B, HKB_LAMBDA(([[maybe_unused]] Value<A> a, [[maybe_unused]] Value<B> b), (expression))>, \
   "=m:b64 x:" #A " x:" #B}
#define HKB_ROWS(name, table) \
  Rows name() { return {table, sizeof table / sizeof *table}; }

}  // namespace hkb
