// The functions that Python calls.
#include "entry.h"

#include <algorithm>
#include <string>

namespace hkb {
namespace {

// Marked by the decoder: what it did not understand.
void marked(Wave& w, const Instruction& i) { w.stop(REFUSED_MARKED, i, i.imm); }

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> found{{"?", marked, ""}};
    for (const Rows& part : {float32_rows(), int32_rows(), wide_rows(), half_rows(), convert_rows(), small_rows(),
                             compare_rows(), across_rows(), scalar_rows(), control_rows(), vector_memory_rows(),
                             lds_rows(), matrix_rows(), dot_rows(), scaled_rows()})
      found.insert(found.end(), part.first, part.first + part.count);
    return found;
  }();
  return all;
}

// Whatever the decoder got wrong, no operand names a register that is not there.
bool bounded(const Instruction& i, u32 length) {
  if (i.op >= rows().size() || i.operands > OPERANDS || i.target < 0 || static_cast<u32>(i.target) > length)
    return false;
  for (const Operand& o : i.o) {
    const u32 end = u32{o.index} + o.width;
    if (o.kind == VGPR && (!o.width || end > VGPRS || (o.index < VGPRS / 2 && end > VGPRS / 2))) return false;
    if (o.kind == SGPR && (!o.width || end > SGPRS)) return false;
    if (o.kind > SPECIAL) return false;
  }
  return true;
}

}  // namespace

extern "C" {

// The table of mnemonics, one "name<tab>signature" a line, in the order of `op`.
const char* hkbench_emulator_table() {
  static const std::string text = [] {
    std::string all;
    for (const Row& row : rows()) all += std::string(row.name) + "\t" + row.signature + "\n";
    return all;
  }();
  return text.c_str();
}

// Fill in the handlers of `length` instructions; one more follows them, on which a run off the end stops.
// Returns the first that is out of bounds, or `length`.
u32 hkbench_emulator_link(Instruction* code, u32 length) {
  for (u32 k = 0; k <= length; ++k) {
    if (!bounded(code[k], length)) return k;
    code[k].handler = reinterpret_cast<u64>(rows()[code[k].op].handler);
  }
  return length;
}

static void tell(Run& run, OutcomeRecord* outcome, FaultRecord* faults, u64 room) {
  outcome->instructions = run.executed.load();
  outcome->refused = run.refused.load();
  outcome->refused_at = run.refused_at;
  outcome->detail = run.detail;
  outcome->restless = run.restless.load();
  outcome->faults = std::min<u64>(run.faults.size(), room);
  std::copy(run.faults.begin(), run.faults.begin() + static_cast<std::ptrdiff_t>(outcome->faults), faults);
}

void hkbench_emulator_launch(const Instruction* code, u32 length, const LaunchRecord* launch, const Range* ranges,
                             u32 range_count, OutcomeRecord* outcome, FaultRecord* faults, u64 room) {
  Memory memory{std::vector<Range>(ranges, ranges + range_count)};
  Run run;
  run.launch = launch;
  run.code = code;
  run.length = length;
  run.memory = &memory;
  run.traced = std::any_of(memory.ranges.begin(), memory.ranges.end(), [](const Range& one) { return one.trace; });
  execute(run);
  tell(run, outcome, faults, room);
}

void hkbench_emulator_step(const Instruction* code, u32 length, const LaunchRecord* launch, const Range* ranges,
                           u32 range_count, OutcomeRecord* outcome, FaultRecord* faults, u64 room, StepRecord* record) {
  Memory memory{std::vector<Range>(ranges, ranges + range_count)};
  Run run;
  run.launch = launch;
  run.code = code;
  run.length = length;
  run.memory = &memory;
  step(run, *record);
  tell(run, outcome, faults, room);
}

// Write the runs of bytes that were written, as pairs (begin, size), of one range; returns how many there are.
u64 hkbench_emulator_written(const Range* range, u64* runs, u64 room) {
  const u64 pieces = (range->end - range->begin + 1) / 2;
  u64 count = 0;
  const u8* blocks = range->written + pieces;
  for (u64 k = 0; k < pieces;) {
    if (!(k & ((1 << BLOCK) - 1)) && !blocks[k >> BLOCK]) {  // nothing in this block
      k += 1 << BLOCK;
      continue;
    }
    const u64 end = std::min(pieces, ((k >> BLOCK) + 1) << BLOCK);
    const void* found = std::memchr(range->written + k, 1, end - k);
    if (!found) {
      k = end;
      continue;
    }
    const u64 first = static_cast<u64>(static_cast<const u8*>(found) - range->written);
    const void* after = std::memchr(range->written + first, 0, pieces - first);
    k = after ? static_cast<u64>(static_cast<const u8*>(after) - range->written) : pieces;
    if (count < room) {
      runs[2 * count] = range->begin + 2 * first;
      runs[2 * count + 1] = std::min(range->begin + 2 * k, range->end) - (range->begin + 2 * first);
    }
    ++count;
  }
  return count;
}

}  // extern "C"
}  // namespace hkb
