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

// While a wave has the turn at an address, no other one writes there: what it writes and the note of it are one.
class Turn {
 public:
  explicit Turn(Run& run) : run_(run) {}
  void at(u64 address) {
    if (!run_.traced) return;
    std::mutex& stripe = run_.stripes[address >> 6 & 63];
    if (held_.mutex() == &stripe) return;
    held_ = {};  // before it waits for another one
    held_ = std::unique_lock(stripe);
  }

 private:
  Run& run_;
  std::unique_lock<std::mutex> held_;
};

// Note bytes that were read at `address`, if the host wrote them. They are given: the host can change what lies there.
void note_read(Wave& w, u64 address, u32 size, const void* bytes);
// Note bytes that a kernel wrote there.
void note_written(const Range& range, u64 address, u32 size, const void* bytes);

}  // namespace hkb
