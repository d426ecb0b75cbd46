#include "places.h"

#include "trace.h"

#include <algorithm>

namespace hkb {

const Range* Memory::find(u64 address) const {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](u64 x, const Range& range) { return x < range.begin; });
  if (after == ranges.begin()) return nullptr;
  const Range& range = *--after;
  return address < range.end ? &range : nullptr;
}

FaultRecord fault_of(const Wave& w, const Instruction& i, u32 kind) {
  FaultRecord fault{};
  fault.kind = kind;
  fault.use = static_cast<u32>(&i - w.group->run->code);
  fault.cause = fault.reg = fault.lane = fault.cause_wave = NOWHERE;
  fault.wave = w.number;
  std::copy(w.group->id, w.group->id + 3, fault.workgroup);
  fault.count = 1;
  return fault;
}

void bounds_fault(Wave& w, const Instruction& i, u64 address, u32 size, u32 lane, u32 memory) {
  FaultRecord fault = fault_of(w, i, FAULT_BOUNDS);
  fault.address = address;
  fault.size = size;
  fault.lane = lane;
  fault.memory = memory;
  w.group->run->report(fault);
}

u64 allowed(Wave& w, const Instruction& i, const u64* address, u64 mask, u32 size, bool write) {
  if (!mask) return 0;
  u64 low = ~u64{0}, high = 0;
  for (u32 l = 0; l < LANES; ++l) {
    const bool on = mask >> l & 1;
    low = std::min(low, on ? address[l] : ~u64{0});
    high = std::max(high, on ? address[l] : 0);
  }
  const auto fits = [&](const Range* range, u64 first, u64 last_) {
    return range && first >= range->begin && last_ < range->end && range->end - last_ >= size &&
           (!write || range->writable);
  };
  if (fits(w.last, low, high)) return mask;
  const Memory& memory = *w.group->run->memory;
  const Range* found = memory.find(low);
  if (fits(found, low, high)) {
    w.last = found;
    return mask;
  }
  u64 good = 0;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    found = memory.find(address[l]);
    if (fits(found, address[l], address[l])) good |= u64{1} << l;
    else bounds_fault(w, i, address[l], size, l, 0);
  }
  return good;
}

void mark_written(Wave& w, u64 address, u32 size, const void* bytes) {
  const Range* range = w.last;
  if (!range || address < range->begin || address >= range->end) range = w.group->run->memory->find(address);
  if (range && range->trace) note_written(*range, address, size, bytes);
  if (!range || !range->written) return;
  const u64 first = (address - range->begin) >> 1, last_ = (address + size - 1 - range->begin) >> 1;
  std::memset(range->written + first, 1, last_ - first + 1);
  u8* blocks = range->written + (range->end - range->begin + 1) / 2;
  blocks[first >> BLOCK] = blocks[last_ >> BLOCK] = 1;
}

u64 inside_lds(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size) {
  const u64 bytes = w.group->lds.size();
  u32 high = 0;
  for (u32 l = 0; l < LANES; ++l) high = std::max(high, mask >> l & 1 ? at[l] : 0);
  if (u64{high} + size <= bytes) return mask;
  u64 good = mask;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l) || u64{at[l]} + size <= bytes) continue;
    good &= ~(u64{1} << l);
    bounds_fault(w, i, at[l], size, l, 1);
  }
  return good;
}

