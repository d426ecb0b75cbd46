// PyTorch's device type CUDA in a PyTorch that was built for CPUs: tensors in the arena, operators by the CPU's.
//
// Each operator without a kernel of its own here gets, for every CUDA tensor, a CPU tensor over the same memory. What it
// allocates lies in the arena, too, so that its results are CUDA tensors without a copy. What it cannot do there is
// refused by name.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "device.h"

// Of hooks.cpp.
at::Generator hkbench_of_host(const at::Generator &generator);
void hkbench_hook();

namespace {

const c10::Device THE_DEVICE(c10::DeviceType::CUDA, 0);

// --- Memory

void give_back(void *pointer) {
  if (pointer) hkbench_free(pointer);
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void *pointer = bytes ? hkbench_allocate(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, pointer || !bytes, "the emulated GPU has no ", bytes, " bytes left");
    return {pointer, pointer, &give_back, THE_DEVICE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// The host's allocator, which takes memory of the arena for what an operator of the device allocates.
thread_local int within = 0;
c10::DeleterFnPtr host_deleter = nullptr;

// Of raw memory, whose deleter is all that its owner knows: it may be either's.
void give_back_either(void *pointer) {
  if (pointer && !hkbench_free(pointer)) host_deleter(pointer);
}

struct HostMemory final : c10::Allocator {
  explicit HostMemory(c10::Allocator *usual) : usual_(usual) { host_deleter = usual->raw_deleter(); }
  c10::DataPtr allocate(size_t bytes) override {
    void *pointer = within && bytes ? hkbench_allocate(bytes) : nullptr;
    if (!pointer) return usual_->allocate(bytes);
    return {pointer, pointer, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back_either; }
  void copy_data(void *to, const void *from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator *usual_;
};

struct Within {
  Within() { ++within; }
  ~Within() { --within; }
};

Memory memory;

// --- The device

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return THE_DEVICE; }
  c10::Device getDevice() const override { return THE_DEVICE; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void **, const c10::Stream &, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void *, const c10::Stream &) const override {}
  bool queryEvent(void *) const override { return true; }
  void destroyEvent(void *, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream &) const override { return true; }
  void synchronizeStream(const c10::Stream &) const override {}
  void synchronizeEvent(void *) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  double elapsedTime(void *, void *, const c10::DeviceIndex) const override { return 1e3; }  // no clock is read
  void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

// --- What is not there

[[noreturn]] void refuse(const std::string &what) {
  hkbench_refuse(what.c_str());
  C10_THROW_ERROR(NotImplementedError, "the emulated GPU has no " + what);
}

std::string name_of(const c10::OperatorHandle &op) { return "PyTorch's " + op.schema().name(); }

template <c10::DispatchKey key>
void refuse_kind(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *) {
  refuse(name_of(op) + " for tensors of the kind " + c10::toString(key));
}

// --- Tensors of both devices over one memory

void keep(void *context) { delete static_cast<c10::Storage *>(context); }

bool in_arena(const void *pointer) {
  void *begin;
  size_t bytes;
  return pointer && hkbench_find(pointer, &begin, &bytes);
}

c10::Storage storage_over(const c10::Storage &storage, c10::Device device, c10::Allocator *allocator) {
  c10::DataPtr data(storage.mutable_data(), new c10::Storage(storage), &keep, device);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(data),
                                               allocator, /*resizable=*/true);
}

at::Tensor tensor_over(const at::Tensor &like, c10::Storage storage, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

// One operator's tensors: each storage of the device with that of the CPU that stands for it.
class Call {
 public:
  explicit Call(const c10::OperatorHandle *op = nullptr) : op_(op) {}

  at::Tensor on_host(const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    for (const auto &known : tensors_)
      if (known.device.is_same(tensor)) return known.host;
    for (const auto &known : tensors_) {
      if (known.device.storage().unsafeGetStorageImpl() != tensor.storage().unsafeGetStorageImpl()) continue;
      tensors_.push_back({tensor, tensor_over(tensor, known.host.storage(), c10::DispatchKey::CPU)});
      return tensors_.back().host;
    }
    auto storage = storage_over(tensor.storage(), c10::Device(c10::DeviceType::CPU), c10::GetCPUAllocator());
    tensors_.push_back({tensor, tensor_over(tensor, std::move(storage), c10::DispatchKey::CPU)});
    return tensors_.back().host;
  }

  at::Tensor on_device(const at::Tensor &tensor) {
    if (!tensor.defined() || !tensor.is_cpu()) return tensor;
    if (!tensor.key_set().has(c10::DispatchKey::CPU))
      refuse(name_of(*op_) + ", of which a sparse, quantized or nested tensor would come,");
    for (const auto &known : tensors_)
      if (known.host.is_same(tensor)) return known.device;
    for (const auto &known : tensors_)
      if (known.host.storage().unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl())
        return tensor_over(tensor, known.device.storage(), c10::DispatchKey::CUDA);
    return tensor_over(tensor, moved(tensor.storage()), c10::DispatchKey::CUDA);
  }

  // What an operator resized (`out=`) is resized on the device.
  void settle() {
    for (const auto &known : tensors_) {
      auto *device = known.device.unsafeGetTensorImpl();
      const auto &host = known.host;
      if (host.storage().data() != known.device.storage().data())
        device->set_storage_keep_dtype(moved(host.storage()));
      if (host.sizes() != known.device.sizes() || host.strides() != known.device.strides() ||
          host.storage_offset() != known.device.storage_offset())
        device->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    }
  }

 private:
  struct Pair {
    at::Tensor device, host;
  };

  static c10::Storage moved(const c10::Storage &storage) {
    if (!storage.nbytes() || in_arena(storage.data())) return storage_over(storage, THE_DEVICE, &memory);
    auto data = memory.allocate(storage.nbytes());
    std::memcpy(data.get(), storage.data(), storage.nbytes());
    return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                                 std::move(data), &memory, /*resizable=*/true);
  }

  const c10::OperatorHandle *op_;  // null for what returns no new tensor
  std::vector<Pair> tensors_;
};

c10::IValue changed(const c10::IValue &value, const std::function<at::Tensor(const at::Tensor &)> &change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    std::vector<at::Tensor> all;
    for (const at::Tensor &one : value.toTensorVector()) all.push_back(change(one));
    return all;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const std::optional<at::Tensor> &one : value.toOptionalTensorVector())
      all.push_back(one ? std::optional<at::Tensor>(change(*one)) : std::nullopt);
    return all;
  }
  return value;
}

void by_the_host(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) refuse(name_of(op) + ", which the host lacks,");
  Call call(&op);
  const auto arguments = op.schema().arguments().size(), results = op.schema().returns().size();
  for (auto &value : torch::jit::last(*stack, arguments)) {
    if (value.isDevice() && value.toDevice().is_cuda())
      const_cast<c10::IValue &>(value) = c10::Device(c10::DeviceType::CPU);
    else if (value.isGenerator() && value.toGenerator().defined())
      const_cast<c10::IValue &>(value) = hkbench_of_host(value.toGenerator());
    else
      const_cast<c10::IValue &>(value) = changed(value, [&](const at::Tensor &one) { return call.on_host(one); });
  }
  try {
    Within arena;
    op.callBoxed(stack);
  } catch (const c10::Error &error) {
    const std::string said = error.what_without_backtrace();
    const bool of_host = dynamic_cast<const c10::NotImplementedError *>(&error) || said.find(" CPU") != said.npos;
    if (!of_host) throw;
    refuse(name_of(op) + " with such arguments (" + said.substr(0, said.find('\n')) + ")");
  }
  for (auto &value : torch::jit::last(*stack, results))
    const_cast<c10::IValue &>(value) = changed(value, [&](const at::Tensor &one) { return call.on_device(one); });
  call.settle();
}

