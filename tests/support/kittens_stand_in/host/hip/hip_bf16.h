// HIP's 16-bit types, as far as a launcher looks at them.
#pragma once
#include <cstdint>

struct __hip_bfloat16 { std::uint16_t bits; };
