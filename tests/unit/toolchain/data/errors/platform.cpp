// how: c++ -fsyntax-only
#include <hip/hip_runtime_api.h>  // -> hip_platform
