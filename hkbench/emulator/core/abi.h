// What crosses between Python and the executor. hkbench/emulator/encode.py and executor.py write the same layouts.
#pragma once
#include <cstdint>

namespace hkb {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

enum Kind : u8 { ABSENT, VGPR, SGPR, CONSTANT, SPECIAL };
// Registers of a VGPR operand are counted v0..v255, a0..a255.
inline constexpr u32 VGPRS = 512, SGPRS = 128, LANES = 64, OPERANDS = 6, WORDS = 10;
inline constexpr u32 VCC = 106, M0 = 124, EXEC = 126;
enum SpecialSource : u16 { SOURCE_VCCZ, SOURCE_EXECZ, SOURCE_SCC };

enum OperandFlag : u16 { NEG = 1, ABS = 2, OP_SEL = 4, OP_SEL_HI = 8, NEG_HI = 16, SEXT = 32 };
inline constexpr u32 SELECT_SHIFT = 8;
enum Select : u8 { DWORD, BYTE_0, BYTE_1, BYTE_2, BYTE_3, WORD_0, WORD_1 };

struct Operand {
  u16 index;
  u8 kind, width;  // width: registers of 32 bits
  u16 flags;       // OperandFlag, and from bit 8 on the Select of SDWA
  u16 spare;
  u64 value;  // of a CONSTANT
};

enum Modifier : u32 { OFFEN = 1, LDS = 2, SC0 = 4, WAIT_VM = 8, WAIT_LGKM = 16 };
enum DppControl : u16 {
  QUAD_PERM = 0x000, ROW_SHL = 0x100, ROW_SHR = 0x110, ROW_ROR = 0x120, WAVE_SHL = 0x130, WAVE_ROL = 0x134,
  WAVE_SHR = 0x138, WAVE_ROR = 0x13c, ROW_MIRROR = 0x140, ROW_HALF_MIRROR = 0x141, ROW_BCAST15 = 0x142,
  ROW_BCAST31 = 0x143, ROW_NEWBCAST = 0x150
};
// What an instruction leaves in flight: which counters own it, and whether they count it in order.
enum Flight : u8 { NO_FLIGHT, VM_LOAD, VM_STORE, FLAT_ANY, LDS_ANY, SMEM_LOAD, LDS_DMA };
// What may not be an undefined register. TRIED: of which lanes the result depends on one is found by trying it.
enum Sink : u8 { SINK_ADDRESS = 1, SINK_DATA = 2, TRIED = 4 };

struct Instruction {
  u64 handler;  // written by the executor
  u16 op;
  u8 operands, omod;
  u8 clamp, sdwa, dst_sel, dst_unused;
  u16 dpp_ctrl;
  u8 dpp, row_mask, bank_mask, bound_ctrl, flight, sink;
  u32 modifiers;
  i32 offset, offset1, target;
  u32 imm, address;
  Operand o[OPERANDS];
  u64 reads[WORDS], writes[WORDS];  // bit sets: 0..127 SGPRs, then the 512 VGPRs
};

inline constexpr u32 BLOCK = 14;
struct Range {
  u64 begin, end;
  u8* written;  // one byte for each two of the range, then one for each 1 << BLOCK of those; null: nobody asks
  u8* trace;    // trace.h; null: nobody asks
  u32 writable, spare;
};

struct LaunchRecord {
  u64 entry;  // index of an instruction
  u64 image;  // address of the code object's image
  u64 kernarg, dispatch, queue;
  u32 grid[3], block[3];
  u32 lds, scratch;  // bytes: of a workgroup, of a lane
  u32 mode, user_sgprs, properties, ids;
  u32 check, late, threads, shift;  // shift: log2 of the bytes that the LDS checker tells apart
  u64 seed, budget;
  u64 deadline;  // by the monotonic clock, in nanoseconds; 0: none
  u8* waits;     // Waited of each instruction; null: nobody asks
};

// What became of a wait. It was of use if something that it proved was touched before another wait of the source would
// have proved it. WRITTEN: by who starts the run; a wait of the source, not of the compiler.
enum Waited : u8 { WAIT_EXECUTED = 1, WAIT_USED = 2, WAIT_WRITTEN = 4 };

enum FaultKind : u32 { FAULT_WAIT = 1, FAULT_RACE, FAULT_BOUNDS, FAULT_UNINITIALIZED };
enum Counter : u32 { COUNTER_VM = 1, COUNTER_LGKM = 2 };
inline constexpr u32 NOWHERE = 0xffffffff;

struct FaultRecord {
  u32 kind, use, cause, cause_wave;  // use, cause: instructions; NOWHERE: there is none
  u32 counters, vm, lgkm;            // which waits are missing, and for how many they would have to wait
  u32 wave, lane, reg, workgroup[3], memory;  // memory: 0 global, 1 LDS, 2 scratch, 3 kernel arguments or constants
  u64 address, size, count;
};

struct OutcomeRecord {
  u64 instructions, faults;
  u64 restless;  // bytes that the host changed while kernels read them
  u32 refused, refused_at;  // 0 no, 1 the instruction's own reason, 2 budget, 3.. see executor.py
  u64 detail;
};

enum Refusal : u32 {
  REFUSED_NOT = 0, REFUSED_MARKED, REFUSED_BUDGET, REFUSED_JUMP, REFUSED_MODE, REFUSED_TRAP, REFUSED_OPERAND,
  REFUSED_DEADLOCK, REFUSED_RESOURCE, REFUSED_TIME, REFUSED_SIGNALLING
};

// Of MODE. With IEEE, a minimum or maximum of a signalling NaN is that NaN, quiet; with DX10_CLAMP, NaN is clamped to 0.
inline constexpr u32 MODE_DX10_CLAMP = 1 << 8, MODE_IEEE = 1 << 9;

// One wave as tests/support/emulator_step.py has it.
struct StepRecord {
  u32* sgpr;
  u32* vgpr;
  u32* agpr;
  u8* lds;
  u32 lds_size, scc, mode, spare;
};

}  // namespace hkb
