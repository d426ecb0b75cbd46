// Vector memory: global, flat, scratch and buffer instructions, and loads straight into LDS.
// Slots: o[0] destination or data to store, o[1] vector address, o[2] scalar address or resource, o[3] data of an
// atomic operation, o[4] scalar offset of a buffer.
#include "atomics.h"
#include "places.h"
#include "trace.h"

namespace hkb {
namespace {

template <u32 WORDS_> struct Words {
  static constexpr u32 bytes = 4 * WORDS_, words = WORDS_;
  static void get(const u8* p, u32* to) { std::memcpy(to, p, bytes); }
  static void put(u8* p, const u32* from) { std::memcpy(p, from, bytes); }
};
// Less than a word, widened; or one half of the register, the other half stays.
template <class T> struct Part {
  static constexpr u32 bytes = sizeof(T), words = 1;
  static void get(const u8* p, u32* to) {
    T x;
    std::memcpy(&x, p, sizeof x);
    *to = static_cast<u32>(static_cast<i32>(x));
  }
  static void put(u8* p, const u32* from) {
    const T x = static_cast<T>(*from);
    std::memcpy(p, &x, sizeof x);
  }
};
template <class T, bool HIGH> struct Half {
  static constexpr u32 bytes = sizeof(T), words = 1;
  static void get(const u8* p, u32* to) {
    T x;
    std::memcpy(&x, p, sizeof x);
    const u32 half = static_cast<u16>(static_cast<i16>(x));
    *to = HIGH ? (*to & 0xffff) | half << 16 : (*to & 0xffff0000) | half;
  }
  static void put(u8* p, const u32* from) {
    const T x = static_cast<T>(*from >> 16);
    std::memcpy(p, &x, sizeof x);
  }
};

// Copy what a lane reads or writes, and return how many bytes that are.
template <u32 SIZE> u32 copy(const Places& places, u32 l, u8* to, const u8* from) {
  if (lane_on(places.part, l)) {
    std::memcpy(to, from, places.bytes[l]);
    return places.bytes[l];
  }
  std::memcpy(to, from, SIZE);  // of a size that is known: in one piece
  return SIZE;
}

// Note what a load reads. With a trace it takes the bytes of global memory first, and `places` then leads to those: the
// host must not have time to change what was noted before it is loaded.
template <u32 SIZE> void note_reads(Wave& w, const Instruction& i, Places& places, u8 (&taken)[LANES][SIZE]) {
  if (places.shared && w.tracker) {
    w.tracker->settle(w, places.at, places.shared, SIZE);
    if (w.group->shadow) w.group->shadow->read(w, i, places.at, places.shared, SIZE, 0);
  }
  if (!w.group->run->traced) return;
  for (u64 rest = places.global; rest; rest &= rest - 1) {
    const u32 l = static_cast<u32>(std::countr_zero(rest));
    note_read(w, reinterpret_cast<u64>(places.p[l]), copy<SIZE>(places, l, taken[l], places.p[l]), taken[l]);
    places.p[l] = taken[l];
  }
}

// Loads of one word a lane from neighbouring addresses are one copy.
template <class P> bool copied_at_once(const Places& places, u32* row) {
  if constexpr (P::bytes != 4) return false;
  if (places.mask != ~u64{0} || places.part) return false;
  bool even = true;
  for (u32 l = 0; l < LANES; ++l) even &= places.p[l] == places.p[0] + 4 * l;
  if (even) std::memcpy(row, places.p[0], 4 * LANES);
  return even;
}

template <Space S, class P> void load(Wave& w, const Instruction& i) {
  Places places;
  find_places<S>(w, i, P::bytes, false, places);
  u8 taken[LANES][P::bytes];
  note_reads(w, i, places, taken);
  u32(*rows)[LANES] = &w.v[i.o[0].index];
  for (u64 rest = places.zeros; rest; rest &= rest - 1) {
    static constexpr u8 nothing[16] = {};
    const u32 l = static_cast<u32>(std::countr_zero(rest));
    u32 x[P::words] = {rows[0][l]};
    P::get(nothing, x);
    for (u32 k = 0; k < P::words; ++k) rows[k][l] = x[k];
  }
  if (copied_at_once<P>(places, rows[0])) return;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(places.mask, l)) continue;
    u32 x[P::words] = {rows[0][l]};
    if (places.part >> l & 1) {
      u8 bounced[16] = {};
      std::memcpy(bounced, places.p[l], places.bytes[l]);
      P::get(bounced, x);
    } else {
      P::get(places.p[l], x);
    }
    for (u32 k = 0; k < P::words; ++k) rows[k][l] = x[k];
  }
}

