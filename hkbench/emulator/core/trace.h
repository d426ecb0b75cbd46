// Whose bytes they are: what kernels wrote, and what they read of that the host wrote.
#pragma once
#include "wave.h"

namespace hkb {

// Of a range of n bytes, byte for byte: the value that a kernel wrote last, whether one did, the value that was read and
// that no kernel had written, whether one was; then one byte for each 1 << BLOCK of them: something was read there.
struct Traced {
  u8 *value, *wrote, *seen, *read, *blocks;
  explicit Traced(const Range& range) {
    const u64 bytes = range.end - range.begin;
    value = range.trace;
    wrote = value + bytes;
    seen = wrote + bytes;
    read = seen + bytes;
    blocks = read + bytes;
  }
};

// Note what lies at `address` if the host wrote it: before it is read.
void note_read(Wave& w, u64 address, u32 size);
// Note what lies there as a kernel's.
void note_written(const Range& range, u64 address, u32 size);

}  // namespace hkb
