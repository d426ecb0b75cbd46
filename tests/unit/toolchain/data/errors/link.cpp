// how: c++ -shared -fPIC -Wl,-z,defs
// link: launcher_mismatch
void launch(float* x, int n);
void forward(float* x) { launch(x, 1); }
