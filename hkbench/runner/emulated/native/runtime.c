// HIP's functions for devices, memory, streams and errors. Work is done when it is asked for, so that streams and events
// have nothing to do; no clock is read.
#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAVE = 64, MAX_THREADS = 1024, THREADS_OF_A_UNIT = 2048, REGISTERS = 65536 * 2, CACHE = 4 << 20 };
static const float MILLISECONDS = 1000.0f;  // between any two events: who measures to choose is soon done

static _Thread_local hipError_t last = hipSuccess;

hipError_t hkbench_error(hipError_t error) {
  if (error) last = error;
  return error;
}

int hkbench_refused_function(const char *name) {
  hkbench_refuse(name);
  return (int)hkbench_error(hipErrorNotSupported);
}

// --- Errors

hipError_t hipGetLastError(void) {
  const hipError_t error = last;
  last = hipSuccess;
  return error;
}
hipError_t hipExtGetLastError(void) { return hipGetLastError(); }
hipError_t hipPeekAtLastError(void) { return last; }

#define ERRORS(X) \
  X(hipSuccess, "no error") \
  X(hipErrorInvalidValue, "invalid argument") \
  X(hipErrorOutOfMemory, "out of memory") \
  X(hipErrorNotInitialized, "initialization error") \
  X(hipErrorInvalidConfiguration, "invalid configuration argument") \
  X(hipErrorMissingConfiguration, "__global__ function call is not configured") \
  X(hipErrorInvalidDeviceFunction, "invalid device function") \
  X(hipErrorNoDevice, "no ROCm-capable device is detected") \
  X(hipErrorInvalidDevice, "invalid device ordinal") \
  X(hipErrorInvalidImage, "device kernel image is invalid") \
  X(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device") \
  X(hipErrorFileNotFound, "file not found") \
  X(hipErrorInvalidHandle, "invalid resource handle") \
  X(hipErrorInvalidSymbol, "invalid device symbol") \
  X(hipErrorNotFound, "named symbol not found") \
  X(hipErrorNotReady, "device not ready") \
  X(hipErrorInvalidDevicePointer, "invalid device pointer") \
  X(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy") \
  X(hipErrorLaunchFailure, "unspecified launch failure") \
  X(hipErrorLaunchOutOfResources, "out of resources") \
  X(hipErrorPeerAccessUnsupported, "peer access is not supported between these two devices") \
  X(hipErrorNotSupported, "operation not supported") \
  X(hipErrorUnknown, "unknown error")

const char *hipGetErrorName(hipError_t error) {
#define NAME(code, text) if (error == code) return #code;
  ERRORS(NAME)
  return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) {
#define TEXT(code, text) if (error == code) return text;
  ERRORS(TEXT)
  return "unknown error";
}

hipError_t hipDrvGetErrorName(hipError_t error, const char **text) { return *text = hipGetErrorName(error), hipSuccess; }
hipError_t hipDrvGetErrorString(hipError_t error, const char **text) {
  return *text = hipGetErrorString(error), hipSuccess;
}

// --- The device

hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status) {
  (void)version, (void)flags;
  // By the plain name the library has the form of HIP 5.
  *function = dlsym(RTLD_DEFAULT, strcmp(name, "hipGetDeviceProperties") ? name : "hipGetDevicePropertiesR0600");
  if (status) *status = *function ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return hkbench_error(*function ? hipSuccess : hipErrorNotFound);
}

hipError_t hipInit(unsigned flags) { return hkbench_error(flags ? hipErrorInvalidValue : hipSuccess); }
hipError_t hipGetDeviceCount(int *count) { return *count = 1, hipSuccess; }
hipError_t hipGetDevice(int *device) { return *device = 0, hipSuccess; }
hipError_t hipSetDevice(int device) { return hkbench_error(device ? hipErrorInvalidDevice : hipSuccess); }
hipError_t hipDeviceSynchronize(void) { return hipSuccess; }
hipError_t hipDeviceReset(void) { return hipSuccess; }
hipError_t hipSetDeviceFlags(unsigned flags) { return (void)flags, hipSuccess; }
hipError_t hipGetDeviceFlags(unsigned *flags) { return *flags = 0, hipSuccess; }
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t wanted) { return (void)wanted, hipSuccess; }
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig wanted) { return (void)wanted, hipSuccess; }
hipError_t hipRuntimeGetVersion(int *version) { return *version = HIP_VERSION, hipSuccess; }
hipError_t hipDriverGetVersion(int *version) { return *version = HIP_VERSION, hipSuccess; }
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) { return (void)device, (void)peer, *can = 0, hipSuccess; }

