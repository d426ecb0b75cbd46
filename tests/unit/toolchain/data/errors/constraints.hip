// how: gfx942
#include <hip/hip_runtime.h>
__global__ void address(int* x) {
    asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(x[0]) : "l"(x));  // -> ptx_asm
}