template <Space S, class P> void store(Wave& w, const Instruction& i) {
  Places places;
  find_places<S>(w, i, P::bytes, true, places);
  const u32(*rows)[LANES] = &w.v[i.o[0].index];
  Shadow* shadow = places.shared ? w.group->shadow : nullptr;
  const u32 number = shadow ? shadow->begin_write(w, i, false, false) : 0;
  if (shadow) w.tracker->lds_write = number;
  const u64 unknown = shadow ? w.tracker->unknown_lanes(i.o[0]) : 0;
  Turn turn(*w.group->run);
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(places.mask, l)) continue;
    u32 x[P::words];
    u8 data[16];
    for (u32 k = 0; k < P::words; ++k) x[k] = rows[k][l];
    P::put(data, x);
    if (lane_on(places.shared, l)) {
      if (shadow) shadow->write(w, i, number, l, places.at[l], P::bytes, data, lane_on(unknown, l));
      to_lds(w, places.at[l], P::bytes, data);
      continue;
    }
    const u64 address = reinterpret_cast<u64>(places.p[l]);
    if (lane_on(places.global, l)) turn.at(address);
    const u32 size = copy<P::bytes>(places, l, places.p[l], data);
    if (lane_on(places.global, l)) mark_written(w, address, size, data);
  }
}

// A load straight into LDS: lane l's bytes go to M0 + offset + l * size, where size is at least a word.
template <Space S, class P> void load_lds(Wave& w, const Instruction& i) {
  Places places;
  find_places<S>(w, i, P::bytes, false, places);
  u8 taken[LANES][P::bytes];
  note_reads(w, i, places, taken);
  constexpr u32 step = 4 * P::words;
  const u64 lanes = places.mask | places.zeros;
  u32 at[LANES];
  for (u32 l = 0; l < LANES; ++l) at[l] = w.s[M0] + static_cast<u32>(i.offset) + l * step;
  const u64 good = inside_lds(w, i, at, lanes, step);
  Shadow* shadow = w.group->shadow;
  const u32 number = shadow ? shadow->begin_write(w, i, false, true) : 0;
  if (shadow) w.tracker->lds_write = number;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(good, l)) continue;
    u32 x[P::words] = {};
    if (lane_on(places.part, l)) {
      std::memcpy(x, places.p[l], places.bytes[l]);
    } else if (lane_on(places.mask, l)) {
      P::get(places.p[l], x);
    }
    if (shadow) shadow->write(w, i, number, l, at[l], step, reinterpret_cast<const u8*>(x), false);
    to_lds(w, at[l], step, x);
  }
}
template <class P> void buffer_load(Wave& w, const Instruction& i) {
  return i.modifiers & LDS ? load_lds<BUFFER, P>(w, i) : load<BUFFER, P>(w, i);
}

template <Space S, class A> void atomic(Wave& w, const Instruction& i) {
  using T = typename A::Type;
  constexpr u32 words = sizeof(T) / 4;
  Places places;
  find_places<S>(w, i, sizeof(T), true, places);
  const u32(*data)[LANES] = &w.v[i.o[3].index];
  u32(*result)[LANES] = i.modifiers & SC0 ? &w.v[i.o[0].index] : nullptr;
  const auto value = [&](u32 row, u32 l) {
    T x = data[row][l];
    if constexpr (words == 2) x |= static_cast<u64>(data[row + 1][l]) << 32;
    return x;
  };
  const bool compares = i.o[3].width == 2 * words;
  Shadow* shadow = places.shared ? w.group->shadow : nullptr;
  const u32 number = shadow ? shadow->begin_write(w, i, true, false) : 0;
  if (shadow) w.tracker->lds_write = number;
  if (places.shared && w.tracker) w.tracker->settle(w, places.at, places.shared, sizeof(T));
  const u64 unknown = shadow ? w.tracker->unknown_lanes(i.o[3]) : 0;
  Turn turn(*w.group->run);
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(places.mask | places.zeros, l)) continue;
    T old = 0;
    if (lane_on(places.mask, l)) {
      if (reinterpret_cast<u64>(places.p[l]) % sizeof(T)) {
        bounds_fault(w, i, reinterpret_cast<u64>(places.p[l]), sizeof(T), l, 0);
        continue;
      }
      const bool tracked = shadow && lane_on(places.shared, l);
      if (tracked) shadow->write_atomic(w, i, number, l, places.at[l], sizeof(T), lane_on(unknown, l), is_swap<A>);
      const T x = value(0, l), y = compares ? value(words, l) : 0;
      const u64 address = reinterpret_cast<u64>(places.p[l]);
      if (lane_on(places.global, l)) turn.at(address);
      old = atomically<T>(places.p[l], [&](T before) { return A::apply(before, x, y); });
      if (tracked) shadow->changed(places.at[l], sizeof(T), places.p[l]);
      if (lane_on(places.global, l)) {
        const T now = A::apply(old, x, y);
        if (w.group->run->traced) note_read(w, address, sizeof(T), &old);
        mark_written(w, address, sizeof(T), &now);
      }
    }
    if (!result) continue;
    result[0][l] = static_cast<u32>(old);
    if constexpr (words == 2) result[1][l] = static_cast<u32>(old >> 32);
  }
}

