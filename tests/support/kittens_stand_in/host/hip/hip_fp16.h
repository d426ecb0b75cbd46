#pragma once
#include <cstdint>

struct __half { std::uint16_t bits; };
