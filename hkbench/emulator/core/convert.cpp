// VALU: conversions between number formats.
#include "lanes.h"

namespace hkb {
namespace {

u32 byte_of(u32 x, u32 n) { return x >> 8 * n & 0xff; }
u32 both(u16 low, u16 high) { return low | static_cast<u32>(high) << 16; }
u32 snorm(f32 x) { return static_cast<u16>(to_i16(std::rint(static_cast<f64>(x != x ? 0 : x < -1 ? -1 : x > 1 ? 1 : x) * 32767))); }
u32 unorm(f32 x) { return to_u16(std::rint(static_cast<f64>(x != x ? 0 : x < 0 ? 0 : x > 1 ? 1 : x) * 65535)); }
u32 saturated16(i32 x) { return static_cast<u16>(x < -32768 ? -32768 : x > 32767 ? 32767 : x); }
u32 saturated16(u32 x) { return x > 65535 ? 65535 : x; }
u32 u8_of(f32 x) { return x != x || x < 0 ? 0 : x > 255 ? 255 : static_cast<u32>(x); }
u32 pk_u8(f32 a, u32 b, u32 c) {
  const u32 at = 8 * (b & 3);
  return (c & ~(0xffu << at)) | u8_of(a) << at;
}
i32 int4(u32 x) { return static_cast<i32>(x << 28) >> 28; }
u32 saturated_u8(i32 x) { return x < 0 ? 0u : x > 255 ? 255u : static_cast<u32>(x); }

const Row table[] = {
    V1(v_cvt_f32_i32, f32, i32, static_cast<f32>(a)),
    V1(v_cvt_f32_u32, f32, u32, static_cast<f32>(a)),
    V1(v_cvt_i32_f32, i32, f32, to_i32(a)),
    V1(v_cvt_u32_f32, u32, f32, to_u32(a)),
    V1(v_cvt_rpi_i32_f32, i32, f32, to_i32(std::floor(a + 0.5f))),
    V1(v_cvt_flr_i32_f32, i32, f32, to_i32(std::floor(a))),
    V1(v_cvt_f16_f32, f16, f32, a),
    V1(v_cvt_f32_f16, f32, f16, a),
    V1(v_cvt_f32_bf16, f32, bf16, a),
    V1(v_cvt_f64_f32, f64, f32, static_cast<f64>(a)),
    V1(v_cvt_f32_f64, f32, f64, static_cast<f32>(a)),
    V1(v_cvt_f64_i32, f64, i32, static_cast<f64>(a)),
    V1(v_cvt_f64_u32, f64, u32, static_cast<f64>(a)),
    V1(v_cvt_i32_f64, i32, f64, to_i32(a)),
    V1(v_cvt_u32_f64, u32, f64, to_u32(a)),
    V1(v_cvt_f32_ubyte0, f32, u32, static_cast<f32>(byte_of(a, 0))),
    V1(v_cvt_f32_ubyte1, f32, u32, static_cast<f32>(byte_of(a, 1))),
    V1(v_cvt_f32_ubyte2, f32, u32, static_cast<f32>(byte_of(a, 2))),
    V1(v_cvt_f32_ubyte3, f32, u32, static_cast<f32>(byte_of(a, 3))),
    V1(v_cvt_off_f32_i4, f32, u32, static_cast<f32>(int4(a)) / 16.0f),
    V1(v_cvt_f16_u16, f16, h16, static_cast<f32>(a)),
    V1(v_cvt_f16_i16, f16, s16, static_cast<f32>(a)),
    V1(v_cvt_u16_f16, h16, f16, to_u16(a)),
    V1(v_cvt_i16_f16, s16, f16, to_i16(a)),
    V1(v_sat_pk_u8_i16, b32, u32, saturated_u8(static_cast<i16>(a)) | saturated_u8(static_cast<i16>(a >> 16)) << 8),
    V2(v_cvt_pk_bf16_f32, b32, f32, f32, both(f32_to_bf16(a), f32_to_bf16(b))),
    V2(v_cvt_pk_f16_f32, b32, f32, f32, both(f32_to_half(a), f32_to_half(b))),
    V2(v_cvt_pkrtz_f16_f32, b32, f32, f32, both(f32_to_half_toward_zero(a), f32_to_half_toward_zero(b))),
    V2(v_cvt_pknorm_i16_f32, b32, f32, f32, snorm(a) | snorm(b) << 16),
    V2(v_cvt_pknorm_u16_f32, b32, f32, f32, unorm(a) | unorm(b) << 16),
    V2(v_cvt_pk_i16_i32, b32, i32, i32, saturated16(a) | saturated16(b) << 16),
    V2(v_cvt_pk_u16_u32, b32, u32, u32, saturated16(a) | saturated16(b) << 16),
    V3(v_cvt_pk_u8_f32, b32, f32, u32, u32, pk_u8(a, b, c)),
};

}  // namespace
HKB_ROWS(convert_rows, table)
}  // namespace hkb
