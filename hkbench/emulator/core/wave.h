// The state of a wave and of its workgroup, and what handlers do with it.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "abi.h"

namespace hkb {

struct Wave;
struct Workgroup;
struct Tracker;
struct Shadow;
using Handler = void (*)(Wave&, const Instruction&);

// A row of the table of mnemonics. `signature`: hkbench/emulator/operands.py reads it.
struct Row {
  const char* name;
  Handler handler;
  const char* signature;
};
struct Rows {
  const Row* first;
  std::size_t count;
};

// The addresses that kernels may touch, in order. Not changed while a launch runs.
struct Memory {
  std::vector<Range> ranges;
  const Range* find(u64 address) const;
};

// A launch: what all of its workgroups share.
struct Run {
  const LaunchRecord* launch;
  const Instruction* code;
  u32 length;  // of code, without the instruction that ends a run off its end
  const Memory* memory;
  std::atomic<u64> executed{0};
  std::atomic<u32> refused{0};
  u32 refused_at = 0;
  u64 detail = 0;
  bool traced = false;  // whether whose bytes they are is noted
  std::atomic<u64> restless{0};
  std::mutex stripes[64];  // where it is: see Turn
  std::mutex guard;
  std::vector<FaultRecord> faults;

  void refuse(u32 why, u32 at, u64 detail_ = 0);
  void report(const FaultRecord& fault);
};

// High words of addresses that are not of global memory: no user address of the host has them.
inline constexpr u32 SHARED_APERTURE = 0x00010000, PRIVATE_APERTURE = 0x00020000;

// Late delivery: what is on its way to LDS.
struct Piece {
  u32 at, size;
  u8 data[16];  // bytes that are written, or the values of an atomic operation
  // What an atomic operation makes of the place; what was there comes to `old`. Null: the bytes are written.
  void (*change)(u8* place, const u8* data, u8* old) = nullptr;
  u32 lane = 0;
};

enum WaveState : u32 { RUNNING, AT_BARRIER, ENDED };

struct alignas(64) Wave {
  u32 v[VGPRS][LANES];
  alignas(16) u32 s[SGPRS];
  u32 scc, pc, state, mode, number, flush;  // flush: MODE has f32 denormals flushed
  u64 clock;
  Workgroup* group;
  Tracker* tracker;  // null when nothing is tracked
  std::vector<u8> scratch;
  const Range* last;  // that an access fell into
  std::vector<Piece>* deferred;  // late delivery: what the instruction at work writes to LDS

  u64 pair(u32 i) const {
    u64 value;
    std::memcpy(&value, &s[i], 8);
    return value;
  }
  void set_pair(u32 i, u64 value) { std::memcpy(&s[i], &value, 8); }
  u64 exec() const { return pair(EXEC); }
  void set_mode(u32 value, const Instruction& at);
  void stop(u32 why, const Instruction& at, u64 detail = 0);
};

struct Workgroup {
  Run* run;
  u32 id[3];
  std::vector<u8> lds;
  u32 round = 0;  // barriers that all have passed
  std::vector<Wave*> waves;
  Shadow* shadow = nullptr;  // null when nothing is tracked
};

FaultRecord fault_of(const Wave& w, const Instruction& i, u32 kind);
void bounds_fault(Wave& w, const Instruction& i, u64 address, u32 size, u32 lane, u32 memory);

// Which of the lanes in `mask` may touch `size` bytes at their address; the others are reported.
u64 allowed(Wave& w, const Instruction& i, const u64* address, u64 mask, u32 size, bool write);
void mark_written(Wave& w, u64 address, u32 size, const void* bytes);

inline bool lane_on(u64 mask, u32 lane) { return mask >> lane & 1; }

}  // namespace hkb