hipError_t hipDeviceGet(hipDevice_t *made, int device) {
  *made = 0;
  return hkbench_error(device ? hipErrorInvalidDevice : hipSuccess);
}

hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device) {
  snprintf(name, bytes > 0 ? (size_t)bytes : 0, "%s", hkbench_the_gpu.name);
  return hkbench_error(device ? hipErrorInvalidDevice : hipSuccess);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  *bytes = hkbench_the_gpu.memory;
  return hkbench_error(device ? hipErrorInvalidDevice : hipSuccess);
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *into, int device) {
  if (device) return hkbench_error(hipErrorInvalidDevice);
  memset(into, 0, sizeof *into);
  snprintf(into->name, sizeof into->name, "%s", hkbench_the_gpu.name);
  snprintf(into->gcnArchName, sizeof into->gcnArchName, "gfx%d:sramecc+:xnack-", hkbench_the_gpu.arch);
  into->totalGlobalMem = hkbench_the_gpu.memory;
  into->sharedMemPerBlock = into->maxSharedMemoryPerMultiProcessor = hkbench_the_gpu.lds;
  into->sharedMemPerMultiprocessor = hkbench_the_gpu.lds;
  into->regsPerBlock = into->regsPerMultiprocessor = REGISTERS;
  into->warpSize = WAVE;
  into->maxThreadsPerBlock = MAX_THREADS;
  into->maxThreadsPerMultiProcessor = THREADS_OF_A_UNIT;
  for (int i = 0; i < 3; ++i) into->maxThreadsDim[i] = MAX_THREADS, into->maxGridSize[i] = i ? 65535 : 2147483647;
  into->multiProcessorCount = hkbench_the_gpu.compute_units;
  into->major = hkbench_the_gpu.arch / 100, into->minor = hkbench_the_gpu.arch / 10 % 10;
  into->l2CacheSize = CACHE;
  into->totalConstMem = 2147483647;
  into->memoryBusWidth = 8192;
  into->canMapHostMemory = into->unifiedAddressing = into->managedMemory = 1;
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  if (device) return hkbench_error(hipErrorInvalidDevice);
  switch (attribute) {
    case hipDeviceAttributeWarpSize: *value = WAVE; break;
    case hipDeviceAttributeMultiprocessorCount: *value = hkbench_the_gpu.compute_units; break;
    case hipDeviceAttributeMaxThreadsPerBlock:
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ: *value = MAX_THREADS; break;
    case hipDeviceAttributeMaxGridDimX: *value = 2147483647; break;
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ: *value = 65535; break;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: *value = THREADS_OF_A_UNIT; break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeSharedMemPerBlockOptin:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *value = (int)hkbench_the_gpu.lds; break;
    case hipDeviceAttributeMaxRegistersPerBlock:
    case hipDeviceAttributeMaxRegistersPerMultiprocessor: *value = REGISTERS; break;
    case hipDeviceAttributeComputeCapabilityMajor: *value = hkbench_the_gpu.arch / 100; break;
    case hipDeviceAttributeComputeCapabilityMinor: *value = hkbench_the_gpu.arch / 10 % 10; break;
    case hipDeviceAttributeL2CacheSize: *value = CACHE; break;
    case hipDeviceAttributeCooperativeLaunch: *value = 0; break;
    case hipDeviceAttributeUnifiedAddressing:
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeCanMapHostMemory: *value = 1; break;
    default: return hkbench_error(hipErrorInvalidValue);
  }
  return hipSuccess;
}

// --- Memory

