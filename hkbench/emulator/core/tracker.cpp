#include "tracker.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace hkb {
namespace {

constexpr u32 LATE_PATTERN = 0x7fe0dead;  // a NaN as a float, and as two halves

void mark(Wave& w, u32 wait, u8 what) {
  u8* waits = w.group->run->launch->waits;
  if (!waits || wait == NOWHERE) return;
  std::atomic_ref<u8> at(waits[wait]);
  if ((at.load(std::memory_order_relaxed) & what) != what) at.fetch_or(what, std::memory_order_relaxed);
}

bool written(Wave& w, u32 wait) {
  u8* waits = w.group->run->launch->waits;
  return waits && std::atomic_ref<u8>(waits[wait]).load(std::memory_order_relaxed) & WAIT_WRITTEN;
}

// The first of a destination's registers that an instruction reads or writes; NOWHERE: none.
template <class Loaded> u32 met(const Instruction& i, const Loaded& one) {
  for (u32 k = one.first; k < one.first + u32{one.registers}; ++k)
    if ((i.reads[k >> 6] | i.writes[k >> 6]) >> (k & 63) & 1) return k;
  return NOWHERE;
}

// Set the bits of the registers of all of these.
template <class Loaded> void note_registers(const std::vector<Loaded>& all, u64 (&bits)[WORDS]) {
  std::memset(bits, 0, sizeof bits);
  for (const Loaded& one : all)
    for (u32 k = one.first; k < one.first + u32{one.registers}; ++k) bits[k >> 6] |= u64{1} << (k & 63);
}

u32 first_bit(const Operand& o) { return o.kind == VGPR ? SGPRS + o.index : o.index; }

}  // namespace

void Tracker::before(Wave& w, const Instruction& i) {
  if (!ops.empty()) {
    u64 hit = 0;
    for (u32 k = 0; k < WORDS; ++k) hit |= (i.reads[k] | i.writes[k]) & pending[k];
    if (hit && check) conflict(w, i);
  }
  if (!proven.empty()) touch(w, i);
  if (!check) return;
  u64 unknown = 0;
  for (u32 k = 0; k < WORDS; ++k) unknown |= i.reads[k] & ~defined[k];
  if (unknown) return undefined(w, i);
  for (u32 k = 0; k < WORDS; ++k) defined[k] |= i.writes[k];
}

void Tracker::conflict(Wave& w, const Instruction& i) {
  for (const InFlight& op : ops) {
    const u32 reg = op.active ? owed(i, op) : NOWHERE;
    if (reg == NOWHERE) continue;
    FaultRecord fault = fault_of(w, i, FAULT_WAIT);
    fault.cause = op.instruction;
    fault.reg = reg;
    missing(op, fault.vm, fault.lgkm);
    fault.counters = u32{op.vm != Owes::NOTHING} | u32{op.lgkm != Owes::NOTHING} << 1;  // of Counter
    w.group->run->report(fault);
  }
}

// Loads from memory return in order: one may follow another into its register without a wait, and owns that then.
u32 Tracker::owed(const Instruction& i, const InFlight& op) const {
  const bool follows = i.flight == VM_LOAD && op.vm == Owes::ORDERED && op.lgkm == Owes::NOTHING;
  for (u32 k = op.first; k < op.first + u32{op.registers}; ++k) {
    if (!((i.reads[k >> 6] | (follows ? 0 : i.writes[k >> 6])) >> (k & 63) & 1)) continue;
    const auto owns = [&](const InFlight& other) {
      return &other > &op && other.active && k >= other.first && k < other.first + u32{other.registers};
    };
    if (std::none_of(ops.begin(), ops.end(), owns)) return k;
  }
  return NOWHERE;
}

// What is touched was worth a wait.
void Tracker::touch(Wave& w, const Instruction& i) {
  u64 hit = 0;
  for (u32 k = 0; k < WORDS; ++k) hit |= (i.reads[k] | i.writes[k]) & touched[k];
  if (!hit) return;
  std::erase_if(proven, [&](const Proven& one) {
    if (met(i, one) == NOWHERE) return false;
    mark(w, one.by, WAIT_USED);
    return true;
  });
  note_registers(proven, touched);
}

