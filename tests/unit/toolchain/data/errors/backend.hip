// how: gfx942
#include <hip/hip_runtime.h>
__global__ void too_much(float* x) {  // -> lds_overflow
    __shared__ float s[20000];
    s[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = s[threadIdx.x + 1];
}
__global__ void ptx(int* x) {
    asm volatile("cp.async.commit_group;");  // -> ptx_asm
}
__global__ void cdna4_instruction(int* x) {
    int v;
    asm volatile("v_cvt_pk_bf16_f32 %0, %1, %2" : "=v"(v) : "v"(x[0]), "v"(x[1]));  // -> target_feature
    x[1] = v;
}
__global__ void counter() {
    asm volatile("s_waitcnt vmcnt(0) lgkm(0)");  // -> asm_operand
}
