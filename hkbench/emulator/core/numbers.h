// Number formats: half, bfloat16 and the 8-bit floats, and the arithmetic that C++ has not.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "abi.h"

namespace hkb {

using f32 = float;
using f64 = double;
using std::bit_cast;

inline f32 as_f32(u32 x) { return bit_cast<f32>(x); }
inline u32 bits(f32 x) { return bit_cast<u32>(x); }
inline f64 as_f64(u64 x) { return bit_cast<f64>(x); }
inline u64 bits(f64 x) { return bit_cast<u64>(x); }

inline f32 half_to_f32(u16 x) { return static_cast<f32>(bit_cast<_Float16>(x)); }
inline u16 f32_to_half(f32 x) { return bit_cast<u16>(static_cast<_Float16>(x)); }
inline u16 f64_to_half(f64 x) { return bit_cast<u16>(static_cast<_Float16>(x)); }
inline f32 bf16_to_f32(u16 x) { return as_f32(static_cast<u32>(x) << 16); }
inline u16 f32_to_bf16(f32 x) {
  const u32 b = bits(x);
  const u32 nan = b >> 16 | 0x40;
  const u32 near = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  return static_cast<u16>((b & 0x7fffffff) > 0x7f800000 ? nan : near);
}
inline u16 f32_to_half_toward_zero(f32 x) {
  const u16 near = f32_to_half(x);
  if ((near & 0x7fff) > 0x7c00 || std::isinf(x)) return near;
  if ((near & 0x7fff) == 0x7c00 || std::fabs(half_to_f32(near)) > std::fabs(x)) return near - 1;
  return near;
}

// a*b+c of halves, rounded once: the sum is rounded to odd in double first.
inline u16 half_fma(f64 a, f64 b, f64 c) {
  const f64 product = a * b;  // exact
  const f64 sum = product + c;
  const f64 virtual_c = sum - product;
  const f64 error = (product - (sum - virtual_c)) + (c - virtual_c);
  if (error != 0 && std::isfinite(sum) && !(bits(sum) & 1))
    return f64_to_half(as_f64(bits(sum) + ((error > 0) == (sum > 0) ? 1 : -1)));
  return f64_to_half(sum);
}

// The 8-bit floats. `bias`, and what stands for NaN and infinity, differ between OCP and FNUZ.
struct Small {
  int exponent, mantissa, bias;
  bool fnuz, has_infinity;
};
inline constexpr Small E4M3_OCP{4, 3, 7, false, false}, E5M2_OCP{5, 2, 15, false, true};
inline constexpr Small E4M3_FNUZ{4, 3, 8, true, false}, E5M2_FNUZ{5, 2, 16, true, false};
inline constexpr Small E2M3{2, 3, 1, false, false}, E3M2{3, 2, 3, false, false}, E2M1{2, 1, 1, false, false};

f32 small_to_f32(u32 x, const Small& form);
u32 f32_to_small(f32 x, const Small& form, bool saturate, u32 stochastic, bool is_stochastic);
const f32* small_table(const Small& form);  // the values of all 256

inline f32 quiet(f32 x) { return as_f32(bits(x) | 0x400000); }

// minNum and maxNum: a NaN loses, -0 is less than +0.
inline f32 max_num(f32 a, f32 b) {
  const bool a_wins = a > b || (a == b && !(bits(a) >> 31)) || b != b;
  return a != a ? b : a_wins ? a : b;
}
inline f32 min_num(f32 a, f32 b) {
  const bool a_wins = a < b || (a == b && bits(a) >> 31) || b != b;
  return a != a ? b : a_wins ? a : b;
}
inline f64 max_num(f64 a, f64 b) {
  const bool a_wins = a > b || (a == b && !(bits(a) >> 63)) || b != b;
  return a != a ? b : a_wins ? a : b;
}
inline f64 min_num(f64 a, f64 b) {
  const bool a_wins = a < b || (a == b && bits(a) >> 63) || b != b;
  return a != a ? b : a_wins ? a : b;
}
template <class T> inline T med3(T a, T b, T c) {
  if (a != a || b != b || c != c) return min_num(min_num(a, b), c);
  return max_num(min_num(a, b), min_num(max_num(a, b), c));
}
template <class T> inline T minimum(T a, T b) { return a != a ? a : b != b ? b : min_num(a, b); }
template <class T> inline T maximum(T a, T b) { return a != a ? a : b != b ? b : max_num(a, b); }
template <class T> inline T middle(T a, T b, T c) {
  const T low = a < b ? a : b, high = a < b ? b : a, capped = high < c ? high : c;
  return low > capped ? low : capped;
}

// 2^n as a double, for |n| < 1000.
inline f64 power2(i32 n) { return as_f64(static_cast<u64>(1023 + n) << 52); }
inline i32 clamp(i32 x, i32 low, i32 high) { return x < low ? low : x > high ? high : x; }
inline f32 scale(f32 x, i32 n) { return static_cast<f32>(static_cast<f64>(x) * power2(clamp(n, -400, 400))); }

// 2^x and log2(x) in double, good to an ulp of double or so, without branches so that loops become vectors.
inline f64 exp2_of(f64 x) {
  const f64 bounded = x < -400 ? -400 : x > 400 ? 400 : x;
  const f64 whole = std::rint(bounded), y = (bounded - whole) * 0.693147180559945309417232;
  f64 sum = 1.0 / 6227020800.0;
  sum = sum * y + 1.0 / 479001600.0;
  sum = sum * y + 1.0 / 39916800.0;
  sum = sum * y + 1.0 / 3628800.0;
  sum = sum * y + 1.0 / 362880.0;
  sum = sum * y + 1.0 / 40320.0;
  sum = sum * y + 1.0 / 5040.0;
  sum = sum * y + 1.0 / 720.0;
  sum = sum * y + 1.0 / 120.0;
  sum = sum * y + 1.0 / 24.0;
  sum = sum * y + 1.0 / 6.0;
  sum = sum * y + 0.5;
  sum = sum * y + 1.0;
  sum = sum * y + 1.0;
  return x != x ? x : sum * power2(static_cast<i32>(whole));
}
inline f64 log2_of(f64 x) {  // of what a float can hold
  const u64 b = bits(x);
  i64 exponent = static_cast<i64>(b >> 52) - 1023;
  f64 m = as_f64((b & 0xfffffffffffff) | 0x3ff0000000000000);
  const bool upper = m > 1.4142135623730951;
  m = upper ? m * 0.5 : m;
  exponent += upper;
  const f64 s = (m - 1.0) / (m + 1.0), q = s * s;
  f64 sum = 1.0 / 25;
  sum = sum * q + 1.0 / 23;
  sum = sum * q + 1.0 / 21;
  sum = sum * q + 1.0 / 19;
  sum = sum * q + 1.0 / 17;
  sum = sum * q + 1.0 / 15;
  sum = sum * q + 1.0 / 13;
  sum = sum * q + 1.0 / 11;
  sum = sum * q + 1.0 / 9;
  sum = sum * q + 1.0 / 7;
  sum = sum * q + 1.0 / 5;
  sum = sum * q + 1.0 / 3;
  sum = sum * q + 1.0;
  const f64 value = static_cast<f64>(static_cast<i32>(exponent)) + 2.0 * s * sum * 1.442695040888963407359925;
  const f64 special = x == 0 ? -std::numeric_limits<f64>::infinity() : x < 0 ? std::numeric_limits<f64>::quiet_NaN() : x;
  return x > 0 && x < std::numeric_limits<f64>::infinity() ? value : special;
}

// Float to integer: toward zero, saturated, NaN is 0.
inline i32 to_i32(f64 x) {
  return x != x ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : static_cast<i32>(x);
}
inline u32 to_u32(f64 x) { return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : static_cast<u32>(static_cast<i64>(x)); }
inline i32 to_i16(f64 x) { return x != x ? 0 : x <= -32768 ? -32768 : x >= 32767 ? 32767 : static_cast<i32>(x); }
inline u32 to_u16(f64 x) { return !(x > 0) ? 0 : x >= 65535 ? 65535 : static_cast<u32>(x); }

template <class T> struct FloatForm;
template <> struct FloatForm<f32> {
  using Bits = u32;
  static constexpr int mantissa = 23, top = 255, bias = 127, scaled = 64;
};
template <> struct FloatForm<f64> {
  using Bits = u64;
  static constexpr int mantissa = 52, top = 2047, bias = 1023, scaled = 128;
};
template <class T> inline int exponent_of(T x) { return bits(x) >> FloatForm<T>::mantissa & FloatForm<T>::top; }
template <class T> inline bool is_denormal(T x) { return exponent_of(x) == 0 && x != 0; }

template <class T> T div_scale(T s0, T s1, T s2, bool& flag);
template <class T> T div_fixup(T s0, T s1, T s2);
f32 div_fixup_half(f32 s0, f32 s1, f32 s2);  // of halves, widened
// Which way s0*s1+s2 lies from `near`, what it was rounded to: its sign is that of the rest.
template <class T> T fma_rest(T s0, T s1, T s2, T near) {
  const T product = s0 * s1, low = std::fma(s0, s1, -product);
  const T sum = product + s2, back = sum - product;
  return ((sum - near) + ((product - (sum - back)) + (s2 - back))) + low;
}
// s0*s1+s2 times a power of two, rounded once: a tie of the second rounding goes to where the rest lies.
template <class T> T div_fmas(T s0, T s1, T s2, bool flag) {
  const T near = std::fma(s0, s1, s2);
  if (!flag) return near;
  constexpr int n = FloatForm<T>::scaled;
  if (exponent_of(s2) > FloatForm<T>::bias) return std::ldexp(near, n);
  constexpr T step = std::numeric_limits<T>::denorm_min();
  const T scaled = std::ldexp(near, -n), over = near - std::ldexp(scaled, n), rest = fma_rest(s0, s1, s2, near);
  if (std::fabs(over) != std::ldexp(step, n - 1) || rest == 0) return scaled;
  const T low = over > 0 ? scaled : scaled - step;
  return rest > 0 ? low + step : low;
}
// The ten classes of v_cmp_class, of a float's bits.
inline bool in_class(u64 b, int mantissa, int exponent_bits, u32 wanted) {
  const u64 fraction = b & ((u64{1} << mantissa) - 1), exponent = b >> mantissa & ((u64{1} << exponent_bits) - 1);
  const bool negative = b >> (mantissa + exponent_bits) & 1;
  const u64 top = (u64{1} << exponent_bits) - 1;
  int found;
  if (exponent == top && fraction) found = fraction >> (mantissa - 1) ? 1 : 0;
  else if (exponent == top) found = negative ? 2 : 9;
  else if (exponent) found = negative ? 3 : 8;
  else if (fraction) found = negative ? 4 : 7;
  else found = negative ? 5 : 6;
  return wanted >> found & 1;
}
f64 trig_preop(f64 x, u32 segment);

template <class T> i32 frexp_exponent(T x) {
  int e = 0;
  if (x == 0 || !std::isfinite(x)) return 0;
  std::frexp(x, &e);
  return e;
}
template <class T> T frexp_mantissa(T x) {
  int e = 0;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}

}  // namespace hkb
