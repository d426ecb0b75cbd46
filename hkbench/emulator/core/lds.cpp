// LDS instructions. Slots: o[0] destination, o[1] address, o[2] and o[3] data.
#include "atomics.h"
#include "places.h"

namespace hkb {
namespace {

void offsets(const Wave& w, const Instruction& i, u32 offset, u32* at) {
  const u32* address = w.v[i.o[1].index];
  for (u32 l = 0; l < LANES; ++l) at[l] = address[l] + offset;
}

u64 begin_read(Wave& w, const Instruction& i, const u32* at, u32 size, u32 row = 0) {
  const u64 mask = inside_lds(w, i, at, w.exec(), size);
  if (w.tracker) w.tracker->settle(w, at, mask, size);
  if (w.group->shadow) w.group->shadow->read(w, i, at, mask, size, row);
  return mask;
}

template <class T, bool HIGH, bool KEEP> void read_part(Wave& w, const Instruction& i) {
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  const u64 mask = begin_read(w, i, at, sizeof(T));
  u32* row = w.v[i.o[0].index];
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    T x;
    std::memcpy(&x, &w.group->lds[at[l]], sizeof x);
    const u32 wide = static_cast<u32>(static_cast<i32>(x));
    row[l] = !KEEP ? wide : HIGH ? (row[l] & 0xffff) | wide << 16 : (row[l] & 0xffff0000) | (wide & 0xffff);
  }
}

template <u32 N> void read_at(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 row) {
  u32(*rows)[LANES] = &w.v[i.o[0].index + row];
  const u8* lds = w.group->lds.data();
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    u32 x[N];
    std::memcpy(x, lds + at[l], sizeof x);
    for (u32 k = 0; k < N; ++k) rows[k][l] = x[k];
  }
}
template <u32 N> void read(Wave& w, const Instruction& i) {
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  read_at<N>(w, i, at, begin_read(w, i, at, 4 * N), 0);
}
template <u32 N, u32 STEP> void read2(Wave& w, const Instruction& i) {
  u32 at[2][LANES];
  offsets(w, i, static_cast<u32>(i.offset) * 4 * N * STEP, at[0]);
  offsets(w, i, static_cast<u32>(i.offset1) * 4 * N * STEP, at[1]);
  for (u32 k = 0; k < 2; ++k) read_at<N>(w, i, at[k], begin_read(w, i, at[k], 4 * N, k * N), k * N);
}

// What one of 16 lanes reads and nobody wrote may come to each of them.
void spread(u64* unwritten, u32 words) {
  u64 lanes = 0;
  for (u32 l = 0; l < LANES; l += 16)
    if ((unwritten[0] | unwritten[1] | unwritten[2]) >> l & 0xffff) lanes |= u64{0xffff} << l;
  for (u32 k = 0; k < words; ++k) unwritten[k] = lanes;
}

// 16 lanes address a block of items of BITS by its rows, which are 16 items long, and each gets a column of it.
template <u32 BITS, u32 WORDS> void read_transposed(Wave& w, const Instruction& i) {
  constexpr u32 ITEMS = 32 * WORDS / BITS, LANES_OF_ROW = 16 / ITEMS;
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  const u64 mask = begin_read(w, i, at, 4 * WORDS);
  if (w.exec() != ~u64{0}) return w.stop(REFUSED_OPERAND, i);
  if (w.group->shadow) spread(w.tracker->unwritten, WORDS);
  u16 items[LANES][ITEMS] = {};
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    u8 bytes[4 * WORDS + 2] = {};
    std::memcpy(bytes, &w.group->lds[at[l]], 4 * WORDS);
    for (u32 k = 0; k < ITEMS; ++k) {
      u32 some = 0;
      std::memcpy(&some, bytes + BITS * k / 8, 3);
      items[l][k] = static_cast<u16>(some >> BITS * k % 8 & ((1u << BITS) - 1));
    }
  }
  u32(*rows)[LANES] = &w.v[i.o[0].index];
  for (u32 l = 0; l < LANES; ++l) {
    const u32 from = (l & 48) + (l & 15) / ITEMS, column = (l & 15) % ITEMS;
    u32 result[WORDS + 1] = {};
    for (u32 k = 0; k < ITEMS; ++k) {
      const u64 wide = u64{items[from + LANES_OF_ROW * k][column]} << BITS * k % 32;
      result[BITS * k / 32] |= static_cast<u32>(wide);
      result[BITS * k / 32 + 1] |= static_cast<u32>(wide >> 32);
    }
    for (u32 k = 0; k < WORDS; ++k) rows[k][l] = result[k];
  }
}

