// how: gfx942 -fsyntax-only
#include "kittens.cuh"  // -> kittens_header