// --- Operators of the device's own

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &memory, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   dtype.value_or(c10::get_default_dtype_as_scalartype()), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           dtype.value_or(c10::get_default_dtype_as_scalartype()));
}

// The host's softmax does not widen on the way, as autocast has a GPU's do.
template <at::Tensor (*softmax)(const at::Tensor &, int64_t, bool)>
at::Tensor widening(const at::Tensor &self, int64_t dim, bool widens) {
  Call call;
  Within arena;
  const auto host = call.on_host(self);
  return call.on_device(softmax(widens ? host.to(at::kFloat) : host, dim, false));
}

at::Tensor &copy_(at::Tensor &self, const at::Tensor &from, bool) {
  Call call;
  call.on_host(self).copy_(call.on_host(from));
  return self;
}

at::Tensor view(const at::Tensor &self, c10::SymIntArrayRef sizes) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

at::Tensor as_strided(const at::Tensor &self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                      std::optional<c10::SymInt> offset) {
  const auto begin = offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), begin);
}

at::Tensor reshape_alias(const at::Tensor &self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

at::Tensor &set_storage(at::Tensor &self, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef sizes,
                        c10::SymIntArrayRef strides) {
  auto *impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                              offset.guard_int(__FILE__, __LINE__));
  return self;
}

at::Tensor &set_whole_storage(at::Tensor &self, at::Storage storage) {
  const auto elements = static_cast<int64_t>(storage.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(storage), 0, {elements}, {1});
}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_host>()); }

template <c10::DispatchKey key>
void refuse_kinds(torch::Library &m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_kind<key>>());
}
TORCH_LIBRARY_IMPL(_, SparseCUDA, m) { refuse_kinds<c10::DispatchKey::SparseCUDA>(m); }
TORCH_LIBRARY_IMPL(_, SparseCsrCUDA, m) { refuse_kinds<c10::DispatchKey::SparseCsrCUDA>(m); }
TORCH_LIBRARY_IMPL(_, QuantizedCUDA, m) { refuse_kinds<c10::DispatchKey::QuantizedCUDA>(m); }
TORCH_LIBRARY_IMPL(_, NestedTensorCUDA, m) { refuse_kinds<c10::DispatchKey::NestedTensorCUDA>(m); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy_);
  m.impl("_softmax", widening<at::_softmax>);
  m.impl("_log_softmax", widening<at::_log_softmax>);
  m.impl("view", view);
  m.impl("as_strided", as_strided);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage);
}

}  // namespace

extern "C" c10::Allocator *hkbench_allocator() { return &memory; }

extern "C" __attribute__((visibility("default"))) void hkbench_begin() {
  static HostMemory host(c10::GetCPUAllocator());
  c10::SetAllocator(c10::DeviceType::CUDA, &memory);
  c10::SetCPUAllocator(&host, /*priority=*/255);
  hkbench_hook();
}
