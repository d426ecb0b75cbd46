// how: gfx942 -fsyntax-only
#include <mma.h>  // -> cuda_header
