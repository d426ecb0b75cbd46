// Branches, calls, waits, barriers, MODE, and scalar memory.
#include "lanes.h"
#include "places.h"
#include "trace.h"
#include "tracker.h"

namespace hkb {
namespace {

void jump(Wave& w, const Instruction& i) { w.pc = static_cast<u32>(i.target); }
void scc0(Wave& w, const Instruction& i) { if (!w.scc) jump(w, i); }
void scc1(Wave& w, const Instruction& i) { if (w.scc) jump(w, i); }
void vccz(Wave& w, const Instruction& i) { if (!w.pair(VCC)) jump(w, i); }
void vccnz(Wave& w, const Instruction& i) { if (w.pair(VCC)) jump(w, i); }
void execz(Wave& w, const Instruction& i) { if (!w.exec()) jump(w, i); }
void execnz(Wave& w, const Instruction& i) { if (w.exec()) jump(w, i); }

u64 address_of(const Wave& w, u32 pc) {
  const Run& run = *w.group->run;
  return run.launch->image + run.code[pc].address;
}
// Jump to an address that a register holds: it has to be an instruction's.
void jump_to(Wave& w, const Instruction& i, u64 address) {
  const Run& run = *w.group->run;
  const u64 inside = address - run.launch->image;
  u32 low = 0, high = run.length;
  while (low < high) {
    const u32 middle = (low + high) / 2;
    if (run.code[middle].address < inside) low = middle + 1;
    else high = middle;
  }
  if (low == run.length || run.code[low].address != inside) return w.stop(REFUSED_JUMP, i, address);
  w.pc = low;
}
void getpc(Wave& w, const Instruction& i) { set_scalar64(w, i.o[0], address_of(w, w.pc)); }
void setpc(Wave& w, const Instruction& i) { jump_to(w, i, scalar64(w, i.o[0])); }
void swappc(Wave& w, const Instruction& i) {
  const u64 to = scalar64(w, i.o[1]);
  set_scalar64(w, i.o[0], address_of(w, w.pc));
  jump_to(w, i, to);
}
void call(Wave& w, const Instruction& i) {
  set_scalar64(w, i.o[0], address_of(w, w.pc));
  jump(w, i);
}

void end(Wave& w, const Instruction&) {
  if (w.tracker) w.tracker->wait(w, 0, 0);
  w.state = ENDED;
}
void barrier(Wave& w, const Instruction&) { w.state = AT_BARRIER; }
void waitcnt(Wave& w, const Instruction& i) {
  if (w.tracker)
    w.tracker->wait(w, i.modifiers & WAIT_VM ? static_cast<u32>(i.offset) : NO_WAIT,
                    i.modifiers & WAIT_LGKM ? static_cast<u32>(i.offset1) : NO_WAIT,
                    static_cast<u32>(&i - w.group->run->code));
}
void nothing(Wave&, const Instruction&) {}
void trap(Wave& w, const Instruction& i) { w.stop(REFUSED_TRAP, i, i.imm); }

// hwreg(id, offset, size) is packed into imm: id | offset << 6 | (size - 1) << 11. MODE alone is known.
void getreg(Wave& w, const Instruction& i) {
  const u32 id = i.imm & 63, offset = i.imm >> 6 & 31, size = (i.imm >> 11 & 31) + 1;
  if (id != 1) return w.stop(REFUSED_OPERAND, i);
  set_scalar32(w, i.o[0], static_cast<u32>((u64{w.mode} >> offset) & ((u64{1} << size) - 1)));
}
void setreg(Wave& w, const Instruction& i) {
  const u32 id = i.imm & 63, offset = i.imm >> 6 & 31, size = (i.imm >> 11 & 31) + 1;
  if (id != 1) return w.stop(REFUSED_OPERAND, i);
  const u32 field = static_cast<u32>(((u64{1} << size) - 1) << offset);
  w.set_mode((w.mode & ~field) | (scalar32(w, i.o[0]) << offset & field), i);
}

// Scalar loads: o[0] destination, o[1] base, o[2] a scalar offset.
template <u32 N> void load_at(Wave& w, const Instruction& i, u64 address, u64 limit) {
  address &= ~u64{3};
  u32 x[N] = {};
  const u64 inside = address < limit ? std::min<u64>(4 * N, limit - address) : 0;
  u64 lanes[LANES] = {address};
  if (inside && allowed(w, i, lanes, 1, static_cast<u32>(inside), false)) {
    std::memcpy(x, reinterpret_cast<const u8*>(address), inside);
    if (w.group->run->traced) note_read(w, address, static_cast<u32>(inside), x);
  }
  std::memcpy(&w.s[i.o[0].index], x, sizeof x);
}
u64 scalar_offset(const Wave& w, const Instruction& i) {
  return static_cast<u64>(static_cast<i64>(i.offset)) + (i.o[2].kind == SGPR ? w.s[i.o[2].index] : 0);
}
template <u32 N> void load(Wave& w, const Instruction& i) {
  load_at<N>(w, i, w.pair(i.o[1].index) + scalar_offset(w, i), ~u64{0});
}
template <u32 N> void buffer_load(Wave& w, const Instruction& i) {
  const u32* resource = &w.s[i.o[1].index];
  const u64 base = resource[0] | static_cast<u64>(resource[1] & 0xffff) << 32;
  const u64 stride = resource[1] >> 16 & 0x3fff;
  load_at<N>(w, i, base + scalar_offset(w, i), base + resource[2] * (stride ? stride : 1));
}
// A clock that counts the wave's instructions.
void memtime(Wave& w, const Instruction& i) { set_scalar64(w, i.o[0], w.clock); }

const Row table[] = {
    {"s_branch", jump, "branch"},
    {"s_cbranch_scc0", scc0, "branch scc"},
    {"s_cbranch_scc1", scc1, "branch scc"},
    {"s_cbranch_vccz", vccz, "branch vcc"},
    {"s_cbranch_vccnz", vccnz, "branch vcc"},
    {"s_cbranch_execz", execz, "branch exec"},
    {"s_cbranch_execnz", execnz, "branch exec"},
    {"s_call_b64", call, "branch =s:b64"},
    {"s_getpc_b64", getpc, "=s:b64"},
    {"s_setpc_b64", setpc, "c:b64"},
    {"s_swappc_b64", swappc, "=s:b64 c:b64"},
    {"s_endpgm", end, ""},
    {"s_barrier", barrier, ""},
    {"s_waitcnt", waitcnt, "waitcnt"},
    {"s_nop", nothing, "imm"},
    {"s_sleep", nothing, "imm"},
    {"s_setprio", nothing, "imm"},
    {"s_sethalt", trap, "imm"},
    {"s_trap", trap, "imm"},
    {"s_icache_inv", nothing, ""},
    {"s_dcache_inv", nothing, ""},
    {"s_dcache_wb", nothing, ""},
    {"s_getreg_b32", getreg, "=s:b32 hwreg"},
    {"s_setreg_b32", setreg, "hwreg c:b32"},
    {"s_setreg_imm32_b32", setreg, "hwreg c:b32"},
    {"s_load_dword", load<1>, "smem =d:1 2"},
    {"s_load_dwordx2", load<2>, "smem =d:2 2"},
    {"s_load_dwordx4", load<4>, "smem =d:4 2"},
    {"s_load_dwordx8", load<8>, "smem =d:8 2"},
    {"s_load_dwordx16", load<16>, "smem =d:16 2"},
    {"s_buffer_load_dword", buffer_load<1>, "smem =d:1 4"},
    {"s_buffer_load_dwordx2", buffer_load<2>, "smem =d:2 4"},
    {"s_buffer_load_dwordx4", buffer_load<4>, "smem =d:4 4"},
    {"s_buffer_load_dwordx8", buffer_load<8>, "smem =d:8 4"},
    {"s_buffer_load_dwordx16", buffer_load<16>, "smem =d:16 4"},
    {"s_memtime", memtime, "smem =d:2 0"},
    {"s_memrealtime", memtime, "smem =d:2 0"},
};

}  // namespace
HKB_ROWS(control_rows, table)
}  // namespace hkb