static hipError_t allocated(void **pointer, size_t bytes) {
  if (!pointer) return hkbench_error(hipErrorInvalidValue);
  *pointer = bytes ? hkbench_allocate(bytes) : NULL;
  return hkbench_error(bytes && !*pointer ? hipErrorOutOfMemory : hipSuccess);
}
static hipError_t freed(void *pointer) {
  return hkbench_error(!pointer || hkbench_free(pointer) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipMalloc(void **pointer, size_t bytes) { return allocated(pointer, bytes); }
hipError_t hipFree(void *pointer) { return freed(pointer); }
hipError_t hipMallocAsync(void **p, size_t bytes, hipStream_t stream) { return (void)stream, allocated(p, bytes); }
hipError_t hipFreeAsync(void *pointer, hipStream_t stream) { return (void)stream, freed(pointer); }
hipError_t hipExtMallocWithFlags(void **p, size_t bytes, unsigned flags) { return (void)flags, allocated(p, bytes); }
hipError_t hipMallocManaged(void **p, size_t bytes, unsigned flags) { return (void)flags, allocated(p, bytes); }
hipError_t hipHostMalloc(void **p, size_t bytes, unsigned flags) { return (void)flags, allocated(p, bytes); }
hipError_t hipHostAlloc(void **p, size_t bytes, unsigned flags) { return (void)flags, allocated(p, bytes); }
hipError_t hipMallocHost(void **pointer, size_t bytes) { return allocated(pointer, bytes); }
hipError_t hipHostFree(void *pointer) { return freed(pointer); }
hipError_t hipFreeHost(void *pointer) { return freed(pointer); }
hipError_t hipHostGetDevicePointer(void **p, void *host, unsigned flags) { return (void)flags, *p = host, hipSuccess; }

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total) {
  uint64_t left, all;
  hkbench_memory(&left, &all);
  *free_bytes = left, *total = all;
  return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
  (void)kind;
  if (bytes && (!to || !from)) return hkbench_error(hipErrorInvalidValue);
  if (bytes) memmove(to, from, bytes);
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return (void)stream, hipMemcpy(to, from, bytes, kind);
}
hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return (void)stream, hipMemcpy(to, from, bytes, kind);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }
hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) { return hipMemcpy(to, from, bytes, 0); }
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return (void)stream, hipMemcpy(to, from, bytes, 0);
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       hipMemcpyKind kind) {
  for (size_t row = 0; row < height; ++row)
    if (hipMemcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind)) return last;
  return hipSuccess;
}
hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
  return (void)stream, hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

hipError_t hipMemset(void *to, int value, size_t bytes) {
  if (bytes && !to) return hkbench_error(hipErrorInvalidValue);
  if (bytes) memset(to, value, bytes);
  return hipSuccess;
}
hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  return (void)stream, hipMemset(to, value, bytes);
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) { return hipMemset(to, value, count); }
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
  return (void)stream, hipMemset(to, value, count);
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  for (size_t i = 0; i < count; ++i) ((int *)to)[i] = value;
  return hipSuccess;
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return (void)stream, hipMemsetD32(to, value, count);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *into, const void *pointer) {
  void *begin;
  size_t bytes;
  memset(into, 0, sizeof *into);
  if (!hkbench_find(pointer, &begin, &bytes)) return hkbench_error(hipErrorInvalidValue);
  into->type = hipMemoryTypeDevice, into->devicePointer = (void *)pointer;
  return hipSuccess;
}

hipError_t hipPointerGetAttribute(void *into, hipPointer_attribute attribute, hipDeviceptr_t pointer) {
  void *begin;
  size_t bytes;
  if (attribute != HIP_POINTER_ATTRIBUTE_DEVICE_POINTER || !hkbench_find(pointer, &begin, &bytes))
    return hkbench_error(hipErrorInvalidValue);
  *(hipDeviceptr_t *)into = pointer;
  return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *begin, size_t *bytes, hipDeviceptr_t pointer) {
  return hkbench_error(hkbench_find(pointer, begin, bytes) ? hipSuccess : hipErrorNotFound);
}

// --- Streams and events

static hipError_t handle(void **made) {
  *made = malloc(1);
  return *made ? hipSuccess : hkbench_error(hipErrorOutOfMemory);
}

hipError_t hipStreamCreate(hipStream_t *made) { return handle((void **)made); }
hipError_t hipStreamCreateWithFlags(hipStream_t *made, unsigned flags) { return (void)flags, handle((void **)made); }
hipError_t hipStreamCreateWithPriority(hipStream_t *made, unsigned flags, int priority) {
  return (void)flags, (void)priority, handle((void **)made);
}
hipError_t hipStreamDestroy(hipStream_t stream) { return (void)stream, hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t stream) { return (void)stream, hipSuccess; }
hipError_t hipStreamQuery(hipStream_t stream) { return (void)stream, hipSuccess; }
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return (void)stream, (void)event, (void)flags, hipSuccess;
}
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags) { return (void)stream, *flags = 0, hipSuccess; }
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) { return (void)stream, *priority = 0, hipSuccess; }
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) { return (void)stream, *device = 0, hipSuccess; }
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = *greatest = 0, hipSuccess; }
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) {
  return (void)stream, *status = hipStreamCaptureStatusNone, hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t *made) { return handle((void **)made); }
hipError_t hipEventCreateWithFlags(hipEvent_t *made, unsigned flags) { return (void)flags, handle((void **)made); }
hipError_t hipEventDestroy(hipEvent_t event) { return free(event), hipSuccess; }
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) { return (void)event, (void)stream, hipSuccess; }
hipError_t hipEventSynchronize(hipEvent_t event) { return (void)event, hipSuccess; }
hipError_t hipEventQuery(hipEvent_t event) { return (void)event, hipSuccess; }
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t begin, hipEvent_t end) {
  return (void)begin, (void)end, *milliseconds = MILLISECONDS, hipSuccess;
}