// A load into registers is worth its wait when they are touched. Of what goes to memory or to LDS others may know.
void Tracker::prove(Wave& w, const InFlight& op, u32 by) {
  if (!w.group->run->launch->waits || by == NOWHERE || !op.active) return;
  if (!op.registers || op.lds_write || op.direct) return mark(w, by, WAIT_USED);
  proven.push_back({by, op.owed_vm, op.owed_lgkm, op.unordered, op.vm_issued, op.lgkm_issued, op.first, op.registers});
}

// Of what this wait would have proven had an earlier one not done so it is the proof: the earlier one was too early.
// A compiler's wait is none: it may be there by chance, for a load of the compiler's.
void Tracker::take_over(u32 vm, u32 lgkm, u32 by) {
  for (Proven& one : proven) {
    const bool by_vm = one.unordered ? vm == 0 : vm_issued - one.vm_issued >= vm;
    const bool by_lgkm = one.unordered ? lgkm == 0 : lgkm_issued - one.lgkm_issued >= lgkm;
    if ((!one.vm || by_vm) && (!one.lgkm || by_lgkm)) one.by = by;
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

u64 Tracker::unknown_lanes(const Operand& o) const {
  if (o.kind != VGPR && o.kind != SGPR) return 0;
  u64 lanes = 0;
  for (u32 k = first_bit(o); k < first_bit(o) + o.width; ++k)
    if (!(defined[k >> 6] >> (k & 63) & 1)) lanes |= k < SGPRS ? ~u64{0} : unknown[k - SGPRS];
  return lanes;
}

void Tracker::sink(Wave& w, const Instruction& i, const Operand& o) {
  u64 lanes = unknown_lanes(o) & (o.kind == VGPR ? w.exec() : ~u64{0});
  if (i.flight == FLAT_ANY && &o == &i.o[0])  // data that go to LDS
    for (u32 l = 0; l < LANES; ++l)
      if (w.v[i.o[1].index + 1][l] == SHARED_APERTURE) lanes &= ~(u64{1} << l);
  if (!lanes || (w.exec() == 0 && i.flight != SMEM_LOAD)) return;
  FaultRecord fault = fault_of(w, i, FAULT_UNINITIALIZED);
  for (u32 k = first_bit(o); k < first_bit(o) + o.width && fault.reg == NOWHERE; ++k)
    if (!(defined[k >> 6] >> (k & 63) & 1)) fault.reg = k;
  fault.cause = fault.reg < SGPRS ? NOWHERE : origin[fault.reg - SGPRS];
  w.group->run->report(fault);
}

// Unknown values may be computed with (compilers do), but not be an address or be stored to memory.
void Tracker::undefined(Wave& w, const Instruction& i) {
  const bool shared = i.flight == LDS_ANY;  // what is stored to LDS may be unknown, too: Shadow::known
  if (i.sink & SINK_ADDRESS) {
    sink(w, i, i.o[1]);
    if (!shared) sink(w, i, i.o[2]);
    if (!shared) sink(w, i, i.o[4]);
  }
  if (i.sink & SINK_DATA) sink(w, i, i.o[0]);
  u64 lanes = 0;
  u32 from = NOWHERE;
  for (u32 k = 0; k < WORDS; ++k)
    for (u64 rest = i.reads[k] & ~defined[k]; rest; rest &= rest - 1) {
      const u32 bit = 64 * k + static_cast<u32>(std::countr_zero(rest));
      lanes |= bit < SGPRS ? ~u64{0} : unknown[bit - SGPRS];
      if (from == NOWHERE && bit >= SGPRS) from = origin[bit - SGPRS];
    }
  // Of results in two registers the lower one depends on lower halves alone (sums, products, packed pairs).
  u64 lower = i.o[0].width == 2 ? 0 : lanes;
  for (u32 n = 0; n < i.operands && i.o[0].width == 2; ++n) {
    Operand half = i.o[n];
    half.width = half.width == 2 ? 1 : half.width;
    if (i.reads[first_bit(half) >> 6] >> (first_bit(half) & 63) & 1) lower |= unknown_lanes(half);
  }
  if (i.sink & TRIED) lanes = lower = try_unknown(w, i);
  for (u32 k = 0; k < WORDS; ++k) defined[k] |= i.writes[k];
  if (i.flight == NO_FLIGHT || i.sink & TRIED) spoil(w, i, lanes, lower, from);  // what a load brings is known
}

// Of the registers that an instruction writes, `lanes` are unknown (of a pair's first one: `lower`).
void Tracker::spoil(Wave& w, const Instruction& i, u64 lanes, u64 lower, u32 origin_) {
  for (u32 k = 0; k < WORDS; ++k)
    for (u64 rest = i.writes[k]; rest; rest &= rest - 1) {
      const u32 bit = 64 * k + static_cast<u32>(std::countr_zero(rest));
      const u64 which = bit == first_bit(i.o[0]) ? lower : lanes;
      if (!(bit < SGPRS ? which : which & w.exec())) continue;
      defined[k] &= ~(u64{1} << (bit & 63));
      if (bit < SGPRS) continue;
      unknown[bit - SGPRS] = which & w.exec();
      origin[bit - SGPRS] = origin_;
    }
}

// Execute an instruction twice, with other values in what is unknown: the lanes whose results differ depend on it.
u64 Tracker::try_unknown(Wave& w, const Instruction& i) {
  std::vector<u32> touched;
  for (u32 bit = 0; bit < 64 * WORDS; ++bit)
    if ((i.writes[bit >> 6] | (i.reads[bit >> 6] & ~defined[bit >> 6])) >> (bit & 63) & 1) touched.push_back(bit);
  std::vector<u32> before(touched.size() * LANES), once = before;
  const auto move = [&](std::vector<u32>& kept, bool back) {
    for (std::size_t n = 0; n < touched.size(); ++n) {
      const u32 bit = touched[n], size = bit < SGPRS ? 4 : 4 * LANES;
      u32* reg = bit < SGPRS ? &w.s[bit] : w.v[bit - SGPRS];
      std::memcpy(back ? reg : &kept[n * LANES], back ? &kept[n * LANES] : reg, size);
    }
  };
  const u32 scc = w.scc;
  const Handler handler = reinterpret_cast<Handler>(i.handler);
  move(before, false);
  handler(w, i);
  move(once, false);
  move(before, true);
  for (const u32 bit : touched) {
    if (defined[bit >> 6] >> (bit & 63) & 1 || !(i.reads[bit >> 6] >> (bit & 63) & 1)) continue;
    if (bit < SGPRS) w.s[bit] = ~w.s[bit];
    for (u32 l = 0; bit >= SGPRS && l < LANES; ++l)
      if (lane_on(unknown[bit - SGPRS], l)) w.v[bit - SGPRS][l] ^= ~u32{0};
  }
  handler(w, i);
  u64 lanes = 0;
  for (std::size_t n = 0; n < touched.size(); ++n) {
    const u32 bit = touched[n];
    if (!(i.writes[bit >> 6] >> (bit & 63) & 1)) continue;
    if (bit < SGPRS) lanes |= w.s[bit] != once[n * LANES] ? ~u64{0} : 0;
    for (u32 l = 0; bit >= SGPRS && l < LANES; ++l)
      lanes |= static_cast<u64>(w.v[bit - SGPRS][l] != once[n * LANES + l]) << l;
  }
  move(before, true);
  w.scc = scc;
  return lanes;
}

// What was read of LDS that nobody wrote is unknown.
void Tracker::read_unwritten(const Instruction& i, u32 number) {
  for (u32 n = 0; n < 4; ++n) {
    const u64 lanes = unwritten[n];
    unwritten[n] = 0;
    const u32 bit = first_bit(i.o[0]) + n;
    if (!lanes || i.o[0].kind != VGPR || !(i.writes[bit >> 6] >> (bit & 63) & 1)) continue;
    defined[bit >> 6] &= ~(u64{1} << (bit & 63));
    unknown[bit - SGPRS] = lanes;
    origin[bit - SGPRS] = number;
  }
}

void Tracker::issue(Wave& w, const Instruction& i) {
  InFlight op{};
  op.instruction = static_cast<u32>(&i - w.group->run->code);
  op.exec = w.exec();
  op.active = op.exec != 0 || i.flight == SMEM_LOAD;
  op.direct = i.flight == LDS_DMA;
  switch (i.flight) {
    case VM_LOAD: case VM_STORE: case LDS_DMA: op.vm = Owes::ORDERED; break;
    case FLAT_ANY: op.vm = op.lgkm = Owes::UNORDERED; break;
    case LDS_ANY: op.lgkm = Owes::ORDERED; break;
    default: op.lgkm = Owes::UNORDERED;
  }
  op.owed_vm = op.vm != Owes::NOTHING;
  op.owed_lgkm = op.lgkm != Owes::NOTHING;
  op.unordered = op.vm == Owes::UNORDERED || op.lgkm == Owes::UNORDERED;
  op.vm_issued = vm_issued += op.vm == Owes::ORDERED;
  op.lgkm_issued = lgkm_issued += op.lgkm == Owes::ORDERED;
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
  if (check) read_unwritten(i, op.instruction);
  if (late && !deferred.empty()) {
    op.pieces = std::make_unique<std::vector<Piece>>(std::move(deferred));
    deferred.clear();
    if (!op.direct)
      for (const Piece& piece : *op.pieces)
        for (u32 word = piece.at / 4; word <= (piece.at + piece.size - 1) / 4; ++word) ++on_its_way[word];
  }
  ops.push_back(std::move(op));
  wait(w, VM_MOST, LGKM_MOST);
}

void Tracker::wait(Wave& w, u32 vm, u32 lgkm, u32 by) {
  mark(w, by, WAIT_EXECUTED);
  if (by != NOWHERE && !proven.empty() && written(w, by)) take_over(vm, lgkm, by);
  u32 vm_ordered = 0, lgkm_ordered = 0;
  bool retired = false;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    vm_ordered += op->vm == Owes::ORDERED;
    lgkm_ordered += op->lgkm == Owes::ORDERED;
    const Owes vm_before = op->vm, lgkm_before = op->lgkm;
    if (op->vm == Owes::ORDERED ? vm_ordered > vm : vm == 0) op->vm = Owes::NOTHING;
    if (op->lgkm == Owes::ORDERED ? lgkm_ordered > lgkm : lgkm == 0) op->lgkm = Owes::NOTHING;
    const bool half = op->owed_vm && op->owed_lgkm && (op->vm != vm_before || op->lgkm != lgkm_before);
    if (half) mark(w, by, WAIT_USED);  // of two counters, each may have a wait of its own
    retired |= op->vm == Owes::NOTHING && op->lgkm == Owes::NOTHING;
  }
  if (!retired) return;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    if (ops[k].vm == Owes::NOTHING && ops[k].lgkm == Owes::NOTHING) {
      if (ops[k].pieces && !ops[k].direct)  // not before those that are older
        for (std::size_t older = 0; older < kept; ++older)
          if (!ops[older].direct) land(w, ops[older]);
      retire(w, ops[k]);
      prove(w, ops[k], by);
    } else {
      if (kept != k) ops[kept] = std::move(ops[k]);
      ++kept;
    }
  }
  ops.resize(kept);
  note_registers(ops, pending);
  note_registers(proven, touched);
}

