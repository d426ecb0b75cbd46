// VALU: comparisons. They set one bit a lane in a pair of SGPRs; v_cmpx sets EXEC as well.
#include "lanes.h"

namespace hkb {
namespace {

template <class A, class B, class F> void compare_exec(Wave& w, const Instruction& i) {
  compare<A, B, F>(w, i);
  w.set_pair(EXEC, scalar64(w, i.o[0]));
}

// v_cmp_class looks at the bits: neg and abs apply, denormals are not flushed.
template <class T, bool EXECUTE> void compare_class(Wave& w, const Instruction& i) {
  const Source<T> a(w, i, 1);
  const Source<b32> wanted(w, i, 2);
  u64 mask = 0;
  for (u32 l = 0; l < LANES; ++l) {
    u64 b;
    int mantissa = 23, exponent = 8;
    if constexpr (is_wide<T>) {
      b = a.t[l], mantissa = 52, exponent = 11;
    } else {
      b = a.p[l];
      if (is_half<T>) b &= 0xffff, mantissa = 10, exponent = 5;
    }
    mask |= static_cast<u64>(in_class(b, mantissa, exponent, wanted.p[l])) << l;
  }
  mask &= write_mask(w, i);
  set_scalar64(w, i.o[0], mask);
  if (EXECUTE) w.set_pair(EXEC, mask);
}

#define BOTH(name, T, expression)                                                                      \
  {"v_cmp_" #name, compare<T, T, HKB_LAMBDA(([[maybe_unused]] Value<T> a, [[maybe_unused]] Value<T> b), \
                                           (expression))>, "=m:b64 x:" #T " x:" #T},                   \
  {"v_cmpx_" #name, compare_exec<T, T, HKB_LAMBDA(([[maybe_unused]] Value<T> a,                        \
                                                  [[maybe_unused]] Value<T> b), (expression))>,        \
   "=m:b64 x:" #T " x:" #T " =exec"}
#define INTEGERS(suffix, T)          \
  BOTH(f_##suffix, T, false),        \
  BOTH(lt_##suffix, T, a < b),       \
  BOTH(eq_##suffix, T, a == b),      \
  BOTH(le_##suffix, T, a <= b),      \
  BOTH(gt_##suffix, T, a > b),       \
  BOTH(ne_##suffix, T, a != b),      \
  BOTH(ge_##suffix, T, a >= b),      \
  BOTH(t_##suffix, T, true)
#define FLOATS(suffix, T)                       \
  BOTH(f_##suffix, T, false),                   \
  BOTH(lt_##suffix, T, a < b),                  \
  BOTH(eq_##suffix, T, a == b),                 \
  BOTH(le_##suffix, T, a <= b),                 \
  BOTH(gt_##suffix, T, a > b),                  \
  BOTH(lg_##suffix, T, a < b || a > b),         \
  BOTH(ge_##suffix, T, a >= b),                 \
  BOTH(o_##suffix, T, a == a && b == b),        \
  BOTH(u_##suffix, T, a != a || b != b),        \
  BOTH(nge_##suffix, T, !(a >= b)),             \
  BOTH(nlg_##suffix, T, !(a < b || a > b)),     \
  BOTH(ngt_##suffix, T, !(a > b)),              \
  BOTH(nle_##suffix, T, !(a <= b)),             \
  BOTH(neq_##suffix, T, !(a == b)),             \
  BOTH(nlt_##suffix, T, !(a < b)),              \
  BOTH(tru_##suffix, T, true)

const Row table[] = {
    INTEGERS(i32, i32),
    INTEGERS(u32, u32),
    INTEGERS(i64, i64),
    INTEGERS(u64, u64),
    INTEGERS(i16, s16),
    INTEGERS(u16, h16),
    FLOATS(f32, f32),
    FLOATS(f64, f64),
    FLOATS(f16, f16),
    {"v_cmp_class_f32", compare_class<m32, false>, "=m:b64 x:m32 x:b32"},
    {"v_cmp_class_f64", compare_class<f64, false>, "=m:b64 x:f64 x:b32"},
    {"v_cmp_class_f16", compare_class<f16, false>, "=m:b64 x:f16 x:b32"},
    {"v_cmpx_class_f32", compare_class<m32, true>, "=m:b64 x:m32 x:b32 =exec"},
    {"v_cmpx_class_f64", compare_class<f64, true>, "=m:b64 x:f64 x:b32 =exec"},
    {"v_cmpx_class_f16", compare_class<f16, true>, "=m:b64 x:f16 x:b32 =exec"},
};

}  // namespace
HKB_ROWS(compare_rows, table)
}  // namespace hkb
