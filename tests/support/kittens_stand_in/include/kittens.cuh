// Stands for HipKittens where the binding is tested and the library is not: layouts of global memory as the binding
// knows them, and vectors that one lane holds.
#pragma once
#include <hip/hip_runtime.h>
#include <hip_bf16.h>
#include <hip_fp16.h>

#include <concepts>
#include <cstdint>
#include <stdexcept>

namespace kittens {

using bf16 = __hip_bfloat16;
using half = __half;
struct fp8e4m3 { std::uint8_t bits; };

namespace ducks::gl {
struct identifier {};
template <typename T> concept all = std::same_as<typename T::identifier, identifier>;
}  // namespace ducks::gl

template <typename Element, int B, int D, int R, int C> struct gl {
  using identifier = ducks::gl::identifier;
  using dtype = Element;
  static constexpr int __b__ = B, __d__ = D, __r__ = R, __c__ = C;
  Element *raw_ptr;
  int sizes[4];
  __host__ __device__ gl(Element *data, int b, int d, int r, int c) : raw_ptr(data), sizes{b, d, r, c} {}
  __host__ __device__ int batch() const { return sizes[0]; }
  __host__ __device__ int depth() const { return sizes[1]; }
  __host__ __device__ int rows() const { return sizes[2]; }
  __host__ __device__ int cols() const { return sizes[3]; }
};

template <ducks::gl::all Layout> Layout make_gl(std::uint64_t address, int b, int d, int r, int c) {
  if (Layout::__c__ > 0 && c != Layout::__c__) throw std::runtime_error("other columns than the type has");
  return Layout(reinterpret_cast<typename Layout::dtype *>(address), b, d, r, c);
}

template <int N> struct rv_fl { float data[N]; };
template <int N> __device__ void load(rv_fl<N> &v, const float *x) {
  for (int i = 0; i < N; ++i) v.data[i] = x[i];
}
template <int N> __device__ void store(float *x, const rv_fl<N> &v) {
  for (int i = 0; i < N; ++i) x[i] = v.data[i];
}

}  // namespace kittens
