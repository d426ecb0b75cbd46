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
  bool active;           // some lane took part
  u16 first, registers;  // its destination, in the numbering of Instruction::writes
  u32 lds_write;         // its number in the workgroup's Shadow; 0: none
  u64 exec;
  std::unique_ptr<u32[]> late;                             // late delivery: what the registers will hold
  std::unique_ptr<std::vector<std::pair<u32, u32>>> words;  // late delivery: what LDS will hold
};

struct Tracker {
  bool check, late;
  std::vector<InFlight> ops;  // oldest first
  u64 pending[WORDS] = {}, defined[WORDS] = {};
  u32 lds_write = 0;  // of the instruction at work
  std::vector<std::pair<u32, u32>> deferred;

  void before(Wave& w, const Instruction& i);
  void issue(Wave& w, const Instruction& i);
  void wait(Wave& w, u32 vm, u32 lgkm);
  // Which waits would have proven `op`: the largest counts.
  void missing(const InFlight& op, u32& vm, u32& lgkm) const;

 private:
  void conflict(Wave& w, const Instruction& i);
  void undefined(Wave& w, const Instruction& i);
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

  Shadow(u32 bytes, u32 shift_);
  void clear();
  u32 begin_write(const Wave& w, const Instruction& i, bool atomic, bool direct);
  // One lane: call before LDS changes. `data`: what will stand there, null for an atomic.
  void write(Wave& w, const Instruction& i, u32 number, u32 lane, u32 at, u32 size, const u8* data);
  void read(Wave& w, const Instruction& i, const u32* at, u64 mask, u32 size);
  void complete(u32 number, u32 round);
  void next_round(u32 round);

 private:
  void check_read(Wave& w, const Instruction& i, u32 lane, u32 piece, bool& waited);
  void race(Wave& w, const Instruction& i, u32 lane, u32 piece, u32 cause, u32 wave);
};

}  // namespace hkb
