// how: gfx942 -fsyntax-only
#include "my_kernels.h"  // -> missing_header
