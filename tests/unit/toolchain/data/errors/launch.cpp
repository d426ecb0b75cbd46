// how: c++ -fsyntax-only
void k(float* x);
void forward(float* x) {
    k<<<1, 64>>>(x);  // -> device_code_in_cpp
}