u32 begin_write(Wave& w, const Instruction& i, bool is_atomic) {
  Shadow* shadow = w.group->shadow;
  return shadow ? w.tracker->lds_write = shadow->begin_write(w, i, is_atomic, false) : 0;
}
template <u32 SIZE, u32 SHIFT> void write_at(Wave& w, const Instruction& i, const u32* at, const Operand& from, u32 number) {
  const u64 mask = inside_lds(w, i, at, w.exec(), SIZE);
  const u32(*rows)[LANES] = &w.v[from.index];
  constexpr u32 N = (SIZE + 3) / 4;
  Shadow* shadow = w.group->shadow;
  const u64 unknown = shadow ? w.tracker->unknown_lanes(from) : 0;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    u32 x[N];
    for (u32 k = 0; k < N; ++k) x[k] = rows[k][l] >> SHIFT;
    if (shadow) shadow->write(w, i, number, l, at[l], SIZE, reinterpret_cast<const u8*>(x), lane_on(unknown, l));
    to_lds(w, at[l], SIZE, x);
  }
}
template <u32 SIZE, u32 SHIFT = 0> void write(Wave& w, const Instruction& i) {
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  write_at<SIZE, SHIFT>(w, i, at, i.o[2], begin_write(w, i, false));
}
template <u32 N, u32 STEP> void write2(Wave& w, const Instruction& i) {
  u32 at[LANES];
  const u32 number = begin_write(w, i, false);
  offsets(w, i, static_cast<u32>(i.offset) * 4 * N * STEP, at);
  write_at<4 * N, 0>(w, i, at, i.o[2], number);
  offsets(w, i, static_cast<u32>(i.offset1) * 4 * N * STEP, at);
  write_at<4 * N, 0>(w, i, at, i.o[3], number);
}

// `data`: the two operands of A::apply after the old value.
template <class A> void change(u8* place, const u8* data, u8* old) {
  using T = typename A::Type;
  T before, x, y;
  std::memcpy(&before, place, sizeof before);
  std::memcpy(&x, data, sizeof x);
  std::memcpy(&y, data + 8, sizeof y);
  const T after = A::apply(before, x, y);
  std::memcpy(place, &after, sizeof after);
  std::memcpy(old, &before, sizeof before);
}

template <class A, bool RETURNS> void atomic(Wave& w, const Instruction& i) {
  using T = typename A::Type;
  constexpr bool wide = sizeof(T) == 8;
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  const u64 mask = inside_lds(w, i, at, w.exec(), sizeof(T));
  const u32 number = begin_write(w, i, true);
  Shadow* shadow = w.group->shadow;
  const u64 unknown = shadow ? w.tracker->unknown_lanes(i.o[2]) | w.tracker->unknown_lanes(i.o[3]) : 0;
  const bool compares = i.o[3].kind == VGPR;  // ds_cmpst compares with the first data and stores the second
  const auto value = [&](const Operand& o, u32 l, u8* to) {
    std::memcpy(to, &w.v[o.index][l], 4);
    if constexpr (wide) std::memcpy(to + 4, &w.v[o.index + 1][l], 4);
  };
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    if (at[l] % sizeof(T)) {
      bounds_fault(w, i, at[l], sizeof(T), l, 1);
      continue;
    }
    if (shadow) shadow->write_atomic(w, i, number, l, at[l], sizeof(T), lane_on(unknown, l), is_swap<A>);
    Piece piece{at[l], sizeof(T), {}, change<A>, l};
    value(i.o[compares ? 3 : 2], l, piece.data);
    if (compares) value(i.o[2], l, piece.data + 8);
    u32 old[2];
    u8* before = reinterpret_cast<u8*>(old);
    if (w.deferred) {
      if (shadow) change<A>(&shadow->issued[at[l]], piece.data, before);
      w.deferred->push_back(piece);
      continue;
    }
    change<A>(&w.group->lds[at[l]], piece.data, before);
    if (!RETURNS) continue;
    w.v[i.o[0].index][l] = old[0];
    if constexpr (wide) w.v[i.o[0].index + 1][l] = old[1];
  }
}

