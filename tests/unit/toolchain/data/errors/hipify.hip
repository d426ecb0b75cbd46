// how: hipify gfx942 -fsyntax-only
#include <hip/hip_runtime.h>
template <int N> __global__ void scale(float* x) {}
void launch(float* x, bool wide) {
    if (wide) scale<8><<<1, 64>>>(x);
    else scale<4><<<1, 64>>>(x);  // -> hipify_else
}