void Tracker::retire(Wave& w, InFlight& op) {
  land(w, op);  // what an atomic operation returns is known then
  if (op.late) {
    if (op.first >= SGPRS) {
      for (u32 r = 0; r < op.registers; ++r)
        for (u32 l = 0; l < LANES; ++l)
          if (lane_on(op.exec, l)) w.v[op.first - SGPRS + r][l] = op.late[r * LANES + l];
    } else {
      std::memcpy(&w.s[op.first], op.late.get(), 4 * op.registers);
    }
  }
  if (op.lds_write && w.group->shadow) w.group->shadow->complete(op.lds_write, w.group->round);
}

// Bring what an operation writes to LDS.
void Tracker::land(Wave& w, InFlight& op) {
  if (!op.pieces) return;
  for (const Piece& piece : *op.pieces) {
    u8* place = &w.group->lds[piece.at];
    if (piece.change) {
      u32 old[2];
      piece.change(place, piece.data, reinterpret_cast<u8*>(old));
      if (op.late)
        for (u32 r = 0; r < op.registers; ++r) op.late[r * LANES + piece.lane] = old[r];
    } else {
      std::memcpy(place, piece.data, piece.size);
    }
    if (op.direct) continue;
    for (u32 word = piece.at / 4; word <= (piece.at + piece.size - 1) / 4; ++word) --on_its_way[word];
  }
  op.pieces.reset();
}

