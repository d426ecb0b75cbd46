// What run.cpp offers to entry.cpp.
#pragma once
#include "wave.h"

namespace hkb {

Rows float32_rows();
Rows int32_rows();
Rows wide_rows();
Rows half_rows();
Rows convert_rows();
Rows small_rows();
Rows compare_rows();
Rows across_rows();
Rows scalar_rows();
Rows control_rows();
Rows vector_memory_rows();
Rows lds_rows();
Rows matrix_rows();
Rows dot_rows();
Rows scaled_rows();

void execute(Run& run);
// Run all of the code on one wave whose state the record has, and write that back.
void step(Run& run, StepRecord& record);

}  // namespace hkb
