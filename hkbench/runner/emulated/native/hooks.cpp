// What PyTorch asks of CUDA as an accelerator: random generators, pinned memory, the device's number.
#undef USE_ROCM  // the installed PyTorch was built without it, and the table of these functions depends on it
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>

#include <new>

#include "device.h"

namespace {

const c10::Device THE_DEVICE(c10::DeviceType::CUDA, 0);

// A generator of the device. The operators that use it are the host's, and so is the state.
struct DeviceGenerator final : c10::GeneratorImpl {
  explicit DeviceGenerator(at::Generator of_host)
      : GeneratorImpl(THE_DEVICE, c10::DispatchKeySet(c10::DispatchKey::CUDA)), host(std::move(of_host)) {}

  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host.set_offset(offset); }
  uint64_t get_offset() const override { return host.get_offset(); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return host.seed(); }
  void set_state(const c10::TensorImpl &state) override { host.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host.unsafeGetGeneratorImpl()->get_state(); }
  // Shares the state of another one, also of the host's.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl> &other) override {
    const auto *device = dynamic_cast<const DeviceGenerator *>(other.get());
    host = device ? device->host : at::Generator(other);
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<DeviceGenerator>(host);
  }

  at::Generator host;

 private:
  DeviceGenerator *clone_impl() const override { return new DeviceGenerator(host.clone()); }
};

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void *pointer = bytes ? hkbench_allocate(bytes) : nullptr;  // the device's, as kernels may read it
    TORCH_CHECK_WITH(OutOfMemoryError, pointer || !bytes, "the emulated GPU has no ", bytes, " bytes left to pin");
    return {pointer, pointer, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void give_back(void *pointer) {
    if (pointer) hkbench_free(pointer);
  }
};

struct Hooks final : at::CUDAHooksInterface {
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  void deviceSynchronize(c10::DeviceIndex) const override {}
  c10::Device getDeviceFromPtr(void *) const override { return THE_DEVICE; }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator made = at::make_generator<DeviceGenerator>(at::detail::getDefaultCPUGenerator());
    return made;
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<DeviceGenerator>(at::detail::createCPUGenerator());
  }

  bool isPinnedPtr(const void *data) const override {
    void *begin;
    size_t bytes;
    return hkbench_find(data, &begin, &bytes);
  }
  c10::Allocator *getPinnedMemoryAllocator() const override {
    static PinnedMemory pinned;
    return &pinned;
  }
};

}  // namespace

// The host's generator behind one of the device's.
at::Generator hkbench_of_host(const at::Generator &generator) {
  const auto *device = dynamic_cast<const DeviceGenerator *>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(device, "Expected a 'cuda' device type for generator but found '", generator.device().type(), "'");
  return device->host;
}

// Takes the place of the hooks that PyTorch has made for itself by now, since nothing was registered when it was loaded.
void hkbench_hook() {
  static_assert(sizeof(Hooks) == sizeof(at::CUDAHooksInterface), "hooks have functions and no members");
  new (const_cast<at::CUDAHooksInterface *>(&at::detail::getCUDAHooks())) Hooks;
}
