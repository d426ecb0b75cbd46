// c10::cuda::CUDACachingAllocator: memory of the device, without a cache. What else it offers is refused by name.
//
// A file of its own: its functions differ between versions of PyTorch. Where it does not compile it is left out, and an
// extension that uses the name cannot be loaded.
#include <c10/hip/HIPCachingAllocator.h>

#include "device.h"

extern "C" c10::Allocator *hkbench_allocator();

namespace c10::cuda::CUDACachingAllocator {
namespace {

[[noreturn]] void refused(const char *name) {
  const std::string whole = std::string("c10::cuda::CUDACachingAllocator::") + name;
  hkbench_refuse(whole.c_str());
  C10_THROW_ERROR(NotImplementedError, "the emulated GPU has no " + whole);
}

struct Uncached final : CUDAAllocator {
  DataPtr allocate(size_t bytes) override { return hkbench_allocator()->allocate(bytes); }
  DeleterFnPtr raw_deleter() const override { return hkbench_allocator()->raw_deleter(); }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  void *raw_alloc(size_t bytes) override { return bytes ? hkbench_allocator()->raw_allocate(bytes) : nullptr; }
  void *raw_alloc_with_stream(size_t bytes, hipStream_t) override { return raw_alloc(bytes); }
  void raw_delete(void *pointer) override { hkbench_allocator()->raw_deallocate(pointer); }
  void *getBaseAllocation(void *pointer, size_t *bytes) override {
    void *begin = nullptr;
    size_t whole = 0;
    TORCH_CHECK_VALUE(hkbench_find(pointer, &begin, &whole), "this is no memory of the emulated GPU");
    if (bytes) *bytes = whole;
    return begin;
  }

  void init(int) override {}
  bool initialized() override { return true; }
  void enable(bool) override {}
  bool isEnabled() const override { return false; }
  double getMemoryFraction(DeviceIndex) override { return 1.0; }
  void setMemoryFraction(double, DeviceIndex) override {}
  void emptyCache(MempoolId_t) override {}
  void cacheInfo(DeviceIndex, size_t *largest) override { *largest = 0; }
  void recordStream(const DataPtr &, CUDAStream) override {}
  void resetAccumulatedStats(DeviceIndex) override {}
  void resetPeakStats(DeviceIndex) override {}
  void enablePeerAccess(DeviceIndex, DeviceIndex) override {}
  std::string name() override { return "emulated"; }
  hipError_t memcpyAsync(void *to, int, const void *from, int, size_t bytes, hipStream_t stream, bool) override {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream);
  }

  std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { refused("getExpandableSegmentSizes"); }
  CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex) override { refused("getDeviceStats"); }
  SnapshotInfo snapshot(MempoolId_t, bool) override { refused("snapshot"); }
  void beginAllocateToPool(DeviceIndex, MempoolId_t, std::function<bool(hipStream_t)>) override {
    refused("beginAllocateToPool");
  }
  void endAllocateToPool(DeviceIndex, MempoolId_t) override { refused("endAllocateToPool"); }
  void releasePool(DeviceIndex, MempoolId_t) override { refused("releasePool"); }
  ShareableHandle shareIpcHandle(void *) override { refused("shareIpcHandle"); }
  std::shared_ptr<void> getIpcDevPtr(std::string) override { refused("getIpcDevPtr"); }
  void recordHistory(bool, CreateContextFn, size_t, RecordContext, bool, const std::vector<std::string> &) override {
    refused("recordHistory");
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver) override { refused("attachOutOfMemoryObserver"); }
  void attachOomRejectionObserver(OomRejectionObserver) override { refused("attachOomRejectionObserver"); }
  void attachAllocatorTraceTracker(AllocatorTraceTracker) override { refused("attachAllocatorTraceTracker"); }
  std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) override { refused("getCheckpointState"); }
  CheckpointDelta setCheckpointPoolState(DeviceIndex, std::shared_ptr<AllocatorState>) override {
    refused("setCheckpointPoolState");
  }
};

Uncached the_allocator;

}  // namespace

std::atomic<CUDAAllocator *> allocator{&the_allocator};

}  // namespace c10::cuda::CUDACachingAllocator
