// Between Python and a function `void dispatch(const globals &, hipStream_t)`: what binding.py packs into a block of
// 8-byte words becomes the members of `globals`. A gl takes five words (address, batch, depth, rows, columns), a pointer
// and a number one each. No header of PyTorch or Python: it would be most of the build's time.
#include <hip/hip_runtime.h>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

#include "kittens.cuh"

namespace hipkittens_build {

template <typename T> inline constexpr bool never = false;

template <typename Function> struct signature {
  static_assert(never<Function>, "a bound function has to be `void name(const globals &, hipStream_t)`");
};
template <typename Globals> struct signature<void (*)(const Globals &, hipStream_t)> { using globals = Globals; };
template <typename Globals> struct signature<void (*)(Globals, hipStream_t)> { using globals = Globals; };
template <typename Function> using globals_of = typename signature<Function>::globals;

template <typename T> concept layout = kittens::ducks::gl::all<T>;
template <typename T> concept number = std::is_arithmetic_v<T> && !std::is_same_v<T, long double>;

// The name that PyTorch has for an element type.
template <typename T> constexpr const char *dtype() {
  if constexpr (std::is_same_v<T, float>) return "float32";
  else if constexpr (std::is_same_v<T, double>) return "float64";
  else if constexpr (std::is_same_v<T, kittens::bf16>) return "bfloat16";
  else if constexpr (std::is_same_v<T, kittens::half>) return "float16";
  else if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::integral<T> && sizeof(T) == 1) return std::is_signed_v<T> ? "int8" : "uint8";
  else if constexpr (std::integral<T> && std::is_signed_v<T> && sizeof(T) == 2) return "int16";
  else if constexpr (std::integral<T> && std::is_signed_v<T> && sizeof(T) == 4) return "int32";
  else if constexpr (std::integral<T> && std::is_signed_v<T> && sizeof(T) == 8) return "int64";
#ifdef KITTENS_CDNA4
  else if constexpr (std::is_same_v<T, kittens::fp8e4m3>) return "float8_e4m3fn";
#endif
  else static_assert(never<T>, "PyTorch has no dtype for this element type: point to its scalars and cast in the kernel");
}

// One line a member, for binding.py: "layout DTYPE B D R C" (-1: known when called), "pointer DTYPE",
// "number CODE" with the code of Python's module struct, then "unsigned BITS", "signed BITS", "bool" or "float".
template <typename Member> std::string described() {
  using T = std::remove_cv_t<Member>;
  if constexpr (layout<T>) {
    std::string line = std::string("layout ") + dtype<typename T::dtype>();
    for (const int size : {T::__b__, T::__d__, T::__r__, T::__c__}) line += " " + std::to_string(size);
    return line + "\n";
  } else if constexpr (std::is_same_v<T, hipStream_t>) {
    static_assert(never<T>, "the stream is the function's second argument, not a member to bind");
  } else if constexpr (std::is_pointer_v<T>) {
    return std::string("pointer ") + dtype<std::remove_cv_t<std::remove_pointer_t<T>>>() + "\n";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool\n";
  } else if constexpr (std::is_floating_point_v<T> && number<T>) {
    return "float\n";
  } else if constexpr (number<T>) {
    return std::string(std::is_signed_v<T> ? "signed " : "unsigned ") + std::to_string(8 * sizeof(T)) + "\n";
  } else {
    static_assert(never<T>, "a bound member has to be a kittens::gl, a pointer to elements or a number");
  }
}

class Words {
 public:
  explicit Words(const char *packed) : at_(packed) {}

  template <typename Member> std::remove_cv_t<Member> take() {
    using T = std::remove_cv_t<Member>;
    if constexpr (layout<T>) {
      const auto address = word<std::uint64_t>();
      const int b = size(), d = size(), r = size(), c = size();
      return kittens::make_gl<T>(address, b, d, r, c);
    } else if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(word<std::uint64_t>());
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(word<double>());
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(word<std::int64_t>());
    } else {
      return static_cast<T>(word<std::uint64_t>());
    }
  }

 private:
  template <typename T> T word() {
    static_assert(sizeof(T) == 8);
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  int size() { return static_cast<int>(word<std::int64_t>()); }

  const char *at_;
};

inline std::string told(hipError_t status) {
  return std::string(hipGetErrorName(status)) + ": " + hipGetErrorString(status);
}

// Runs `launch`; null, or what went wrong. The text lives until this thread's next call.
template <typename Launch> const char *guarded(Launch &&launch) {
  static thread_local std::string message;
  if (const hipError_t before = hipGetLastError(); before != hipSuccess) {
    message = "not launched: an earlier call had failed and nobody had looked: " + told(before);
    return message.c_str();
  }
  try {
    launch();
  } catch (const std::exception &error) {
    message = error.what();
    return message.c_str();
  }
  const hipError_t status = hipGetLastError();
  if (status == hipSuccess) return nullptr;
  message = "the launch failed: " + told(status);
  return message.c_str();
}

}  // namespace hipkittens_build
