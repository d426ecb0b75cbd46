#include "tracker.h"

#include <bit>

namespace hkb {
namespace {

constexpr u32 LATE_PATTERN = 0x7fe0dead;  // a NaN as a float, and as two halves

u32 first_bit(const Operand& o) { return o.kind == VGPR ? SGPRS + o.index : o.index; }
bool any_of(const u64* set, const Operand& o) {
  if (o.kind != VGPR && o.kind != SGPR) return false;
  for (u32 k = first_bit(o); k < first_bit(o) + o.width; ++k)
    if (set[k >> 6] >> (k & 63) & 1) return true;
  return false;
}

}  // namespace

void Tracker::before(Wave& w, const Instruction& i) {
  if (!ops.empty()) {
    u64 hit = 0;
    for (u32 k = 0; k < WORDS; ++k) hit |= (i.reads[k] | i.writes[k]) & pending[k];
    if (hit && check) conflict(w, i);
  }
  if (!check) return;
  u64 unknown = 0;
  for (u32 k = 0; k < WORDS; ++k) unknown |= i.reads[k] & ~defined[k];
  if (unknown) return undefined(w, i);
  for (u32 k = 0; k < WORDS; ++k) defined[k] |= i.writes[k];
}

void Tracker::conflict(Wave& w, const Instruction& i) {
  for (const InFlight& op : ops) {
    u32 reg = NOWHERE;
    for (u32 k = op.first; k < op.first + u32{op.registers} && reg == NOWHERE; ++k)
      if ((i.reads[k >> 6] | i.writes[k >> 6]) >> (k & 63) & 1) reg = k;
    if (reg == NOWHERE || !op.active) continue;
    FaultRecord fault = fault_of(w, i, FAULT_WAIT);
    fault.cause = op.instruction;
    fault.reg = reg;
    missing(op, fault.vm, fault.lgkm);
    fault.counters = u32{op.vm != Owes::NOTHING} | u32{op.lgkm != Owes::NOTHING} << 1;  // of Counter
    w.group->run->report(fault);
  }
}

void Tracker::missing(const InFlight& op, u32& vm, u32& lgkm) const {
  vm = lgkm = 0;
  for (const InFlight& younger : ops) {
    if (&younger <= &op) continue;
    if (op.vm == Owes::ORDERED && younger.vm == Owes::ORDERED) ++vm;
    if (op.lgkm == Owes::ORDERED && younger.lgkm == Owes::ORDERED) ++lgkm;
  }
}

// Undefined values may be computed with (compilers do), but not be an address or be stored to memory.
void Tracker::undefined(Wave& w, const Instruction& i) {
  u64 unknown[WORDS];
  for (u32 k = 0; k < WORDS; ++k) unknown[k] = i.reads[k] & ~defined[k];
  for (u32 n = 0; n < OPERANDS; ++n) {
    const bool address = i.sink & SINK_ADDRESS && (n == 1 || n == 2 || n == 4);
    const bool data = i.sink & SINK_DATA && n == 0;
    if (!(address || data) || !any_of(unknown, i.o[n]) || (w.exec() == 0 && i.flight != SMEM_LOAD)) continue;
    FaultRecord fault = fault_of(w, i, FAULT_UNINITIALIZED);
    fault.reg = first_bit(i.o[n]);
    for (u32 k = fault.reg; k < first_bit(i.o[n]) + i.o[n].width; ++k)
      if (unknown[k >> 6] >> (k & 63) & 1) {
        fault.reg = k;
        break;
      }
    w.group->run->report(fault);
  }
  for (u32 k = 0; k < WORDS; ++k) defined[k] |= i.writes[k];
  if (i.flight != NO_FLIGHT) return;  // what a load brings is defined
  // Of results in two registers the lower one depends on lower halves alone (sums, products, packed pairs).
  const Operand& d = i.o[0];
  bool low = d.width != 2;
  for (u32 n = 0; n < i.operands && !low; ++n) {
    const Operand first{i.o[n].index, i.o[n].kind, 1, 0, 0, 0};
    low = any_of(unknown, i.o[n].width == 2 ? first : i.o[n]);
  }
  u64 spoiled[WORDS];
  std::memcpy(spoiled, i.writes, sizeof spoiled);
  if (!low) spoiled[first_bit(d) >> 6] &= ~(u64{1} << (first_bit(d) & 63));
  for (u32 k = 0; k < WORDS; ++k) defined[k] &= ~spoiled[k];
}

void Tracker::issue(Wave& w, const Instruction& i) {
  InFlight op{};
  op.instruction = static_cast<u32>(&i - w.group->run->code);
  op.exec = w.exec();
  op.active = op.exec != 0 || i.flight == SMEM_LOAD;
  switch (i.flight) {
    case VM_LOAD: case VM_STORE: case LDS_DMA: op.vm = Owes::ORDERED; break;
    case FLAT_ANY: op.vm = op.lgkm = Owes::UNORDERED; break;
    case LDS_ANY: op.lgkm = Owes::ORDERED; break;
    default: op.lgkm = Owes::UNORDERED;
  }
  const Operand& d = i.o[0];
  u64 written = 0;
  for (u32 k = 0; k < WORDS; ++k) written |= i.writes[k];
  if (written && (d.kind == VGPR || d.kind == SGPR)) {
    op.first = static_cast<u16>(first_bit(d));
    op.registers = d.width;
    for (u32 k = op.first; k < op.first + u32{op.registers}; ++k) pending[k >> 6] |= u64{1} << (k & 63);
    if (late) {
      const u32 size = d.kind == VGPR ? LANES : 1;
      op.late.reset(new u32[size * d.width]);
      u32* from = d.kind == VGPR ? w.v[d.index] : &w.s[d.index];
      std::memcpy(op.late.get(), from, 4 * size * d.width);
      for (u32 k = 0; k < size * d.width; ++k)
        if (d.kind == SGPR || lane_on(op.exec, k & 63)) from[k] = LATE_PATTERN;
    }
  }
  op.lds_write = lds_write;
  lds_write = 0;
  if (late && !deferred.empty()) {
    op.words = std::make_unique<std::vector<std::pair<u32, u32>>>(std::move(deferred));
    deferred.clear();
  }
  ops.push_back(std::move(op));
  wait(w, VM_MOST, LGKM_MOST);
}

void Tracker::wait(Wave& w, u32 vm, u32 lgkm) {
  u32 vm_ordered = 0, lgkm_ordered = 0;
  bool retired = false;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    vm_ordered += op->vm == Owes::ORDERED;
    lgkm_ordered += op->lgkm == Owes::ORDERED;
    if (op->vm == Owes::ORDERED ? vm_ordered > vm : vm == 0) op->vm = Owes::NOTHING;
    if (op->lgkm == Owes::ORDERED ? lgkm_ordered > lgkm : lgkm == 0) op->lgkm = Owes::NOTHING;
    retired |= op->vm == Owes::NOTHING && op->lgkm == Owes::NOTHING;
  }
  if (!retired) return;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    if (ops[k].vm == Owes::NOTHING && ops[k].lgkm == Owes::NOTHING) {
      retire(w, ops[k]);
    } else {
      if (kept != k) ops[kept] = std::move(ops[k]);
      ++kept;
    }
  }
  ops.resize(kept);
  std::memset(pending, 0, sizeof pending);
  for (const InFlight& op : ops)
    for (u32 k = op.first; k < op.first + u32{op.registers}; ++k) pending[k >> 6] |= u64{1} << (k & 63);
}