// What uses LDS's network between lanes, and no LDS.
void bpermute(Wave& w, const Instruction& i) {
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  alignas(64) u32 t[LANES];
  const u32* data = w.v[i.o[2].index];
  const u64 exec = w.exec();
  for (u32 l = 0; l < LANES; ++l) {
    const u32 from = at[l] / 4 % LANES;
    t[l] = lane_on(exec, from) ? data[from] : 0;
  }
  store_lanes(w.v[i.o[0].index], t, exec);
}
void permute(Wave& w, const Instruction& i) {
  u32 at[LANES];
  offsets(w, i, static_cast<u32>(i.offset), at);
  alignas(64) u32 t[LANES] = {};
  const u32* data = w.v[i.o[2].index];
  const u64 exec = w.exec();
  for (u32 l = 0; l < LANES; ++l)
    if (lane_on(exec, l)) t[at[l] / 4 % LANES] = data[l];
  store_lanes(w.v[i.o[0].index], t, exec);
}
void swizzle(Wave& w, const Instruction& i) {
  alignas(64) u32 t[LANES];
  const u32* data = w.v[i.o[1].index];
  const u64 exec = w.exec();
  const u32 control = static_cast<u32>(i.offset);
  for (u32 l = 0; l < LANES; ++l) {
    u32 from;
    if (control >= 0xe000) return w.stop(REFUSED_OPERAND, i);
    if (control >= 0xc000) {  // rotate within 32 lanes
      const u32 by = control >> 5 & 31, keep = control & 31, to = control >> 10 & 1 ? l - by : l + by;
      from = (l & 32) | (l & keep & 31) | (to & ~keep & 31);
    } else if (control & 0x8000) {  // quad permute
      from = (l & 60) | (control >> 2 * (l & 3) & 3);
    } else {
      from = (l & 32) | ((((l & 31) & control) | (control >> 5)) ^ (control >> 10)) % 32;
    }
    t[l] = lane_on(exec, from) ? data[from] : 0;
  }
  store_lanes(w.v[i.o[0].index], t, exec);
}

#define ATOMIC(name, A, words)                                                \
  {"ds_" name, atomic<A, false>, "ds a x:" words}
#define RETURNING(name, A, words)                                             \
  {"ds_" name, atomic<A, true>, "ds =d:" words " a x:" words}
#define INTEGERS(T, b, u, i, words)                                           \
  ATOMIC("add_" u, Atomics<T>::Add, words), RETURNING("add_rtn_" u, Atomics<T>::Add, words),               \
  ATOMIC("sub_" u, Atomics<T>::Sub, words), RETURNING("sub_rtn_" u, Atomics<T>::Sub, words),               \
  ATOMIC("rsub_" u, Atomics<T>::ReverseSub, words), RETURNING("rsub_rtn_" u, Atomics<T>::ReverseSub, words), \
  ATOMIC("inc_" u, Atomics<T>::Increment, words), RETURNING("inc_rtn_" u, Atomics<T>::Increment, words),   \
  ATOMIC("dec_" u, Atomics<T>::Decrement, words), RETURNING("dec_rtn_" u, Atomics<T>::Decrement, words),   \
  ATOMIC("min_" i, Atomics<T>::MinSigned, words), RETURNING("min_rtn_" i, Atomics<T>::MinSigned, words),   \
  ATOMIC("max_" i, Atomics<T>::MaxSigned, words), RETURNING("max_rtn_" i, Atomics<T>::MaxSigned, words),   \
  ATOMIC("min_" u, Atomics<T>::Min, words), RETURNING("min_rtn_" u, Atomics<T>::Min, words),               \
  ATOMIC("max_" u, Atomics<T>::Max, words), RETURNING("max_rtn_" u, Atomics<T>::Max, words),               \
  ATOMIC("and_" b, Atomics<T>::And, words), RETURNING("and_rtn_" b, Atomics<T>::And, words),               \
  ATOMIC("or_" b, Atomics<T>::Or, words), RETURNING("or_rtn_" b, Atomics<T>::Or, words),                   \
  ATOMIC("xor_" b, Atomics<T>::Xor, words), RETURNING("xor_rtn_" b, Atomics<T>::Xor, words),               \
  RETURNING("wrxchg_rtn_" b, Atomics<T>::Swap, words),                                                     \
  {"ds_cmpst_" b, atomic<Atomics<T>::CompareSwap, false>, "ds a x:" words " y:" words},                    \
  {"ds_cmpst_rtn_" b, atomic<Atomics<T>::CompareSwap, true>, "ds =d:" words " a x:" words " y:" words}

