#include "lanes.h"

namespace hkb {

u32 scalar32(const Wave& w, const Operand& o) {
  switch (o.kind) {
    case SGPR: return w.s[o.index];
    case SPECIAL:
      if (o.index == SOURCE_SCC) return w.scc;
      return o.index == SOURCE_VCCZ ? w.pair(VCC) == 0 : w.exec() == 0;
    case VGPR: return w.v[o.index][0];
    default: return static_cast<u32>(o.value);
  }
}

u64 scalar64(const Wave& w, const Operand& o) {
  switch (o.kind) {
    case SGPR: return w.pair(o.index);
    case SPECIAL: return scalar32(w, o);
    default: return o.value;
  }
}

void set_scalar32(Wave& w, const Operand& o, u32 value) { w.s[o.index] = value; }
void set_scalar64(Wave& w, const Operand& o, u64 value) { w.set_pair(o.index, value); }

namespace {

// The lane that lane `l` reads from, or -1.
int dpp_source(u32 control, int l) {
  const int row = l & ~15, in_row = l & 15;
  if (control < 0x100) return (l & ~3) | (control >> 2 * (l & 3) & 3);
  if (control > ROW_SHL && control < ROW_SHL + 16) {
    const int from = in_row + static_cast<int>(control & 15);
    return from < 16 ? row + from : -1;
  }
  if (control > ROW_SHR && control < ROW_SHR + 16) {
    const int from = in_row - static_cast<int>(control & 15);
    return from >= 0 ? row + from : -1;
  }
  if (control > ROW_ROR && control < ROW_ROR + 16) return row + ((in_row - static_cast<int>(control & 15)) & 15);
  if (control >= ROW_NEWBCAST && control < ROW_NEWBCAST + 16) return row + static_cast<int>(control & 15);
  switch (control) {
    case WAVE_SHL: return l < 63 ? l + 1 : -1;
    case WAVE_ROL: return (l + 1) & 63;
    case WAVE_SHR: return l - 1;
    case WAVE_ROR: return (l - 1) & 63;
    case ROW_MIRROR: return row + 15 - in_row;
    case ROW_HALF_MIRROR: return (l & ~7) + 7 - (l & 7);
    case ROW_BCAST15: return l < 16 ? -1 : row - 1;
    case ROW_BCAST31: return l < 32 ? -1 : 31;
  }
  return -1;
}

u32 selected(u32 x, u32 select, bool sext) {
  switch (select) {
    case BYTE_0: case BYTE_1: case BYTE_2: case BYTE_3: {
      const u32 byte = x >> 8 * (select - BYTE_0) & 0xff;
      return sext ? static_cast<u32>(static_cast<i8>(byte)) : byte;
    }
    case WORD_0: case WORD_1: {
      const u32 word = x >> 16 * (select - WORD_0) & 0xffff;
      return sext ? static_cast<u32>(static_cast<i16>(word)) : word;
    }
    default: return x;
  }
}

u32 flushed(u32 x) { return x & 0x7f800000 ? x : x & 0x80000000; }

}  // namespace

u64 dpp_mask(const Wave& w, const Instruction& i) {
  u64 mask = 0;
  const u64 exec = w.exec();
  for (int l = 0; l < 64; ++l) {
    const int from = dpp_source(i.dpp_ctrl, l);
    const bool reads = i.bound_ctrl || (from >= 0 && lane_on(exec, static_cast<u32>(from)));
    const bool kept = i.row_mask >> (l >> 4) & i.bank_mask >> (l >> 2 & 3) & 1;
    mask |= static_cast<u64>(reads && kept) << l;
  }
  return mask;
}

void fetch_slow(const Wave& w, const Instruction& i, u32 n, u32* t, bool is_float, u32 bits_, bool flushes) {
  const Operand& o = i.o[n];
  if (o.kind == VGPR) {
    std::memcpy(t, w.v[o.index], 4 * LANES);
  } else {
    const u32 x = scalar32(w, o);
    for (u32 l = 0; l < LANES; ++l) t[l] = x;
  }
  if (i.dpp && n == 1) {
    u32 from_lanes[LANES];
    std::memcpy(from_lanes, t, sizeof from_lanes);
    const u64 exec = w.exec();
    for (int l = 0; l < 64; ++l) {
      const int from = dpp_source(i.dpp_ctrl, l);
      t[l] = from >= 0 && lane_on(exec, static_cast<u32>(from)) ? from_lanes[from] : 0;
    }
  }
  const u32 select = o.flags >> SELECT_SHIFT;
  if (i.sdwa && n > 0 && (select || o.flags & SEXT))
    for (u32 l = 0; l < LANES; ++l) t[l] = selected(t[l], select, o.flags & SEXT);
  if (bits_ == 16 && o.flags & OP_SEL && n > 0)
    for (u32 l = 0; l < LANES; ++l) t[l] >>= 16;
  if (!is_float) return;
  const u32 sign = bits_ == 16 ? 0x8000 : 0x80000000;
  if (w.flush && flushes)
    for (u32 l = 0; l < LANES; ++l) t[l] = flushed(t[l]);
  if (o.flags & ABS)
    for (u32 l = 0; l < LANES; ++l) t[l] &= ~sign;
  if (o.flags & NEG)
    for (u32 l = 0; l < LANES; ++l) t[l] ^= sign;
}

void commit_slow(Wave& w, const Instruction& i, u32* t, u64 mask, bool is_float, u32 bits_) {
  static constexpr f32 factors[] = {1, 2, 4, 0.5};
  if (is_float && (i.omod || i.clamp)) {
    for (u32 l = 0; l < LANES; ++l) {
      f32 x = bits_ == 16 ? half_to_f32(static_cast<u16>(t[l])) : as_f32(t[l]);
      if (i.omod) x *= factors[i.omod & 3];
      if (i.clamp) x = clamped(w, x);
      t[l] = bits_ == 16 ? f32_to_half(x) : bits(x);
    }
  }
  if (is_float && bits_ == 32 && w.flush)
    for (u32 l = 0; l < LANES; ++l) t[l] = flushed(t[l]);
  u32* to = w.v[i.o[0].index];
  if (i.sdwa && i.dst_sel != DWORD) {
    const bool byte = i.dst_sel <= BYTE_3;
    const u32 shift = byte ? 8 * (i.dst_sel - BYTE_0) : 16 * (i.dst_sel - WORD_0), field = byte ? 0xff : 0xffff;
    for (u32 l = 0; l < LANES; ++l) {
      const u32 value = (t[l] & field) << shift;
      const bool negative = i.dst_unused == 1 && t[l] >> (byte ? 7 : 15) & 1;
      const u32 above = negative ? ~((field << shift) | ((1u << shift) - 1)) : 0;
      t[l] = value | (i.dst_unused == 2 ? to[l] & ~(field << shift) : above);
    }
  }
  if (bits_ == 16 && i.o[0].flags & OP_SEL)
    for (u32 l = 0; l < LANES; ++l) t[l] = (to[l] & 0xffff) | t[l] << 16;
  else if (bits_ == 16 && i.o[0].flags & OP_SEL_HI)  // the low half by op_sel: the high one stays
    for (u32 l = 0; l < LANES; ++l) t[l] = (to[l] & 0xffff0000) | (t[l] & 0xffff);
  store_lanes(to, t, mask);
}

void commit_slow64(Wave& w, const Instruction& i, u64* t, u64 mask, bool is_float) {
  static constexpr f64 factors[] = {1, 2, 4, 0.5};
  if (is_float && (i.omod || i.clamp)) {
    for (u32 l = 0; l < LANES; ++l) {
      f64 x = as_f64(t[l]);
      if (i.omod) x *= factors[i.omod & 3];
      if (i.clamp) x = clamped(w, x);
      t[l] = bits(x);
    }
  }
  alignas(64) u32 half[LANES];
  for (u32 k = 0; k < 2; ++k) {
    for (u32 l = 0; l < LANES; ++l) half[l] = static_cast<u32>(t[l] >> 32 * k);
    store_lanes(w.v[i.o[0].index + k], half, mask);
  }
}

}  // namespace hkb