void Tracker::retire(Wave& w, InFlight& op) {
  if (op.late) {
    if (op.first >= SGPRS) {
      for (u32 r = 0; r < op.registers; ++r)
        for (u32 l = 0; l < LANES; ++l)
          if (lane_on(op.exec, l)) w.v[op.first - SGPRS + r][l] = op.late[r * LANES + l];
    } else {
      std::memcpy(&w.s[op.first], op.late.get(), 4 * op.registers);
    }
  }
  if (op.words)
    for (const auto& [at, word] : *op.words) std::memcpy(&w.group->lds[at], &word, 4);
  if (op.lds_write && w.group->shadow) w.group->shadow->complete(op.lds_write, w.group->round);
}

Shadow::Shadow(u32 bytes, u32 shift_) : shift(shift_) {
  const u32 pieces = (bytes >> shift) + 16;
  last.assign(pieces, 0);
  readers.assign(pieces, 0);
  reader.assign(pieces, 0);
}

void Shadow::clear() {
  std::fill(last.begin(), last.end(), 0);
  std::fill(readers.begin(), readers.end(), 0);
  writes.clear();
  first = floor = 1;
}

u32 Shadow::begin_write(const Wave& w, const Instruction& i, bool atomic, bool direct) {
  writes.push_back({static_cast<u32>(&i - w.group->run->code), PENDING, static_cast<u16>(w.number), atomic, direct});
  return first + static_cast<u32>(writes.size()) - 1;
}

