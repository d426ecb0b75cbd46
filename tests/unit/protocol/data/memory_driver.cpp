// Stands in for a GPU's driver in tests: HIP's virtual memory management over memory files of the host. It is compiled
// against HIP's own header, so that a call or a structure that the header does not know does not get through.
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t STEP = 2 << 20;

static bool fits(const hipMemAllocationProp* prop) {
  return prop->type == hipMemAllocationTypePinned &&
         prop->requestedHandleType == hipMemHandleTypePosixFileDescriptor &&
         prop->location.type == hipMemLocationTypeDevice && prop->location.id == 1;
}

static int fd_of(hipMemGenericAllocationHandle_t handle) { return static_cast<int>(reinterpret_cast<intptr_t>(handle)); }

extern "C" {

hipError_t hipMemGetAllocationGranularity(size_t* step, const hipMemAllocationProp* prop,
                                          hipMemAllocationGranularity_flags option) {
  if (!fits(prop) || option != hipMemAllocationGranularityMinimum) return hipErrorInvalidValue;
  *step = STEP;
  return hipSuccess;
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* handle, size_t size, const hipMemAllocationProp* prop,
                        unsigned long long flags) {
  if (!fits(prop) || size % STEP || flags) return hipErrorInvalidValue;
  if (size > (1ull << 40)) return hipErrorOutOfMemory;
  int fd = memfd_create("device", 0);
  if (ftruncate(fd, static_cast<off_t>(size))) return hipErrorOutOfMemory;
  *handle = reinterpret_cast<hipMemGenericAllocationHandle_t>(static_cast<intptr_t>(fd));
  return hipSuccess;
}

hipError_t hipMemExportToShareableHandle(void* shared, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags) {
  if (type != hipMemHandleTypePosixFileDescriptor || flags) return hipErrorInvalidValue;
  *static_cast<int*>(shared) = dup(fd_of(handle));
  return hipSuccess;
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle, void* shared,
                                           hipMemAllocationHandleType type) {
  if (type != hipMemHandleTypePosixFileDescriptor) return hipErrorInvalidValue;
#ifdef BY_VALUE
  int fd = dup(static_cast<int>(reinterpret_cast<intptr_t>(shared)));
#else
  int fd = dup(*static_cast<int*>(shared));
#endif
  if (fd < 0) return hipErrorInvalidValue;
  *handle = reinterpret_cast<hipMemGenericAllocationHandle_t>(static_cast<intptr_t>(fd));
  return hipSuccess;
}

hipError_t hipMemAddressReserve(void** ptr, size_t size, size_t alignment, void* addr, unsigned long long flags) {
  if (alignment || addr || flags) return hipErrorInvalidValue;
  *ptr = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return *ptr == MAP_FAILED ? hipErrorOutOfMemory : hipSuccess;
}

hipError_t hipMemMap(void* ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags) {
  if (offset || flags) return hipErrorInvalidValue;
  void* at = mmap(ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd_of(handle), 0);
  return at == MAP_FAILED ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipMemSetAccess(void* ptr, size_t size, const hipMemAccessDesc* desc, size_t count) {
  if (count != 1 || desc->location.type != hipMemLocationTypeDevice || desc->location.id != 1 ||
      desc->flags != hipMemAccessFlagsProtReadWrite)
    return hipErrorInvalidValue;
  return mprotect(ptr, size, PROT_READ | PROT_WRITE) ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle) {
  return close(fd_of(handle)) ? hipErrorInvalidValue : hipSuccess;
}

hipError_t hipMemUnmap(void* ptr, size_t size) {
  // Stays reserved, as the driver has it; what is not mapped is refused.
  if (msync(ptr, size, MS_ASYNC)) return hipErrorInvalidValue;
  return mmap(ptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ptr ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemAddressFree(void* ptr, size_t size) { return munmap(ptr, size) ? hipErrorInvalidValue : hipSuccess; }

const char* hipGetErrorString(hipError_t error) {
  return error == hipErrorOutOfMemory ? "out of memory" : "invalid argument";
}
}
