// Stands for HIP's runtime where a launcher is compiled for the CPU: errors are what a test sets.
#pragma once
#define __host__
#define __device__

struct ihipStream_t;
using hipStream_t = ihipStream_t *;
enum hipError_t { hipSuccess = 0, hipErrorInvalidConfiguration = 9 };

inline hipError_t last_error = hipSuccess;

inline hipError_t hipGetLastError() {
  const hipError_t error = last_error;
  last_error = hipSuccess;
  return error;
}
inline const char *hipGetErrorName(hipError_t error) { return error ? "hipErrorInvalidConfiguration" : "hipSuccess"; }
inline const char *hipGetErrorString(hipError_t error) { return error ? "invalid configuration argument" : "no error"; }