namespace {

void to_global(Wave& w, const Instruction& i, const u64* address, u64 mask, u32 size, bool write, Places& to) {
  const u64 good = allowed(w, i, address, mask, size, write);
  for (u32 l = 0; l < LANES; ++l)
    if (lane_on(good, l)) to.p[l] = reinterpret_cast<u8*>(address[l]);
  to.global |= good;
  to.mask |= good;
}

void to_scratch(Wave& w, const Instruction& i, const u64* at, u64 mask, u32 size, Places& to) {
  const u64 each = w.group->run->launch->scratch;
  for (u32 l = 0; l < LANES; ++l) {
    if (!lane_on(mask, l)) continue;
    if (at[l] + size > each) {
      bounds_fault(w, i, at[l], size, l, 2);
      continue;
    }
    to.p[l] = w.scratch.data() + l * each + at[l];
    to.mask |= u64{1} << l;
  }
}

void lane_addresses(const Wave& w, const Instruction& i, u64* address) {
  const u64 offset = static_cast<u64>(static_cast<i64>(i.offset));
  const Operand &v = i.o[1], &s = i.o[2];
  if (v.width == 2) {
    const u32 *low = w.v[v.index], *high = w.v[v.index + 1];
    for (u32 l = 0; l < LANES; ++l) address[l] = (low[l] | static_cast<u64>(high[l]) << 32) + offset;
  } else {
    const u64 base = (s.kind == SGPR ? w.pair(s.index) : 0) + offset;
    for (u32 l = 0; l < LANES; ++l) address[l] = base + (v.kind == VGPR ? w.v[v.index][l] : 0);
  }
}

void flat_places(Wave& w, const Instruction& i, u32 size, bool write, Places& to) {
  u64 address[LANES], inside[LANES] = {};
  lane_addresses(w, i, address);
  u64 shared = 0, scratch = 0;
  for (u32 l = 0; l < LANES; ++l) {
    const u32 high = static_cast<u32>(address[l] >> 32);
    shared |= static_cast<u64>(high == SHARED_APERTURE) << l;
    scratch |= static_cast<u64>(high == PRIVATE_APERTURE) << l;
    to.at[l] = static_cast<u32>(address[l]);
    inside[l] = to.at[l];
  }
  const u64 exec = w.exec();
  shared &= exec;
  scratch &= exec;
  to_global(w, i, address, exec & ~(shared | scratch), size, write, to);
  if (scratch) to_scratch(w, i, inside, scratch, size, to);
  if (!shared) return;
  to.shared = inside_lds(w, i, to.at, shared, size);
  for (u32 l = 0; l < LANES; ++l)
    if (lane_on(to.shared, l)) to.p[l] = w.group->lds.data() + to.at[l];
  to.mask |= to.shared;
}

void scratch_places(Wave& w, const Instruction& i, u32 size, Places& to) {
  u64 at[LANES];
  const u32 base = (i.o[2].kind == SGPR ? w.s[i.o[2].index] : 0) + static_cast<u32>(i.offset);
  for (u32 l = 0; l < LANES; ++l) at[l] = static_cast<u32>(base + (i.o[1].kind == VGPR ? w.v[i.o[1].index][l] : 0));
  to_scratch(w, i, at, w.exec(), size, to);
}

// A raw buffer: base and number of bytes; what lies beyond reads zeros. Without an index and lanes that add theirs the
// stride has no part in the address or the range, swizzled or not: HipKittens sets both, for the cache only.
void buffer_places(Wave& w, const Instruction& i, u32 size, bool write, Places& to) {
  const u32* resource = &w.s[i.o[2].index];
  const u64 base = resource[0] | static_cast<u64>(resource[1] & 0xffff) << 32;
  const bool adds_lane = resource[3] >> 23 & 1;
  if (adds_lane) return w.stop(REFUSED_RESOURCE, i, resource[1] | static_cast<u64>(resource[3]) << 32);
  const u64 records = resource[2], scalar = scalar32(w, i.o[4]);
  u64 address[LANES];
  u64 whole = 0;
  for (u32 l = 0; l < LANES; ++l) {
    const u64 offset = (i.modifiers & OFFEN ? w.v[i.o[1].index][l] : 0) + static_cast<u64>(i.offset) + scalar;
    address[l] = base + offset;
    whole |= static_cast<u64>(offset + size <= records) << l;
    to.bytes[l] = static_cast<u32>(offset >= records ? 0 : std::min<u64>((records - offset) & ~u64{3}, size));
  }
  const u64 exec = w.exec();
  u64 part = 0;
  if (~whole & exec && size > 4)
    for (u32 l = 0; l < LANES; ++l) part |= static_cast<u64>(lane_on(exec & ~whole, l) && to.bytes[l]) << l;
  to.zeros = exec & ~whole & ~part;
  to_global(w, i, address, exec & whole, size, write, to);
  for (u64 rest = part; rest; rest &= rest - 1) {
    const u32 l = static_cast<u32>(std::countr_zero(rest));
    const u64 one = u64{1} << l;
    to_global(w, i, address, one, to.bytes[l], write, to);
    to.part |= to.mask & one;
  }
}

}  // namespace

template <Space S> void find_places(Wave& w, const Instruction& i, u32 size, bool write, Places& to) {
  to.mask = to.zeros = to.shared = to.global = to.part = 0;
  if constexpr (S == GLOBAL) {
    u64 address[LANES];
    lane_addresses(w, i, address);
    to_global(w, i, address, w.exec(), size, write, to);
  } else if constexpr (S == FLAT) {
    flat_places(w, i, size, write, to);
  } else if constexpr (S == SCRATCH) {
    scratch_places(w, i, size, to);
  } else {
    buffer_places(w, i, size, write, to);
  }
}
template void find_places<GLOBAL>(Wave&, const Instruction&, u32, bool, Places&);
template void find_places<FLAT>(Wave&, const Instruction&, u32, bool, Places&);
template void find_places<SCRATCH>(Wave&, const Instruction&, u32, bool, Places&);
template void find_places<BUFFER>(Wave&, const Instruction&, u32, bool, Places&);

}  // namespace hkb