void Tracker::settle(Wave& w, const u32* at, u64 mask, u32 size) {
  if (!late || ops.empty()) return;
  bool met = false;
  for (u64 rest = mask; rest && !met; rest &= rest - 1) {
    const u32 l = static_cast<u32>(std::countr_zero(rest));
    for (u32 word = at[l] / 4; word <= (at[l] + size - 1) / 4; ++word) met |= on_its_way[word] != 0;
  }
  if (!met) return;
  for (InFlight& op : ops)
    if (!op.direct) land(w, op);
}

Shadow::Shadow(u32 bytes, u32 shift_, bool late) : shift(shift_) {
  const u32 pieces = (bytes >> shift) + 16;
  last.assign(pieces, 0);
  readers.assign(pieces, 0);
  reader.assign(pieces, 0);
  known.assign(pieces, 0);
  if (late) issued.assign(bytes, 0);
}

void Shadow::clear() {
  std::fill(last.begin(), last.end(), 0);
  std::fill(readers.begin(), readers.end(), 0);
  std::fill(known.begin(), known.end(), 0);
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

void Shadow::changed(u32 at, u32 size, const void* data) {
  if (!issued.empty()) std::memcpy(&issued[at], data, size);
}

void Shadow::write(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, const u8* data, bool unknown) {
  const u8* now = issued.empty() ? w.group->lds.data() : issued.data();
  const u32 me = 1u << w.number, round = (w.group->round & 0xffff) << 16;
  const bool atomic = data == nullptr;
  for (u32 piece = at >> shift; piece <= (at + size - 1) >> shift; ++piece) {
    const u32 before = last[piece], seen = readers[piece];
    const bool others_read = (seen & 0xffff0000) == round && (seen & 0xffff & ~me);
    if (others_read || before >= floor) {
      const u32 from = piece << shift > at ? piece << shift : at;
      const u32 to = ((piece + 1) << shift) < at + size ? (piece + 1) << shift : at + size;
      const bool same = data && std::memcmp(now + from, data + (from - at), to - from) == 0;
      if (others_read && !same) race(w, i, lane, piece, reader[piece], NOWHERE);
      if (before >= floor) {
        const Write& other = writes[before - first];
        const bool ordered = other.completed != PENDING && other.completed < w.group->round;
        if (other.wave != w.number && !ordered && !same && !(atomic && other.atomic))
          race(w, i, lane, piece, other.instruction, other.wave);
      }
    }
    last[piece] = number;
    known[piece] = !unknown && (!atomic || known[piece]);
  }
  if (data) changed(at, size, data);
}

void Shadow::write_atomic(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, bool unknown,
                          bool replaces) {
  for (u32 piece = at >> shift; piece <= (at + size - 1) >> shift; ++piece) {
    const u32 from = piece << shift > at ? (piece << shift) - at : 0;
    if (!known[piece]) w.tracker->unwritten[from / 4] |= u64{1} << lane;
    if (replaces) known[piece] = 1;
  }
  write(w, i, number, lane, at, size, nullptr, unknown);
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

void Shadow::read(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size, u32 row) {
  const u32 me = 1u << w.number, round = (w.group->round & 0xffff) << 16;
  const u32 code = static_cast<u32>(&i - w.group->run->code);
  bool waited = false;
  for (u64 rest = mask; rest; rest &= rest - 1) {
    const u32 lane = static_cast<u32>(std::countr_zero(rest));
    const u32 begin = at[lane] >> shift, end = ((at[lane] + size - 1) >> shift) + 1;
    for (u32 piece = begin; piece < end; ++piece) {
      if (last[piece] >= floor) check_read(w, i, lane, piece, waited);
      if (!known[piece]) {
        const u32 from = piece << shift > at[lane] ? (piece << shift) - at[lane] : 0;
        w.tracker->unwritten[row + from / 4] |= u64{1} << lane;
      }
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
