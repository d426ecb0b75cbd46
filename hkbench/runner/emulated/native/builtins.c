// What clang calls where host code makes a bfloat16 of a number. ROCm's hipcc links it from clang's own library, which
// Debian's clang does not bring along; libgcc has it from version 13 on.
#include <stdint.h>
#include <string.h>

#ifdef __FLT16_MANT_DIG__

// A bfloat16 is returned as a _Float16 is, in the low half of a vector register; older compilers know only the latter.
static _Float16 returned(uint32_t bits) {
  const uint16_t half = (uint16_t)bits;
  _Float16 value;
  memcpy(&value, &half, sizeof value);
  return value;
}

// Rounds to the nearest, ties to even; a NaN stays one.
__attribute__((weak)) _Float16 __truncsfbf2(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return returned((bits >> 16) | 0x40);
  return returned((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// By way of a float that is rounded to odd, so that nothing is rounded twice.
__attribute__((weak)) _Float16 __truncdfbf2(double number) {
  float near = (float)number;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if ((double)near != number && number == number && !(bits & 1)) {
    bits += __builtin_fabs(near) > __builtin_fabs(number) ? -1u : 1u;  // the neighbour on the other side, which is odd
    memcpy(&near, &bits, sizeof near);
  }
  return __truncsfbf2(near);
}

#endif
