// how: gfx942
#include <hip/hip_runtime.h>
typedef float float4_t __attribute__((ext_vector_type(4)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
__global__ void cdna4_mfma(float4_t* c, const bf16x8* a) {
    c[0] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(a[0], a[1], c[0], 0, 0, 0);  // -> target_feature
}