const Row table[] = {
    {"ds_read_u8", read_part<u8, false, false>, "ds =d:1 a"},
    {"ds_read_i8", read_part<i8, false, false>, "ds =d:1 a"},
    {"ds_read_u16", read_part<u16, false, false>, "ds =d:1 a"},
    {"ds_read_i16", read_part<i16, false, false>, "ds =d:1 a"},
    {"ds_read_u8_d16", read_part<u8, false, true>, "ds ~d:1 a"},
    {"ds_read_u8_d16_hi", read_part<u8, true, true>, "ds ~d:1 a"},
    {"ds_read_i8_d16", read_part<i8, false, true>, "ds ~d:1 a"},
    {"ds_read_i8_d16_hi", read_part<i8, true, true>, "ds ~d:1 a"},
    {"ds_read_u16_d16", read_part<u16, false, true>, "ds ~d:1 a"},
    {"ds_read_u16_d16_hi", read_part<u16, true, true>, "ds ~d:1 a"},
    {"ds_read_b32", read<1>, "ds =d:1 a"},
    {"ds_read_b64", read<2>, "ds =d:2 a"},
    {"ds_read_b96", read<3>, "ds =d:3 a"},
    {"ds_read_b128", read<4>, "ds =d:4 a"},
    {"ds_read2_b32", read2<1, 1>, "ds =d:2 a"},
    {"ds_read2_b64", read2<2, 1>, "ds =d:4 a"},
    {"ds_read2st64_b32", read2<1, 64>, "ds =d:2 a"},
    {"ds_read2st64_b64", read2<2, 64>, "ds =d:4 a"},
    {"ds_read_b64_tr_b16", read_transposed<16, 2>, "ds =d:2 a"},
    {"ds_read_b64_tr_b8@gfx950", read_transposed<8, 2>, "ds =d:2 a"},
    {"ds_read_b64_tr_b4@gfx950", read_transposed<4, 2>, "ds =d:2 a"},
    {"ds_read_b96_tr_b6@gfx950", read_transposed<6, 3>, "ds =d:3 a"},
    {"ds_write_b8", write<1>, "ds a x:1"},
    {"ds_write_b8_d16_hi", write<1, 16>, "ds a x:1"},
    {"ds_write_b16", write<2>, "ds a x:1"},
    {"ds_write_b16_d16_hi", write<2, 16>, "ds a x:1"},
    {"ds_write_b32", write<4>, "ds a x:1"},
    {"ds_write_b64", write<8>, "ds a x:2"},
    {"ds_write_b96", write<12>, "ds a x:3"},
    {"ds_write_b128", write<16>, "ds a x:4"},
    {"ds_write2_b32", write2<1, 1>, "ds a x:1 y:1"},
    {"ds_write2_b64", write2<2, 1>, "ds a x:2 y:2"},
    {"ds_write2st64_b32", write2<1, 64>, "ds a x:1 y:1"},
    {"ds_write2st64_b64", write2<2, 64>, "ds a x:2 y:2"},
    INTEGERS(u32, "b32", "u32", "i32", "1"),
    INTEGERS(u64, "b64", "u64", "i64", "2"),
    ATOMIC("add_f32", AddF32, "1"),
    RETURNING("add_rtn_f32", AddF32, "1"),
    ATOMIC("add_f64", AddF64, "2"),
    RETURNING("add_rtn_f64", AddF64, "2"),
    ATOMIC("min_f32", MinF32, "1"),
    RETURNING("min_rtn_f32", MinF32, "1"),
    ATOMIC("max_f32", MaxF32, "1"),
    RETURNING("max_rtn_f32", MaxF32, "1"),
    ATOMIC("min_f64", MinF64, "2"),
    RETURNING("min_rtn_f64", MinF64, "2"),
    ATOMIC("max_f64", MaxF64, "2"),
    RETURNING("max_rtn_f64", MaxF64, "2"),
    ATOMIC("pk_add_f16", AddPairF16, "1"),
    RETURNING("pk_add_rtn_f16", AddPairF16, "1"),
    ATOMIC("pk_add_bf16", AddPairBf16, "1"),
    RETURNING("pk_add_rtn_bf16", AddPairBf16, "1"),
    {"ds_bpermute_b32", bpermute, "ds =d:1 a x:1"},
    {"ds_permute_b32", permute, "ds =d:1 a x:1"},
    {"ds_swizzle_b32", swizzle, "ds =d:1 a"},
};

}  // namespace
HKB_ROWS(lds_rows, table)
}  // namespace hkb