void Shadow::race(Wave& w, const Instruction& i, u32 lane, u32 piece, u32 cause, u32 wave) {
  FaultRecord fault = fault_of(w, i, FAULT_RACE);
  fault.cause = cause;
  fault.cause_wave = wave;
  fault.lane = lane;
  fault.memory = 1;
  fault.address = static_cast<u64>(piece) << shift;
  w.group->run->report(fault);
}

void Shadow::write(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, const u8* data) {
  const u32 me = 1u << w.number, round = (w.group->round & 0xffff) << 16;
  const bool atomic = data == nullptr;
  for (u32 piece = at >> shift; piece <= (at + size - 1) >> shift; ++piece) {
    const u32 before = last[piece], seen = readers[piece];
    const bool others_read = (seen & 0xffff0000) == round && (seen & 0xffff & ~me);
    if (others_read || before >= floor) {
      const u32 from = piece << shift > at ? piece << shift : at;
      const u32 to = ((piece + 1) << shift) < at + size ? (piece + 1) << shift : at + size;
      const bool same = data && std::memcmp(&w.group->lds[from], data + (from - at), to - from) == 0;
      if (others_read && !same) race(w, i, lane, piece, reader[piece], NOWHERE);
      if (before >= floor) {
        const Write& other = writes[before - first];
        const bool ordered = other.completed != PENDING && other.completed < w.group->round;
        if (other.wave != w.number && !ordered && !same && !(atomic && other.atomic))
          race(w, i, lane, piece, other.instruction, other.wave);
      }
    }
    last[piece] = number;
  }
}

void Shadow::check_read(Wave& w, const Instruction& i, u32 lane, u32 piece, bool& waited) {
  const Write& other = writes[last[piece] - first];
  if (other.completed != PENDING && other.completed < w.group->round) return;
  if (other.wave != w.number) return race(w, i, lane, piece, other.instruction, other.wave);
  if (!other.direct || other.completed != PENDING || waited) return;
  waited = true;  // its own load into LDS, not waited for
  FaultRecord fault = fault_of(w, i, FAULT_WAIT);
  fault.cause = other.instruction;
  fault.memory = 1;
  fault.lane = lane;
  fault.address = static_cast<u64>(piece) << shift;
  fault.counters = COUNTER_VM;
  for (const InFlight& op : w.tracker->ops)
    if (op.lds_write == last[piece]) w.tracker->missing(op, fault.vm, fault.lgkm);
  w.group->run->report(fault);
}

void Shadow::read(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size) {
  const u32 me = 1u << w.number, round = (w.group->round & 0xffff) << 16;
  const u32 code = static_cast<u32>(&i - w.group->run->code);
  bool waited = false;
  for (u64 rest = mask; rest; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(std::countr_zero(rest));
    const u32 begin = at[lane] >> shift, end = ((at[lane] + size - 1) >> shift) + 1;
    for (u32 piece = begin; piece < end; ++piece) {
      if (last[piece] >= floor) check_read(w, i, lane, piece, waited);
      const u32 seen = readers[piece];
      readers[piece] = ((seen & 0xffff0000) == round ? seen : round) | me;
      reader[piece] = code;
    }
  }
}

void Shadow::complete(u32 number, u32 round) {
  if (number >= first) writes[number - first].completed = round;
}

void Shadow::next_round(u32 round) {
  while (floor - first < writes.size() && writes[floor - first].completed < round) ++floor;
  if (floor - first > 4096) {
    writes.erase(writes.begin(), writes.begin() + (floor - first));
    first = floor;
  }
  if ((round & 0xffff) == 0) std::fill(readers.begin(), readers.end(), 0xffff0000);  // the round's 16 bits begin anew
}

}  // namespace hkb
