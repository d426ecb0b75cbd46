// What is in flight. A wave's loads own their registers until a wait proves them (AMD's "Instruction Set Architecture",
// chapter on data dependency: VM_CNT and LGKM_CNT), and LDS is owned by whoever wrote or read it since the last barrier.
#pragma once
#include <memory>
#include <vector>

#include "wave.h"

namespace hkb {

inline constexpr u32 NO_WAIT = 0xffff;
inline constexpr u32 VM_MOST = 63, LGKM_MOST = 15;  // a counter that is full stalls the next operation

// How an operation counts in one counter. Unordered ones (scalar loads, flat) return whenever they like.
enum class Owes : u8 { NOTHING, ORDERED, UNORDERED };

struct InFlight {
  u32 instruction;
  Owes vm, lgkm;
  bool owed_vm, owed_lgkm, unordered;  // when it was issued
  u64 vm_issued, lgkm_issued;   // see Proven
  bool active;           // some lane took part
  bool direct;           // loads from memory straight into LDS: in no order with the wave's other accesses to it
  u16 first, registers;  // its destination, in the numbering of Instruction::writes
  u32 lds_write;         // its number in the workgroup's Shadow; 0: none
  u64 exec;
  std::unique_ptr<u32[]> late;                             // late delivery: what the registers will hold
  std::unique_ptr<std::vector<Piece>> pieces;              // late delivery: what LDS will hold
};

// A load that a wait proved and whose registers were not touched since.
struct Proven {
  u32 by;                // the last wait that would have proved it
  bool vm, lgkm;         // which counters owed it ...
  bool unordered;        // ... and whether they count it in order
  u64 vm_issued, lgkm_issued;  // of how many ordered operations it was the last, by counter
  u16 first, registers;
};

struct Tracker {
  bool check, late;
  std::vector<InFlight> ops;  // oldest first
  std::vector<Proven> proven;
  u64 touched[WORDS] = {};                // the registers of `proven`
  u64 vm_issued = 0, lgkm_issued = 0;     // ordered operations so far
  u64 pending[WORDS] = {}, defined[WORDS] = {};
  u64 unknown[VGPRS];         // of a register that is not `defined`: its lanes of which nothing is known
  u32 origin[VGPRS];          // the instruction that read them from LDS; NOWHERE: nobody wrote the register
  u64 unwritten[4] = {};      // what the instruction at work reads: lanes whose bytes in LDS nobody wrote, by register
  u32 lds_write = 0;          // of the instruction at work
  std::vector<Piece> deferred;
  std::vector<u16> on_its_way;  // late delivery: for each word of LDS, how many of this wave's writes are in flight

  void before(Wave& w, const Instruction& i);
  void issue(Wave& w, const Instruction& i);
  // `by`: the instruction that waits; NOWHERE: none does, a counter is full or the wave ends.
  void wait(Wave& w, u32 vm, u32 lgkm, u32 by = NOWHERE);
  // Which waits would have proven `op`: the largest counts.
  void missing(const InFlight& op, u32& vm, u32& lgkm) const;
  // Late delivery: LDS keeps a wave's accesses in order, so what it reads has its own writes.
  void settle(Wave& w, const u32* at, u64 mask, u32 size);
  // The lanes of `o` of which nothing is known.
  u64 unknown_lanes(const Operand& o) const;

 private:
  void conflict(Wave& w, const Instruction& i);
  // The first register of `op` that the instruction may not touch before a wait; NOWHERE: none.
  u32 owed(const Instruction& i, const InFlight& op) const;
  void touch(Wave& w, const Instruction& i);
  void prove(Wave& w, const InFlight& op, u32 by);
  void take_over(u32 vm, u32 lgkm, u32 by);
  void undefined(Wave& w, const Instruction& i);
  void sink(Wave& w, const Instruction& i, const Operand& o);
  u64 try_unknown(Wave& w, const Instruction& i);
  void spoil(Wave& w, const Instruction& i, u64 lanes, u64 lower, u32 origin_);
  void read_unwritten(const Instruction& i, u32 number);
  void land(Wave& w, InFlight& op);
  void retire(Wave& w, InFlight& op);
};

// What is known of LDS, for each 1 << shift bytes: who wrote it last, and who has read it since the last barrier.
struct Shadow {
  struct Write {
    u32 instruction, completed;  // the round in which a wait proved it; PENDING
    u16 wave;
    bool atomic, direct;  // direct: loaded from memory straight into LDS
  };
  static constexpr u32 PENDING = 0xffffffff;
  u32 shift;
  u32 first = 1, floor = 1;  // number of writes[0]; all below `floor` were complete before the last barrier
  std::vector<Write> writes;
  std::vector<u32> last;     // number of the last write of each piece; 0: none
  std::vector<u32> readers;  // round << 16 | a bit for each wave, of each piece
  std::vector<u32> reader;   // instruction of the last read of each piece
  std::vector<u8> known;     // whether something that is known was written to each piece
  std::vector<u8> issued;    // late delivery: LDS with what is on its way

  Shadow(u32 bytes, u32 shift_, bool late);
  void clear();
  u32 begin_write(const Wave& w, const Instruction& i, bool atomic, bool direct);
  // One lane: call before LDS changes. `data`: what will stand there.
  // `unknown`: whether the lane stores what nobody wrote.
  void write(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, const u8* data, bool unknown);
  // `row`: the first of the instruction's registers that what is read comes to.
  void read(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size, u32 row);
  // The same for an atomic operation, whose result the caller notes in `issued`. `replaces`: whatever was there before.
  void write_atomic(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, bool unknown, bool replaces);
  void changed(u32 at, u32 size, const void* data);
  void complete(u32 number, u32 round);
  void next_round(u32 round);

 private:
  void check_read(Wave& w, const Instruction& i, u32 lane, u32 piece, bool& waited);
  void race(Wave& w, const Instruction& i, u32 lane, u32 piece, u32 cause, u32 wave);
};

}  // namespace hkb
