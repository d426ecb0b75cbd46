// The names of c10::cuda and at::cuda that extensions built for a ROCm PyTorch need; there is one device, one stream.
#include <ATen/hip/HIPContextLight.h>
#include <c10/hip/HIPDeviceAssertionHost.h>
#include <c10/hip/HIPException.h>
#include <c10/hip/HIPFunctions.h>
#include <c10/hip/HIPMiscFunctions.h>
#include <c10/hip/HIPStream.h>

#include "device.h"

extern "C" c10::Allocator *hkbench_allocator();

namespace c10::cuda {

DeviceIndex device_count() noexcept { return 1; }
DeviceIndex device_count_ensure_non_zero() { return 1; }
DeviceIndex current_device() { return 0; }
void set_device(DeviceIndex, const bool) {}
void device_synchronize() {}
void warn_or_error_on_sync() {}
hipError_t GetDeviceCount(int *count) { return hipGetDeviceCount(count); }
hipError_t GetDevice(DeviceIndex *device) { return *device = 0, hipSuccess; }
hipError_t SetDevice(DeviceIndex device, const bool) { return hipSetDevice(device); }
hipError_t MaybeSetDevice(DeviceIndex device) { return hipSetDevice(device); }
DeviceIndex ExchangeDevice(DeviceIndex) { return 0; }
DeviceIndex MaybeExchangeDevice(DeviceIndex) { return 0; }
void SetTargetDevice() {}
bool hasPrimaryContext(DeviceIndex device) { return device == 0; }
std::optional<DeviceIndex> getDeviceIndexWithPrimaryContext() { return 0; }

static CUDAStream the_stream() {
  return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::DEFAULT, Device(DeviceType::CUDA, 0)));
}
CUDAStream getStreamFromPool(const bool, DeviceIndex) { return the_stream(); }
CUDAStream getStreamFromPool(const int, DeviceIndex) { return the_stream(); }
CUDAStream getStreamFromExternal(hipStream_t, DeviceIndex) { return the_stream(); }
CUDAStream getDefaultCUDAStream(DeviceIndex) { return the_stream(); }
CUDAStream getCurrentCUDAStream(DeviceIndex) { return the_stream(); }
void setCurrentCUDAStream(CUDAStream) {}
std::ostream &operator<<(std::ostream &out, const CUDAStream &stream) { return out << stream.unwrap(); }
hipStream_t CUDAStream::stream() const { return nullptr; }
bool CUDAStream::query() const { return true; }
void CUDAStream::synchronize() const {}

std::string get_cuda_error_help(hipError_t) noexcept { return ""; }
const char *get_cuda_check_suffix() noexcept { return ""; }

void c10_cuda_check_implementation(const int32_t status, const char *, const char *function,
                                    const uint32_t line, const bool) {
  const auto error = static_cast<hipError_t>(status);
  if (error == hipSuccess) return;
  (void)hipGetLastError();
  throw c10::AcceleratorError({function, __FILE__, line}, status, std::string("HIP error: ") + hipGetErrorString(error));
}

}  // namespace c10::cuda

namespace at::cuda {

hipDeviceProp_t *getCurrentDeviceProperties() {
  static hipDeviceProp_t properties = [] {
    hipDeviceProp_t known;
    (void)hipGetDeviceProperties(&known, 0);
    return known;
  }();
  return &properties;
}
hipDeviceProp_t *getDeviceProperties(c10::DeviceIndex) { return getCurrentDeviceProperties(); }
int warp_size() { return getCurrentDeviceProperties()->warpSize; }
bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return false; }
c10::Allocator *getCUDADeviceAllocator() { return hkbench_allocator(); }

}  // namespace at::cuda
