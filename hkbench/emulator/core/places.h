// Where the lanes of a memory instruction go: every address is checked here, and nowhere else.
#pragma once
#include "lanes.h"
#include "tracker.h"

namespace hkb {

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

// Write to LDS; with late delivery, when a wait proves it.
inline void to_lds(Wave& w, u32 at, u32 size, const void* data) {
  if (!w.deferred) {
    std::memcpy(&w.group->lds[at], data, size);
    return;
  }
  Piece& piece = w.deferred->emplace_back(Piece{at, size, {}});
  std::memcpy(piece.data, data, size);
}

}  // namespace hkb