void no_effect(Wave&, const Instruction&) {}

using Ushort = Part<u16>;
using Sshort = Part<i16>;
using Ubyte = Part<u8>;
using Sbyte = Part<i8>;
#define LOADS(prefix, S, name, P, d, words, tail) {prefix "_load_" name, load<S, P>, d ":" words tail}
#define SPACE(prefix, S, tail)                                          \
  LOADS(prefix, S, "ubyte", Ubyte, "load =d", "1", tail),               \
  LOADS(prefix, S, "sbyte", Sbyte, "load =d", "1", tail),               \
  LOADS(prefix, S, "ushort", Ushort, "load =d", "1", tail),             \
  LOADS(prefix, S, "sshort", Sshort, "load =d", "1", tail),             \
  {prefix "_load_ubyte_d16", load<S, Half<u8, false>>, "load ~d:1" tail},     \
  {prefix "_load_ubyte_d16_hi", load<S, Half<u8, true>>, "load ~d:1" tail},   \
  {prefix "_load_sbyte_d16", load<S, Half<i8, false>>, "load ~d:1" tail},     \
  {prefix "_load_sbyte_d16_hi", load<S, Half<i8, true>>, "load ~d:1" tail},   \
  {prefix "_load_short_d16", load<S, Half<u16, false>>, "load ~d:1" tail},    \
  {prefix "_load_short_d16_hi", load<S, Half<u16, true>>, "load ~d:1" tail},  \
  {prefix "_store_byte", store<S, Ubyte>, "store d:1" tail},                  \
  {prefix "_store_short", store<S, Ushort>, "store d:1" tail},                \
  {prefix "_store_byte_d16_hi", store<S, Half<u8, true>>, "store d:1" tail},  \
  {prefix "_store_short_d16_hi", store<S, Half<u16, true>>, "store d:1" tail}, \
  {prefix "_store_dword", store<S, Words<1>>, "store d:1" tail},              \
  {prefix "_store_dwordx2", store<S, Words<2>>, "store d:2" tail},            \
  {prefix "_store_dwordx3", store<S, Words<3>>, "store d:3" tail},            \
  {prefix "_store_dwordx4", store<S, Words<4>>, "store d:4" tail}
#define WIDE_LOADS(prefix, S)                                       \
  {prefix "_load_dword", load<S, Words<1>>, "load =d:1"},           \
  {prefix "_load_dwordx2", load<S, Words<2>>, "load =d:2"},         \
  {prefix "_load_dwordx3", load<S, Words<3>>, "load =d:3"},         \
  {prefix "_load_dwordx4", load<S, Words<4>>, "load =d:4"}
