// VALU: what moves values between lanes, and between vector and scalar registers.
#include "lanes.h"

namespace hkb {
namespace {

void readfirstlane(Wave& w, const Instruction& i) {
  const u64 exec = w.exec();
  const u32 lane = exec ? static_cast<u32>(std::countr_zero(exec)) : 0;
  set_scalar32(w, i.o[0], i.o[1].kind == VGPR ? w.v[i.o[1].index][lane] : scalar32(w, i.o[1]));
}
void readlane(Wave& w, const Instruction& i) {
  const u32 lane = scalar32(w, i.o[2]) & 63;
  set_scalar32(w, i.o[0], i.o[1].kind == VGPR ? w.v[i.o[1].index][lane] : scalar32(w, i.o[1]));
}
void writelane(Wave& w, const Instruction& i) {
  w.v[i.o[0].index][scalar32(w, i.o[2]) & 63] = scalar32(w, i.o[1]);
}

template <bool HIGH> void mbcnt(Wave& w, const Instruction& i) {
  const Source<u32> a(w, i, 1), b(w, i, 2);
  Result<u32> d;
  for (u32 l = 0; l < LANES; ++l) {
    const u64 below = (u64{1} << l) - 1;
    const u32 part = static_cast<u32>(HIGH ? below >> 32 : below);
    d.t[l] = b.p[l] + static_cast<u32>(std::popcount(a.p[l] & part));
  }
  d.commit(w, i);
}

// Rows of WIDTH lanes: the odd ones of the first register for the even ones of the second.
template <u32 WIDTH> void permlane_swap(Wave& w, const Instruction& i) {
  if (w.exec() != ~u64{0}) return w.stop(REFUSED_OPERAND, i);
  u32 *d = w.v[i.o[0].index], *s = w.v[i.o[1].index];
  for (u32 base = 0; base < LANES; base += 2 * WIDTH)
    for (u32 l = base; l < base + WIDTH; ++l) std::swap(s[l], d[l + WIDTH]);
}

void swap(Wave& w, const Instruction& i) {
  alignas(64) u32 t[LANES];
  u32 *d = w.v[i.o[0].index], *s = w.v[i.o[1].index];
  std::memcpy(t, d, sizeof t);
  store_lanes(d, s, w.exec());
  store_lanes(s, t, w.exec());
}

void nothing(Wave&, const Instruction&) {}

u32 prng(u32 x) { return (x << 1) ^ (x >> 31 ? 197u : 0u); }

const Row table[] = {
    {"v_readfirstlane_b32", readfirstlane, "=s:b32 x:b32"},
    {"v_readlane_b32", readlane, "=s:b32 x:b32 c:b32"},
    {"v_writelane_b32", writelane, "~v:b32 c:b32 c:b32"},
    {"v_mbcnt_lo_u32_b32", mbcnt<false>, "=v:u32 x:u32 x:u32"},
    {"v_mbcnt_hi_u32_b32", mbcnt<true>, "=v:u32 x:u32 x:u32"},
    {"v_permlane32_swap_b32", permlane_swap<32>, "+v:b32 +v:b32"},
    {"v_permlane16_swap_b32", permlane_swap<16>, "+v:b32 +v:b32"},
    {"v_swap_b32", swap, "+v:b32 +v:b32"},
    {"v_nop", nothing, ""},
    V1(v_accvgpr_read_b32, b32, b32, a),
    V1(v_accvgpr_write_b32, b32, b32, a),
    V1(v_accvgpr_mov_b32, b32, b32, a),
    V1(v_prng_b32, b32, b32, prng(a)),
};

}  // namespace
HKB_ROWS(across_rows, table)
}  // namespace hkb
