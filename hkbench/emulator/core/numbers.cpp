#include "numbers.h"

#include <array>

namespace hkb {

f32 small_to_f32(u32 x, const Small& form) {
  const u32 fraction = x & ((1u << form.mantissa) - 1), exponent = x >> form.mantissa & ((1u << form.exponent) - 1);
  const bool negative = x >> (form.mantissa + form.exponent) & 1;
  const u32 top = (1u << form.exponent) - 1;
  const bool wide = form.mantissa + form.exponent == 7;  // the 6- and 4-bit forms have no NaN
  if (form.fnuz && negative && !exponent && !fraction) return as_f32(0x7fc00000);
  if (wide && !form.fnuz && exponent == top) {
    if (form.has_infinity && !fraction) return negative ? -INFINITY : INFINITY;
    if (form.has_infinity || fraction == (1u << form.mantissa) - 1) return as_f32(0x7fc00000);
  }
  const f32 value = exponent ? std::ldexp(static_cast<f32>((1u << form.mantissa) + fraction),
                                          static_cast<int>(exponent) - form.bias - form.mantissa)
                             : std::ldexp(static_cast<f32>(fraction), 1 - form.bias - form.mantissa);
  return negative ? -value : value;
}

u32 f32_to_small(f32 x, const Small& form, bool saturate, u32 stochastic, bool is_stochastic) {
  const u32 negative = bits(x) >> 31 << (form.mantissa + form.exponent);
  const u32 top = (1u << form.exponent) - 1, all = (1u << (form.mantissa + form.exponent)) - 1;
  const bool wide = form.mantissa + form.exponent == 7;
  const u32 nan = form.fnuz ? 0x80u : negative | all;
  const u32 infinity = top << form.mantissa;
  u32 largest = all;
  if (wide && !form.fnuz) largest = form.has_infinity ? infinity - 1 : all - 1;
  const f32 magnitude = std::fabs(x);
  if (x != x) return wide ? nan : negative | largest;
  const u32 over = saturate || !wide ? negative | largest : form.has_infinity ? negative | infinity : nan;
  if (std::isinf(x)) return over;
  // As an integer multiple of the format's step at this magnitude.
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent = exponent - 1 < 1 - form.bias ? 1 - form.bias : exponent - 1;
  if (is_stochastic) {  // 32 random bits below the last one kept
    const f64 steps = std::ldexp(static_cast<f64>(magnitude), form.mantissa - exponent);
    const f64 rounded = std::floor(steps + static_cast<f64>(stochastic) * 0x1p-32);
    const f64 value = std::ldexp(rounded, exponent - form.mantissa);
    return f32_to_small(static_cast<f32>(x < 0 ? -value : value), form, saturate, 0, false);
  }
  const f64 steps = std::nearbyint(std::ldexp(static_cast<f64>(magnitude), form.mantissa - exponent));
  if (steps == 0) return form.fnuz ? 0 : negative;
  // Steps of 2^mantissa and more carry an implied one; a carry moves into the exponent by itself.
  const i64 code = static_cast<i64>(steps) + (static_cast<i64>(exponent + form.bias - 1) << form.mantissa);
  return code > static_cast<i64>(largest) ? over : negative | static_cast<u32>(code);
}

const f32* small_table(const Small& form) {
  static const auto make = [](const Small& of) {
    std::array<f32, 256> values{};
    for (u32 x = 0; x < 256; ++x) values[x] = small_to_f32(x, of);
    return values;
  };
  static const std::array<f32, 256> ocp4 = make(E4M3_OCP), ocp5 = make(E5M2_OCP);
  static const std::array<f32, 256> fnuz4 = make(E4M3_FNUZ), fnuz5 = make(E5M2_FNUZ);
  if (form.fnuz) return (form.mantissa == 3 ? fnuz4 : fnuz5).data();
  return (form.mantissa == 3 ? ocp4 : ocp5).data();
}

template <class T> T div_scale(T s0, T s1, T s2, bool& flag) {
  using Form = FloatForm<T>;
  constexpr int n = Form::scaled, far = Form::mantissa == 23 ? 96 : 768, tiny = Form::mantissa == 23 ? 23 : 53;
  flag = false;
  if (s2 == 0 || s1 == 0) return std::numeric_limits<T>::quiet_NaN();
  // The manual's text scales the denominator up where both are small, and so beyond the largest number; and it says
  // nothing of a quotient that is rounded to zero. Quotients are rounded correctly with what stands here.
  const bool small_quotient = exponent_of(s2 / s1) == 0, small_reciprocal = is_denormal(T{1} / s1);
  if (exponent_of(s2) - exponent_of(s1) >= far) {
    flag = true;
    return s0 == s1 ? std::ldexp(s0, n) : s0;
  }
  if (is_denormal(s1)) return std::ldexp(s0, n);
  if (small_reciprocal && small_quotient) {
    flag = true;
    return s0 == s1 ? std::ldexp(s0, -n) : s0;
  }
  if (small_reciprocal) return std::ldexp(s0, -n);
  if (small_quotient) {
    flag = true;
    return s0 == s2 ? std::ldexp(s0, n) : s0;
  }
  return exponent_of(s2) <= tiny ? std::ldexp(s0, n) : s0;
}

template <class T> T div_fixup(T s0, T s1, T s2) {
  using Form = FloatForm<T>;
  const bool negative = std::signbit(s1) != std::signbit(s2);
  const auto signed_ = [&](T x) { return negative ? -std::fabs(x) : std::fabs(x); };
  const typename Form::Bits quiet_bit = typename Form::Bits{1} << (Form::mantissa - 1);
  const T nan = bit_cast<T>(static_cast<typename Form::Bits>(~typename Form::Bits{0} << (Form::mantissa - 1)));
  if (s2 != s2) return bit_cast<T>(bits(s2) | quiet_bit);
  if (s1 != s1) return bit_cast<T>(bits(s1) | quiet_bit);
  if ((s1 == 0 && s2 == 0) || (std::isinf(s1) && std::isinf(s2))) return nan;
  if (s1 == 0 || std::isinf(s2)) return signed_(std::numeric_limits<T>::infinity());
  if (std::isinf(s1) || s2 == 0) return signed_(0);
  const int under = Form::mantissa == 23 ? -150 : -1075;
  if (exponent_of(s2) - exponent_of(s1) < under) return signed_(0);
  // The text asks for the denominator's exponent, which cannot be so here; an overflow shows in the quotient.
  if (exponent_of(s0) == Form::top) return signed_(std::numeric_limits<T>::infinity());
  return signed_(s0);
}

// The fraction of 2/pi, 1201 bits, least significant word first.
static constexpr u64 TWO_OVER_PI[20] = {
    0xba10ac06608df8f6, 0x25d4d7f6bf623f1a, 0xe2f67a0e73ef14a5, 0xd45aea4f758fd7cb,
    0x136e9e8c7ecd3cbf, 0xda3eda6cfd9e4f96, 0x301fde5e2316b414, 0x50763ff12fffbc0b,
    0x73e93908bf177bf2, 0xfc827323ac7306a6, 0x8909d338e04d68be, 0x4e7dd1046bea5d76,
    0x2439fc3bd6396253, 0xa5c00c925dd413a3, 0x8ac36e48dc74849b, 0x2083fca2c757bd77,
    0xbb81b6c52b327887, 0x2a53f84eafa3ea69, 0x000145f306dc9c88, 0};

f64 trig_preop(f64 x, u32 segment) {
  i32 shift = static_cast<i32>(segment & 31) * 53;
  const int exponent = exponent_of(x);
  if (exponent > 1077) shift += exponent - 1077;
  // The 53 bits that `shift` moves to the top of the 1201.
  const i32 low = 1201 - 53 - shift;
  u64 field = 0;
  for (i32 k = 0; k < 53; ++k) {
    const i32 at = low + k;
    if (at >= 0) field |= (TWO_OVER_PI[at >> 6] >> (at & 63) & 1) << k;
  }
  return std::ldexp(static_cast<f64>(field), -53 - shift + (exponent >= 1968 ? 128 : 0));
}

f32 div_fixup_half(f32 s0, f32 s1, f32 s2) {
  const bool negative = std::signbit(s1) != std::signbit(s2);
  const auto signed_ = [&](f32 x) { return negative ? -std::fabs(x) : std::fabs(x); };
  if (s2 != s2) return quiet(s2);
  if (s1 != s1) return quiet(s1);
  if ((s1 == 0 && s2 == 0) || (std::isinf(s1) && std::isinf(s2))) return as_f32(0xffc00000);
  if (s1 == 0 || std::isinf(s2)) return signed_(INFINITY);
  if (std::isinf(s1) || s2 == 0) return signed_(0);
  return signed_(s0);
}

template f32 div_scale(f32, f32, f32, bool&);
template f64 div_scale(f64, f64, f64, bool&);
template f32 div_fixup(f32, f32, f32);
template f64 div_fixup(f64, f64, f64);

}  // namespace hkb