#define INTEGER_ATOMICS(prefix, S, suffix, T, words)                                                   \
  {prefix "_atomic_swap" suffix, atomic<S, Atomics<T>::Swap>, "atomic =d:" words " x:" words},         \
  {prefix "_atomic_cmpswap" suffix, atomic<S, Atomics<T>::CompareSwap>, "atomic =d:" words " xx:" words}, \
  {prefix "_atomic_add" suffix, atomic<S, Atomics<T>::Add>, "atomic =d:" words " x:" words},           \
  {prefix "_atomic_sub" suffix, atomic<S, Atomics<T>::Sub>, "atomic =d:" words " x:" words},           \
  {prefix "_atomic_smin" suffix, atomic<S, Atomics<T>::MinSigned>, "atomic =d:" words " x:" words},    \
  {prefix "_atomic_smax" suffix, atomic<S, Atomics<T>::MaxSigned>, "atomic =d:" words " x:" words},    \
  {prefix "_atomic_umin" suffix, atomic<S, Atomics<T>::Min>, "atomic =d:" words " x:" words},          \
  {prefix "_atomic_umax" suffix, atomic<S, Atomics<T>::Max>, "atomic =d:" words " x:" words},          \
  {prefix "_atomic_and" suffix, atomic<S, Atomics<T>::And>, "atomic =d:" words " x:" words},           \
  {prefix "_atomic_or" suffix, atomic<S, Atomics<T>::Or>, "atomic =d:" words " x:" words},             \
  {prefix "_atomic_xor" suffix, atomic<S, Atomics<T>::Xor>, "atomic =d:" words " x:" words},           \
  {prefix "_atomic_inc" suffix, atomic<S, Atomics<T>::Increment>, "atomic =d:" words " x:" words},     \
  {prefix "_atomic_dec" suffix, atomic<S, Atomics<T>::Decrement>, "atomic =d:" words " x:" words}
#define ATOMICS(prefix, S)                                                              \
  INTEGER_ATOMICS(prefix, S, "", u32, "1"),                                             \
  INTEGER_ATOMICS(prefix, S, "_x2", u64, "2"),                                          \
  {prefix "_atomic_add_f32", atomic<S, AddF32>, "atomic =d:1 x:1"},                     \
  {prefix "_atomic_add_f64", atomic<S, AddF64>, "atomic =d:2 x:2"},                     \
  {prefix "_atomic_min_f64", atomic<S, MinF64>, "atomic =d:2 x:2"},                     \
  {prefix "_atomic_max_f64", atomic<S, MaxF64>, "atomic =d:2 x:2"},                     \
  {prefix "_atomic_pk_add_f16", atomic<S, AddPairF16>, "atomic =d:1 x:1"}

const Row table[] = {
    SPACE("global", GLOBAL, ""),
    WIDE_LOADS("global", GLOBAL),
    ATOMICS("global", GLOBAL),
    {"global_load_lds_ubyte", load_lds<GLOBAL, Ubyte>, "lds"},
    {"global_load_lds_sbyte", load_lds<GLOBAL, Sbyte>, "lds"},
    {"global_load_lds_ushort", load_lds<GLOBAL, Ushort>, "lds"},
    {"global_load_lds_sshort", load_lds<GLOBAL, Sshort>, "lds"},
    {"global_load_lds_dword", load_lds<GLOBAL, Words<1>>, "lds"},
    {"global_load_lds_dwordx3", load_lds<GLOBAL, Words<3>>, "lds"},
    {"global_load_lds_dwordx4", load_lds<GLOBAL, Words<4>>, "lds"},
    SPACE("flat", FLAT, ""),
    WIDE_LOADS("flat", FLAT),
    ATOMICS("flat", FLAT),
    SPACE("scratch", SCRATCH, ""),
    WIDE_LOADS("scratch", SCRATCH),
    SPACE("buffer", BUFFER, ""),
    {"buffer_load_dword", buffer_load<Words<1>>, "load =d:1"},
    {"buffer_load_dwordx2", load<BUFFER, Words<2>>, "load =d:2"},
    {"buffer_load_dwordx3", buffer_load<Words<3>>, "load =d:3"},
    {"buffer_load_dwordx4", buffer_load<Words<4>>, "load =d:4"},
    ATOMICS("buffer", BUFFER),
    {"buffer_atomic_pk_add_bf16@gfx950", atomic<BUFFER, AddPairBf16>, "atomic =d:1 x:1"},
    {"global_atomic_pk_add_bf16", atomic<GLOBAL, AddPairBf16>, "atomic =d:1 x:1"},
    {"flat_atomic_pk_add_bf16", atomic<FLAT, AddPairBf16>, "atomic =d:1 x:1"},
    {"buffer_wbl2", no_effect, "none"},
    {"buffer_inv", no_effect, "none"},
};

}  // namespace
HKB_ROWS(vector_memory_rows, table)
}  // namespace hkb
