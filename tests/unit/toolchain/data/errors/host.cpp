// how: c++ -fsyntax-only
#include <cstdint>
#include <c10/core/Device.h>
void launch(float* x, int n);
__global__ void k(float* x) {}  // -> device_code_in_cpp
void stream(float* x, cudaStream_t s);  // -> runtime_name_in_cpp
void forward(float* x) {
    auto s = c10::cuda::getCurrentCUDAStream();  // -> torch_stream
    launch(x);  // -> call_arguments
    std::queue<int> text;  // -> missing_include
}
template <class T> float total(T x) {
    return x.sum();  // -> no_member
}
float use(float* x) { return total(x[0]); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {  // -> pybind_header
    m.def("forward", &forward);
}
