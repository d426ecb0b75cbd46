// HIP's runtime on CUDA's, as far as a launcher uses it.
#pragma once
#include <cuda_runtime.h>

using hipStream_t = cudaStream_t;
using hipError_t = cudaError_t;
constexpr hipError_t hipSuccess = cudaSuccess;

inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline const char *hipGetErrorName(hipError_t error) { return cudaGetErrorName(error); }
inline const char *hipGetErrorString(hipError_t error) { return cudaGetErrorString(error); }
