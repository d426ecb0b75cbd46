"""Whose kernels did the work: names as cuBLAS, PyTorch, rocBLAS and candidates really have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hkbench.backends.language import defined_kernels
from hkbench.profile import names
from hkbench.profile.kernel_owner import kernel_owner
from hkbench.profile.names import BuildFolder, Built, base, qualified, triton_origin
from hkbench.profile.ownership import (
    device_work,
    judgement,
    object_owner,
    operator_share,
    ownership,
    unexplained,
)
from hkbench.records import Owner, Ownership, Reach, Rule, Track, Work

SOURCE = '''
import torch, triton
from torch.utils.cpp_extension import load_inline
cuda = """
template <typename scalar_t, int N>
__global__ void __launch_bounds__(256, 2) rmsnorm_kernel(const scalar_t* x, scalar_t* y, int n) { }
extern "C" __global__ void gemm_kernel(const float* a, float* c) {}
namespace { __global__ void hidden(float* x) { x[threadIdx.x] = sqrtf(2); } }
static __global__ __attribute__((amdgpu_flat_work_group_size(64, 256)))
void packed(float* x);
template <class F> __global__ void map_kernel(F f, int n) { f(n); }
__global__ /* (why) */ void elementwise_beats_cublas(float* x) {}
__global__ void hopper_gemm_kernel(float* x) {}
__global__ void sm90_conv_fprop_2(float* x) {}
__global__ void cublas_like_sgemm(float* x) {}
__global__ void cutlass_style_gemm(float* x) {}
template <int N> __global__ void implicit_convolve_tiles(float* x) {}
template <typename T> __global__ void gemvNSP_kernel(T* x) {}
__global__ void ampere_tiled_gemm_128x64(float* x) {}
__global__ void splitKreduce_kernel(float* x) {}
__global__ void igemm_fwd_int8(float* x) {}
namespace { template <typename T, int L> __global__ void softmax_warp_forward(T* y) {} }
"""
@triton.autotune(configs=[], key=["n"])
@triton.jit
def _attn_fwd(x_ptr, n: "tl.constexpr"):
    pass
@triton.jit
def triton_red_rows(x_ptr):
    pass
@triton.jit
def nvjet(x_ptr):
    pass
def plain(x): return x
plain_kernel = triton.jit(plain)
@torch.jit.script
def scripted(x): return x
'''
DEFINED = defined_kernels(SOURCE, "cuda")
OWN = [
    "void rmsnorm_kernel<float, 4>(float const*, float*, int)",
    "void rmsnorm_kernel<c10::Half, 4>(c10::Half const*, c10::Half*, int)",
    "void rmsnorm_kernel<at::BFloat16, 8>(at::BFloat16 const*, at::BFloat16*, int)",
    "void rmsnorm_kernel<cutlass::half_t, 8>(cutlass::half_t const*, cutlass::half_t*, int)",
    "gemm_kernel",
    "(anonymous namespace)::hidden(float*)",
    "packed(float*)",
    "_Z6packedPf",
    "_ZN12_GLOBAL__N_16hiddenEPf.kd",
    "void map_kernel<run(at::Tensor)::{lambda(int)#1}>(run(at::Tensor)::{lambda(int)#1}, int)",
    "void my::map_kernel<__nv_hdl_wrapper_t<false, false, (int)3> >(int)",
    "elementwise_beats_cublas(float*)",
    "_attn_fwd",
    "_attn_fwd_0d1d2de",
    "triton_red_rows",
    "plain",
    "hopper_gemm_kernel(float*)",
    "sm90_conv_fprop_2(float*)",
    "cublas_like_sgemm(float*)",
    "cutlass_style_gemm(float*)",
    "void implicit_convolve_tiles<5>(float*)",
    "void gemvNSP_kernel<float>(float*)",
    "ampere_tiled_gemm_128x64(float*)",
    "splitKreduce_kernel(float*)",
    "igemm_fwd_int8(float*)",
    "void (anonymous namespace)::softmax_warp_forward<float, 9>(float*)",
    "nvjet",
]
PYTORCH = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*, float const*, int)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >(int)",
    "void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<float> >(int)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
    "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(int)>(int)",
    "triton_poi_fused_add_mul_0",
    "triton_red_fused_native_layer_norm_1",
    "triton_tem_fused_mm_2",
    "triton_",
    "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
]
LIBRARY = [
    "ampere_sgemm_128x64_nn",
    "volta_sgemm_32x128_tn",
    "volta_h884gemm_64x64_ldg8_tn",
    "ampere_sgemm_32x32_sliced1x4_nn",
    "ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_1x1x1_0_tnn_align8_warpspecialized",
    "nvjet_sm100_tst_128x256_64x4_2x1_v_bz_TNT",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_cga1x1x1_kernel0_0",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize64x64x8_stage3",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    "cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(int)",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int> > >(int)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, false>(int)",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const> > >(int)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(int)",
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false>(int)",
    "void cub::DeviceReduceKernel<cub::DeviceReducePolicy<float>::Policy600, float*>(float*)",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<float> >(int)",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1",
    "Custom_Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1",
    "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
    "MIOpenBatchNormFwdTrainSpatial",
    "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt256x128x32_wt32x32x8_ws1x1_wr2x2",
    "void ck::kernel_gemm_xdlops_v2r3<ck::GridwiseGemm_k0mk1_k0nk1_mn_xdlops_v2r3<256, float> >(int)",
    "a_kernel_of_nobody(float*)",
]
NOBODY = [
    "Memcpy DtoD (Device -> Device)",
    "Memset (Device)",
    "__amd_rocclr_fillBufferAligned",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}> >(int)",
    "void at::native::unrolled_elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>(int)",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<float, unsigned int, 2, 128>(int)",
]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, names in ((Owner.CANDIDATE, OWN), (Owner.PYTORCH, PYTORCH), (Owner.LIBRARY, LIBRARY),
                                        (Owner.UNKNOWN, NOBODY)) for name in names],
)  # fmt: skip
def test_whose_kernel_a_name_is(owner: Owner, name: str) -> None:
    built = Built(kernels=frozenset({"triton_red_rows"}))
    assert kernel_owner(name, "kernel", DEFINED, built) is owner


@pytest.mark.parametrize("name", PYTORCH + LIBRARY)
def test_a_kernel_of_the_same_name_in_the_source_claims_nobody_elses(name: str) -> None:
    if name in ("a_kernel_of_nobody(float*)", "triton_poi_fused_add_mul_0") or name.startswith("triton_"):
        return  # the first is really the candidate's then, the others see below
    source = f"__global__ void {base(name)}(int x) {{ }}"
    assert kernel_owner(name, "kernel", defined_kernels(source, "cuda"), Built()) is not Owner.CANDIDATE


def test_what_torch_compile_wrote_is_its_own_whatever_the_name(tmp_path: Path) -> None:
    cache = tmp_path / "innocent" / "ab"
    cache.mkdir(parents=True)
    (cache / "cab.py").write_text(
        "from torch._inductor.runtime import triton_helpers\n@triton.jit\ndef fast(x):\n  pass\n"
    )
    (cache / "mine.py").write_text("@triton.jit\ndef mine(x):\n  pass\n")
    (cache / "cpu.so").write_bytes(b"\0inductor_entry_cpp\0kernel\0")
    built = BuildFolder(str(tmp_path)).read()
    defined = frozenset({"fast", "mine", "triton_poi_fused_0"})
    owners = [kernel_owner(name, "kernel", defined, built) for name in ("fast", "mine", "triton_poi_fused_0")]
    assert owners == [Owner.PYTORCH, Owner.CANDIDATE, Owner.PYTORCH]
    assert object_owner(str(cache / "cpu.so"), str(tmp_path), built) is Owner.PYTORCH


def test_kernels_made_by_macros_are_found_in_what_was_built(tmp_path: Path) -> None:
    names = b"\0_Z11relu_kernelPf\0_ZN12_GLOBAL__N_18tanh_rowIfEEvPT_\0"
    (tmp_path / "ext.so").write_bytes(b"\x7fELF" + names)
    (tmp_path / "link.so").symlink_to("/proc/kcore")
    (tmp_path / "_fused_rows.cubin").write_bytes(b"\x7fELF")
    built = BuildFolder(str(tmp_path)).read()
    assert {"relu_kernel", "tanh_row", "_fused_rows"} <= built.kernels
    source = frozenset[str]()
    assert kernel_owner("relu_kernel(float*)", "kernel", source, built) is Owner.CANDIDATE
    assert (
        kernel_owner("void (anonymous namespace)::tanh_row<float>(float*)", "kernel", source, built) is Owner.CANDIDATE
    )
    assert kernel_owner("sigmoid_kernel(float*)", "kernel", source, built) is Owner.LIBRARY


def test_what_a_build_leaves_later_is_seen_and_what_is_known_is_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def search(content: bytes, path: Path, of: Callable[[bytes, Path], set[str]] = names._names_in) -> set[str]:
        searched.append(path.name)
        return of(content, path)

    monkeypatch.setattr(names, "_names_in", search)
    folder = BuildFolder(str(tmp_path))
    (tmp_path / "a.so").write_bytes(b"\0early_kernel\0")
    (tmp_path / "b.so").write_bytes(b"\0other_kernel\0")
    assert folder.read().kernels == {"early_kernel", "other_kernel"}
    (tmp_path / "a.so").write_bytes(b"\0later_kernel\0")  # as long, and as old for a clock of whole seconds
    (tmp_path / "c.so").write_bytes(b"\0third_kernel\0")
    (tmp_path / "b.so").rename(tmp_path / "moved.bin")
    assert folder.read().kernels == {"later_kernel", "third_kernel"}
    assert folder.read().kernels == {"later_kernel", "third_kernel"}
    assert searched == ["a.so", "b.so", "a.so", "c.so"]


def test_what_a_source_defines() -> None:
    wanted = {
        "rmsnorm_kernel",
        "gemm_kernel",
        "hidden",
        "packed",
        "map_kernel",
        "_attn_fwd",
        "triton_red_rows",
        "plain",
    }
    assert wanted <= DEFINED
    assert not DEFINED & {"scripted", "run", "forward", "sqrtf"}
    assert "k" in defined_kernels("no python: __global__ void k<float>(float*) {}", "cuda")
    assert defined_kernels("not python (\n@triton.jit\ndef k(x):\n", "cuda") == {"k"}


def ttir(kernel: str, path: str) -> str:
    """A kernel as Triton 3 writes it, with a function of its own library beside it."""
    standard = "/usr/lib/python3/site-packages/triton/language/standard.py"
    return (
        f'#loc = loc("{path}":5:1)\n#loc10 = loc("{standard}":64:1)\n#loc2 = loc("x"(#loc))\nmodule {{\n'
        f'  tt.func public @{kernel}(%x: !tt.ptr<f32> loc("x"(#loc))) attributes {{noinline = false}} {{\n'
        f"    tt.return loc(#loc2)\n  }} loc(#loc)\n"
        f'  tt.func private @max(%x: f32 loc("x"(#loc10))) {{\n'
        f"    tt.return loc(#loc10)\n  }} loc(#loc10)\n}} loc(#loc)\n"
    )


@pytest.mark.parametrize("ending", ["ttir", "source"])
def test_a_triton_kernel_is_whose_file_it_comes_from(tmp_path: Path, ending: str) -> None:
    package = "/venv/lib/python3.12/site-packages/flag_gems/ops/softmax.py"
    places = {"softmax_kernel": package, "mine": f"{tmp_path}/candidate.py", "late": "/in/the/cage/written.py"}
    (tmp_path / "candidate.py").write_text("@triton.jit\ndef mine(x): pass\n")
    for kernel, path in places.items():
        folder = tmp_path / "triton" / kernel
        folder.mkdir(parents=True)
        (folder / f"{kernel}.{ending}").write_text(ttir(kernel, path))
        (folder / f"{kernel}.cubin").write_bytes(b"\x7fELF")
    built = BuildFolder(str(tmp_path)).read()
    assert built.foreign == {"softmax_kernel": package}
    defined = frozenset(places)  # a function of the same name in the source claims nothing
    assert kernel_owner("softmax_kernel", "kernel", defined, built) is Owner.LIBRARY
    assert kernel_owner("mine", "kernel", frozenset(), built) is Owner.CANDIDATE
    assert kernel_owner("late_0d1d", "kernel", frozenset(), built) is Owner.CANDIDATE


def test_a_triton_kernel_is_not_of_a_file_that_has_no_such_function(tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.py"
    candidate.write_text("import triton\n\n@triton.jit\ndef mine(x):\n    pass\n")
    places = {"mine": candidate, "theirs": candidate, "removed": tmp_path / "generated.py"}
    for kernel, place in places.items():
        (tmp_path / f"{kernel}.ttir").write_text(ttir(kernel, str(place)))
        (tmp_path / f"{kernel}.cubin").write_bytes(b"\x7fELF\0" + kernel.encode())
    built = BuildFolder(str(tmp_path)).read()
    assert set(built.foreign) == {"theirs", "removed"} and str(candidate) in built.foreign["theirs"]
    assert kernel_owner("mine", "kernel", frozenset(), built) is Owner.CANDIDATE
    assert kernel_owner("theirs", "kernel", frozenset(), built) is Owner.LIBRARY
    assert kernel_owner("removed", "kernel", frozenset({"removed"}), built) is Owner.LIBRARY


@pytest.mark.parametrize("kernel", ["triton_per_fused_mean_0", "entr_vectorized4_kernel", "digamma_kernel"])
def test_what_pytorch_compiles_while_it_runs_is_not_covered_by_a_name_in_the_text(kernel: str) -> None:
    defined = frozenset({kernel})
    assert kernel_owner(kernel, "kernel", defined, Built()) is Owner.PYTORCH
    assert kernel_owner(kernel, "kernel", defined, Built(kernels=defined)) is Owner.CANDIDATE


def test_a_library_within_a_namespace_is_the_library() -> None:
    name = "void mine::cub::detail::DeviceReduceKernel<int>(int*)"
    assert kernel_owner(name, "kernel", frozenset(), Built(kernels=frozenset({base(name)}))) is Owner.LIBRARY


@pytest.mark.parametrize("text", ["", "tt.func public @k(", "tt.func public @k() {\n  } loc(#loc)\n"])
def test_a_text_that_names_no_file_says_nothing(text: str) -> None:
    assert triton_origin(text) is None


def test_places_behind_names_are_followed() -> None:
    text = 'tt.func public @k() {\n  } loc(#loc3)\n#loc1 = loc("/a/b.py":1:0)\n#loc3 = loc("k"(#loc1))\n'
    assert triton_origin(text) == ("k", "/a/b.py")


def test_parts_of_names() -> None:
    assert qualified("void a::b<c<int>, (x::y)2>::d<int>(float*) [clone .kd]") == "a::b::d"
    assert base("_ZN3foo3barIfEEvPT_") == "bar"
    assert base("") == ""


def trace(*kernels: tuple[str, float], **more: Any) -> dict[str, Any]:
    return {
        "on_gpu": True,
        "kernels": [{"name": n, "kind": "kernel", "calls": 1, "seconds": s} for n, s in kernels],
        **more,
    }


FILL, COPY, ADD, GEMM, MINE = NOBODY[3], NOBODY[4], PYTORCH[0], LIBRARY[0], OWN[0]


@pytest.mark.parametrize(
    ("kernels", "passes"),
    [
        ([(MINE, 1e-3)], True),
        ([(MINE, 1e-5), (FILL, 4e-5), (COPY, 3e-5)], True),  # an atomic reduction into zeros
        ([(MINE, 6e-6), (FILL, 1e-4)], True),
        ([(MINE, 6e-5), (ADD, 4e-5)], True),
        ([], True),  # views only
        ([(MINE, 4e-5), (GEMM, 6e-5)], False),
        ([(MINE, 2e-6), (GEMM, 1e-3)], False),  # a trivial kernel beside a library call
        ([(ADD, 1e-5)], False),
        ([("triton_poi_fused_relu_0", 1e-5)], False),
        ([("nobodys(int)", 1e-5)], False),
        ([(COPY, 1e-3)], False),  # a transpose by PyTorch, and nothing else
        ([(COPY, 1e-3), (MINE, 1e-6)], False),
    ],
)
def test_the_judgement_of_a_gpu_trace(kernels: list[tuple[str, float]], passes: bool) -> None:
    work = device_work(trace(*kernels), DEFINED, Built())
    assert work is not None
    assert sum((work.own, work.pytorch, work.library, work.other)) == pytest.approx(1.0 if kernels else 0.0)
    reason = judgement(work, Track.OWN)
    assert (reason is None) is passes, reason
    assert judgement(work, Track.ANY) is None


def test_the_reason_names_shares_and_kernels() -> None:
    work = device_work(trace((MINE, 2e-5), (GEMM, 8e-5)), DEFINED, Built())
    assert work is not None
    reason = judgement(work, Track.OWN)
    assert reason is not None
    assert "20%" in reason and "ampere_sgemm_128x64_nn (80%)" in reason


def test_seconds_left_out_of_the_trace_are_not_the_candidates() -> None:
    work = device_work(trace((MINE, 1e-5), left_out_seconds=1.0), DEFINED, Built())
    assert work is not None and judgement(work, Track.OWN)


@pytest.mark.parametrize("junk", [{}, {"error": "no kineto"}, {"kernels": 3}])
def test_no_trace_is_no_work(junk: dict[str, Any]) -> None:
    assert device_work(junk, DEFINED, Built()) is None
    assert operator_share(junk) is None


def test_junk_rows_are_passed_over() -> None:
    junk: list[Any] = [3, {"name": 4}, {"name": "x", "seconds": float("nan")}, {"name": "y", "seconds": 10**400}]
    work = device_work({"kernels": [*junk, {"name": MINE, "seconds": 1.0}]}, DEFINED, Built())
    assert work is not None and work.own == 1.0


def rows(*spans: tuple[float, float], busy: float | None = None, window: float = 0.0) -> dict[str, Any]:
    """Makes the trace of own kernels at these (start, duration) in microseconds, in a call of `window`."""
    listed = [[0, start * 1e-6, duration * 1e-6, 7] for start, duration in spans]
    total = sum(duration for _, duration in spans)
    return trace((MINE, total * 1e-6), rows=listed, busy_seconds=total * 1e-6, wall_seconds=window * 1e-6)


@pytest.mark.parametrize(
    ("traced", "measured", "passes"),
    [
        (rows((20, 250), window=290), 264, True),  # an ordinary kernel
        (rows((240, 44), window=300), 264, False),  # records off around a library's call, on for a trivial kernel
        (rows((20, 44), window=300), 264, False),  # the same, the library last
        (rows((400, 44), window=460), 50, True),  # a slow host while it is recorded; timed calls are queued before
        (rows(*((i * 50, 3) for i in range(100)), window=5010), 4600, True),  # bound by launches from Python
        (rows(*((i * 50, 3) for i in range(10)), (900, 3), window=1000), 950, False),  # one hole among launches
        (rows((10, 90), (130, 90), window=240), 250, True),
    ],
)
def test_the_trace_accounts_for_the_time_that_was_measured(
    traced: dict[str, Any], measured: float, passes: bool
) -> None:
    work = device_work(traced, DEFINED, Built(), (measured * 1e-6, 1e-3))
    assert work is not None
    reason = judgement(work, Track.OWN)
    assert (reason is None) is passes, work
    assert passes or (reason is not None and Rule.OWN_KERNELS in reason)


@pytest.mark.parametrize(
    ("traced", "measured", "passes"),
    [
        (rows((10, 2), window=40), 15, False),  # a library's call of 10 us that the trace does not show
        (rows((10, 12), window=40), 15, True),
        (rows((10, 9.8), window=40), 13.6, True),  # with what lies between kernels
        (rows(*((i * 30, 4) for i in range(12)), window=400), 90, True),  # so many may still be launched by then
    ],
)
def test_what_was_queued_before_the_clock_takes_as_long_as_its_kernels(
    traced: dict[str, Any], measured: float, passes: bool
) -> None:
    work = device_work(traced, DEFINED, Built(), (measured * 1e-6, 1e-3), queued_slack=6e-6)
    assert work is not None
    assert (judgement(work, Track.OWN) is None) is passes, work
    loose = device_work(traced, DEFINED, Built(), (measured * 1e-6, 1e-3))
    assert loose is not None and judgement(loose, Track.OWN) is None


def test_a_host_that_waits_for_a_processor_in_most_calls_hides_no_kernel() -> None:
    waits = rows((20, 250), window=500)
    usual = device_work(waits, DEFINED, Built(), (480e-6, 1e-3))
    by_quick_calls = device_work(waits, DEFINED, Built(), (480e-6, 1e-3), quick=280e-6)
    assert usual is not None and by_quick_calls is not None
    assert judgement(usual, Track.OWN) is not None
    assert judgement(by_quick_calls, Track.OWN) is None


@pytest.mark.parametrize("junk", [None, [], [3], [[1, 2]], [["x", "y", None, 0]], [[0, 1.0, 1.0, 0]] * 2000])
def test_rows_that_cannot_be_read_leave_nothing_unexplained(junk: object) -> None:
    assert unexplained({"rows": junk, "busy_seconds": 1e-5, "wall_seconds": 5e-5}, 1e-4) == 0.0


@pytest.mark.parametrize(
    ("own", "library", "baseline", "passes"),
    [
        (55.0, 44.0, 200.0, False),  # an own kernel that waits beside a library's, twice as fast as the baseline
        (900.0, 44.0, 10_000.0, True),  # a small product among much work of its own
        (900.0, 44.0, 500.0, False),  # the same where the baseline is faster
        (44.0, 0.0, 1.0, True),
    ],
)
def test_a_library_is_not_hidden_by_a_kernel_that_waits(
    own: float, library: float, baseline: float, passes: bool
) -> None:
    kernels = [(MINE, own * 1e-6)] + ([(GEMM, library * 1e-6)] if library else [])
    work = device_work(trace(*kernels), DEFINED, Built(), ((own + library) * 1e-6, baseline * 1e-6))
    assert work is not None
    reason = judgement(work, Track.OWN)
    assert (reason is None) is passes, work
    assert passes or (reason is not None and Rule.OWN_KERNELS in reason and work.foreign_seconds is not None)


WHOLLY_OWN = Work(own=1.0, pytorch=0.0, library=0.0, source="kineto")


@pytest.mark.parametrize(
    ("reach", "missed", "expected"),
    [
        (None, None, Ownership.OWN),
        (Reach.OWN, None, Ownership.OWN),
        (Reach.SIMPLE, "runtime_error", Ownership.NOT_ESTABLISHED),
        (Reach.ALL, None, Ownership.NOT_ESTABLISHED),
        (Reach.ALL, "runtime_error", Ownership.NOT_OWN),
    ],
)
def test_a_trace_is_believed_where_nothing_else_was_in_reach(
    reach: Reach | None, missed: str | None, expected: Ownership
) -> None:
    work = WHOLLY_OWN.model_copy(update={"reach": reach, "missed": missed})
    assert ownership(work) is expected
    assert (judgement(work, Track.OWN) is None) == (expected is not Ownership.NOT_OWN)


def test_the_share_of_operators_that_work() -> None:
    names = {
        "aten::mm": 4.0,
        "aten::copy_": 1.0,
        "aten::equal": 1.0,
        "aten::empty": 1.0,
        "mylib::op": 2.0,
        "Torch-Compiled Region: 0/0": 1.0,
    }
    rows = [{"name": name, "kind": "cpu_op", "calls": 1, "seconds": seconds} for name, seconds in names.items()]
    assert operator_share({"wall_seconds": 10.0, "kernels": rows}) == pytest.approx(0.5)


def test_a_name_cannot_carry_terminal_codes() -> None:
    work = device_work(trace(("\x1b[2Jevil\ud800" * 100, 1.0)), DEFINED, Built())
    assert work is not None
    assert isinstance(work, Work)
    assert "\x1b" not in work.kernels[0] and len(work.kernels[0]) < 200
    assert work.model_dump_json()
