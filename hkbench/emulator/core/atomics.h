// What atomic operations do with a value in memory. Waves of other workgroups may be at it on other threads.
#pragma once
#include <atomic>

#include "lanes.h"

namespace hkb {

template <class T, class F> T atomically(u8* p, F&& change) {
  std::atomic_ref<T> place(*reinterpret_cast<T*>(p));
  T old = place.load(std::memory_order_relaxed);
  while (!place.compare_exchange_weak(old, change(old))) {
  }
  return old;
}

// Each has the type of the value in memory, and what becomes of it: `old`, and the lane's data x (and y: cmpswap).
#define HKB_ATOMIC(name, T, expression)                                                     \
  struct name {                                                                             \
    using Type = T;                                                                         \
    static T apply(T old, [[maybe_unused]] T x, [[maybe_unused]] T y) { return expression; } \
  }
template <class T> struct Atomics {
  using S = std::make_signed_t<T>;
  HKB_ATOMIC(Swap, T, ((void)old, x));
  HKB_ATOMIC(CompareSwap, T, old == y ? x : old);  // y: the value to compare with
  HKB_ATOMIC(Add, T, old + x);
  HKB_ATOMIC(Sub, T, old - x);
  HKB_ATOMIC(ReverseSub, T, x - old);
  HKB_ATOMIC(MinSigned, T, static_cast<S>(x) < static_cast<S>(old) ? x : old);
  HKB_ATOMIC(MaxSigned, T, static_cast<S>(x) > static_cast<S>(old) ? x : old);
  HKB_ATOMIC(Min, T, x < old ? x : old);
  HKB_ATOMIC(Max, T, x > old ? x : old);
  HKB_ATOMIC(And, T, old& x);
  HKB_ATOMIC(Or, T, old | x);
  HKB_ATOMIC(Xor, T, old ^ x);
  HKB_ATOMIC(Increment, T, old >= x ? 0 : old + 1);
  HKB_ATOMIC(Decrement, T, old == 0 || old > x ? x : old - 1);
};
template <class A> inline constexpr bool is_swap = std::is_same_v<A, Atomics<u32>::Swap> || std::is_same_v<A, Atomics<u64>::Swap>;
HKB_ATOMIC(AddF32, u32, bits(as_f32(old) + as_f32(x)));
HKB_ATOMIC(MinF32, u32, bits(min_num(as_f32(x), as_f32(old))));
HKB_ATOMIC(MaxF32, u32, bits(max_num(as_f32(x), as_f32(old))));
HKB_ATOMIC(AddF64, u64, bits(as_f64(old) + as_f64(x)));
HKB_ATOMIC(MinF64, u64, bits(min_num(as_f64(x), as_f64(old))));
HKB_ATOMIC(MaxF64, u64, bits(max_num(as_f64(x), as_f64(old))));
template <class H> u32 add_pair(u32 a, u32 b) {
  return to_bits<H>(from_bits<H>(a) + from_bits<H>(b)) | to_bits<H>(from_bits<H>(a >> 16) + from_bits<H>(b >> 16)) << 16;
}
HKB_ATOMIC(AddPairF16, u32, add_pair<f16>(old, x));
HKB_ATOMIC(AddPairBf16, u32, add_pair<bf16>(old, x));

}  // namespace hkb
