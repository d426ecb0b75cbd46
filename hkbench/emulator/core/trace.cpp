#include "trace.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

namespace hkb {
namespace {

constexpr u32 CHUNK = 16;
constexpr u8 NONE_READ[CHUNK] = {}, ALL_READ[CHUNK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// Note up to four bytes that are read at once. Where the host changed one of them, all are its: a number that shares its
// upper bytes with the one that a kernel wrote is another number.
void note_unit(Run& run, const Traced& traced, const u8* now, u64 at, u32 size) {
  const bool kernels = std::count(traced.wrote + at, traced.wrote + at + size, 1) == size;
  if (kernels && !std::memcmp(now, traced.value + at, size)) return;
  if (std::count(traced.read + at, traced.read + at + size, 1) == size) {
    if (std::memcmp(now, traced.seen + at, size)) run.restless += size;
    return;
  }
  std::memcpy(traced.seen + at, now, size);
  std::memset(traced.read + at, 1, size);
  traced.blocks[at >> BLOCK] = traced.blocks[(at + size - 1) >> BLOCK] = 1;
}

// The same of a word in the usual cases: kernels wrote all of it, or the host did, who has not changed it since. Return
// whether it was one.
template <typename Word> bool note_usual(const Traced& traced, const u8* now, u64 at) {
  constexpr Word ALL = static_cast<Word>(0x0101010101010101);
  Word word, value, wrote, seen, read;
  std::memcpy(&word, now, sizeof word);
  std::memcpy(&wrote, traced.wrote + at, sizeof word);
  if (wrote == ALL) {
    std::memcpy(&value, traced.value + at, sizeof word);
    return value == word;
  }
  std::memcpy(&read, traced.read + at, sizeof word);
  if (wrote) return false;
  if (read == ALL) {
    std::memcpy(&seen, traced.seen + at, sizeof word);
    return seen == word;
  }
  if (read) return false;
  std::memcpy(traced.seen + at, &word, sizeof word);
  std::memcpy(traced.read + at, &ALL, sizeof word);
  traced.blocks[at >> BLOCK] = traced.blocks[(at + sizeof word - 1) >> BLOCK] = 1;
  return true;
}

u64 mixed(u64 x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Without the key nobody makes two chunks of the same number.
u64 number_of(const u8* chunk, const u64* key) {
  u64 words[2];
  std::memcpy(words, chunk, CHUNK);
  return mixed(mixed(words[0] ^ key[0]) ^ words[1] ^ key[1]);
}

}  // namespace

void note_read(Wave& w, u64 address, u32 size, const void* bytes) {
  const Range* range = w.last;
  if (!range || address < range->begin || address >= range->end) range = w.group->run->memory->find(address);
  if (!range || !range->trace) return;
  const Traced traced(*range);
  const u64 at = address - range->begin;
  const u8* now = static_cast<const u8*>(bytes);
  for (u32 k = 0; k < size;) {
    if (size - k >= 8 && note_usual<u64>(traced, now + k, at + k)) {
      k += 8;
      continue;
    }
    const u32 unit = std::min(4u, size - k);
    if (unit < 4 || !note_usual<u32>(traced, now + k, at + k)) note_unit(*w.group->run, traced, now + k, at + k, unit);
    k += unit;
  }
}

void note_written(const Range& range, u64 address, u32 size, const void* bytes) {
  const Traced traced(range);
  const u64 at = address - range.begin;
  std::memcpy(traced.value + at, bytes, size);
  std::memset(traced.wrote + at, 1, size);
}

extern "C" {

// Of how many chunks at most `hkbench_emulator_host_made` tells.
u64 hkbench_emulator_touched(const Range* range) {
  const u64 bytes = range->end - range->begin;
  const u8* blocks = Traced(*range).blocks;
  const u64 count = static_cast<u64>(std::count(blocks, blocks + (bytes >> BLOCK) + 1, 1));
  return count * ((u64{1} << BLOCK) / CHUNK + 2);
}

// Write pairs (number of a chunk, bytes of it that were read) of what kernels read and the host wrote, and forget it.
// `settled`: what lies there now is what the host was to write.
u64 hkbench_emulator_host_made(const Range* range, const u64* key, u32 settled, u64* pairs) {
  const Traced traced(*range);
  const u64 bytes = range->end - range->begin;
  u64 count = 0;
  for (u64 first = 0; first < bytes; first += u64{1} << BLOCK) {
    if (!traced.blocks[first >> BLOCK]) continue;
    traced.blocks[first >> BLOCK] = 0;
    const u64 end = std::min(bytes, first + (u64{1} << BLOCK));
    for (u64 at = first; at < end;) {
      const u64 next = std::min(end, (range->begin + at) / CHUNK * CHUNK + CHUNK - range->begin);
      u8 chunk[CHUNK] = {};
      u64 found = 0;
      if (next - at == CHUNK) {  // the usual cases: nothing of it was read, or all and nothing changed
        if (!std::memcmp(traced.read + at, NONE_READ, CHUNK)) at = next;
        else if (!std::memcmp(traced.read + at, ALL_READ, CHUNK)) {
          const bool told = settled && !std::memcmp(traced.seen + at, reinterpret_cast<const u8*>(range->begin + at), CHUNK);
          if (told || !settled) {
            std::memset(traced.read + at, 0, CHUNK);
            std::memcpy(chunk, traced.seen + at, CHUNK);
            found = told ? 0 : CHUNK;
            at = next;
          }
        }
      }
      for (; at < next; ++at) {
        if (!traced.read[at]) continue;
        traced.read[at] = 0;
        if (settled && traced.seen[at] == *reinterpret_cast<const u8*>(range->begin + at)) continue;
        chunk[(range->begin + at) % CHUNK] = traced.seen[at];
        ++found;
      }
      if (!found) continue;
      pairs[2 * count] = number_of(chunk, key);
      pairs[2 * count++ + 1] = found;
    }
  }
  return count;
}

// The same of all that lies at a place now.
u64 hkbench_emulator_chunks(u64 begin, u64 size, const u64* key, u64* pairs) {
  u64 count = 0;
  for (u64 at = begin; at < begin + size;) {
    const u64 next = std::min(begin + size, at / CHUNK * CHUNK + CHUNK);
    u8 chunk[CHUNK] = {};
    std::memcpy(chunk + at % CHUNK, reinterpret_cast<const u8*>(at), next - at);
    pairs[2 * count] = number_of(chunk, key);
    pairs[2 * count++ + 1] = next - at;
    at = next;
  }
  return count;
}

// The bytes of `count` pairs together.
u64 hkbench_emulator_bytes(const u64* pairs, u64 count) {
  u64 bytes = 0;
  for (u64 pair = 0; pair < count; ++pair) bytes += pairs[2 * pair + 1];
  return bytes;
}

// Sort `count` pairs and leave one of each number; return how many are left. The numbers are as good as random, so that
// they are sorted by their upper bits first, into parts of some 64.
u64 hkbench_emulator_distinct(u64* pairs, u64 count) {
  struct Pair { u64 number, bytes; };
  const u32 bits = std::clamp(static_cast<int>(std::bit_width(count)) - 6, 1, 16);
  auto* first = reinterpret_cast<Pair*>(pairs);
  std::vector<Pair> sorted(count);
  std::vector<u64> ends(u64{1} << bits);
  const auto part = [bits](const Pair& pair) { return pair.number >> (64 - bits); };
  for (u64 i = 0; i < count; ++i) ++ends[part(first[i])];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  for (u64 i = count; i-- > 0;) sorted[--ends[part(first[i])]] = first[i];
  ends.push_back(count);  // now each number is where its part begins
  for (u64 i = 0; i + 1 < ends.size(); ++i)
    std::sort(sorted.begin() + static_cast<i64>(ends[i]), sorted.begin() + static_cast<i64>(ends[i + 1]),
              [](const Pair& a, const Pair& b) { return a.number < b.number; });
  std::copy(sorted.begin(), sorted.end(), first);
  return static_cast<u64>(std::unique(first, first + count, [](const Pair& a, const Pair& b) {
                            return a.number == b.number;
                          }) - first);
}

// How many bytes at a place a kernel wrote and nobody changed after it; of a chunk of which one was changed, none.
u64 hkbench_emulator_kept(const Range* range, u64 begin, u64 size) {
  const Traced traced(*range);
  u64 count = 0;
  for (u64 at = begin; at < begin + size;) {
    const u64 next = std::min(begin + size, at / CHUNK * CHUNK + CHUNK), first = at - range->begin;
    bool changed = false;
    u64 wrote = 0;
    for (u64 k = first; k < first + next - at; ++k) {
      wrote += traced.wrote[k];
      changed |= traced.wrote[k] && traced.value[k] != *reinterpret_cast<const u8*>(range->begin + k);
    }
    if (!changed) count += wrote;
    at = next;
  }
  return count;
}

// Write pairs (number of a chunk, bytes) of what lies at a place and is not counted there; as if kernels' bytes were 0.
u64 hkbench_emulator_left(const Range* range, u64 begin, u64 size, const u64* key, u64* pairs) {
  const Traced traced(*range);
  u64 count = 0;
  for (u64 at = begin; at < begin + size;) {
    const u64 next = std::min(begin + size, at / CHUNK * CHUNK + CHUNK);
    const u64 kept = hkbench_emulator_kept(range, at, next - at);
    u8 chunk[CHUNK] = {};
    for (u64 k = at; k < next; ++k)
      if (!kept || !traced.wrote[k - range->begin]) chunk[k % CHUNK] = *reinterpret_cast<const u8*>(k);
    if (kept < next - at) {
      pairs[2 * count] = number_of(chunk, key);
      pairs[2 * count++ + 1] = next - at - kept;
    }
    at = next;
  }
  return count;
}

}  // extern "C"
}  // namespace hkb
