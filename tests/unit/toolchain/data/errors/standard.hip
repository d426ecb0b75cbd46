// how: gfx942 -fsyntax-only -std=c++17
template <class T> concept any = true;  // -> cxx_standard
