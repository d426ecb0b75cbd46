// how: c++ --gpu-fast-math
// link: refused_flag
int one() { return 1; }
