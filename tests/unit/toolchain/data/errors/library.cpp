// how: c++ -shared -fPIC -lrocsomething
// link: missing_library
int one() { return 1; }
