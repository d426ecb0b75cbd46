// Where the lanes of a memory instruction go: every address is checked here, and nowhere else.
#pragma once
#include "lanes.h"
#include "tracker.h"

namespace hkb {

// High words of addresses that are not of global memory: no user address of the host has them.
inline constexpr u32 SHARED_APERTURE = 0x00010000, PRIVATE_APERTURE = 0x00020000;

enum Space { GLOBAL, FLAT, SCRATCH, BUFFER };

struct Places {
  u8* p[LANES];
  u64 mask;   // lanes that may go on
  u64 zeros;  // lanes of a buffer access beyond its records: they read zeros, and write nothing
  u64 shared, global;  // of `mask`: the lanes in LDS, in global memory
  u64 part;            // of `mask`: lanes of which only `bytes` lie within the buffer's records
  u32 at[LANES];       // of the lanes in LDS: their offset
  u32 bytes[LANES];
};

template <Space S> void find_places(Wave& w, const Instruction& i, u32 size, bool write, Places& to);
// Which lanes of `mask` have `size` bytes at their offset in LDS; the others are reported.
u64 inside_lds(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size);

}  // namespace hkb
