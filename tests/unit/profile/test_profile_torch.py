"""Whose kernel it is, and profiles from answers that may be anything."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from hkbench.profile import kernel_profile
from hkbench.profile.torch_profiler import MOST_KERNELS, owner_of
from hkbench.records import Owner
from hkbench.runner.profile import profile_forward

PYTORCH = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*, float const*, int)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >(...)",
    "void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<float> >(...)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(...)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
    "Memcpy DtoD (Device -> Device)",
    "Memset (Device)",
    "__amd_rocclr_fillBufferAligned",
    "triton_poi_fused_add_mul_0",
    "aten::addmm",
]
LIBRARY = [
    "ampere_sgemm_128x64_nn",
    "volta_sgemm_32x128_tn",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "sm80_xmma_fprop_implicit_gemm_indexed_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize64x64x8_stage3",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(...)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, false>(...)",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(...)",
    "void gemmSN_NN_kernel<float, 128, 2, 4, 8, 3, 4, false, cublasGemvTensorStridedBatched<float const> >(...)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(...)",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN_1LDSB0_APM1",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1",
    "Custom_Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1",
    "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
    "MIOpenBatchNormFwdTrainSpatial",
    "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt256x128x32_wt32x32x8_ws1x1_wr2x2",
    "void ck::kernel_gemm_xdlops_v2r3<ck::GridwiseGemm_k0mk1_k0nk1_mn_xdlops_v2r3<256, float> >(...)",
    "mkldnn_convolution",
]
CANDIDATE = [
    "rmsnorm_kernel(float const*, float const*, float*, int, float)",
    "sgemm_tiled(float const*, float const*, float*, int, int, int)",
    "void my_hgemm_kernel<128, 128, 32>(__half const*, __half const*, __half*)",
    "void gemv_kernel<float>(float const*, float const*, float*)",
    "(anonymous namespace)::softmax_kernel(float*, float const*, int)",
    "void softmax_warp<32>(float*, float const*)",
    "micro_tk(micro_globals)",
    "matmul_kernel",
    "_attn_fwd",
    "stack::push_kernel(int*)",
    "(the candidate's own code)",
]


@pytest.mark.parametrize("name", PYTORCH)
def test_kernels_of_pytorch(name: str) -> None:
    assert owner_of(name) is Owner.PYTORCH


@pytest.mark.parametrize("name", LIBRARY)
def test_kernels_of_libraries(name: str) -> None:
    assert owner_of(name) is Owner.LIBRARY


@pytest.mark.parametrize("name", CANDIDATE)
def test_kernels_of_the_candidate(name: str) -> None:
    assert owner_of(name) is Owner.CANDIDATE


def row(name: str = "mine", seconds: object = 1e-3, calls: object = 1) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "calls": calls}


def test_kernels_are_sorted_and_shared_out() -> None:
    answer = {"on_gpu": True, "wall_seconds": 4e-3, "kernels": [row("mine"), row("aten::add", 3e-3, 2.0)]}
    profile = kernel_profile(answer)
    assert profile is not None
    assert [(use.name, use.owner, use.calls, use.share) for use in profile.kernels] == [
        ("aten::add", Owner.PYTORCH, 2, pytest.approx(0.75)),
        ("mine", Owner.CANDIDATE, 1, pytest.approx(0.25)),
    ]
    assert profile.seconds == pytest.approx(4e-3)
    assert any("only 25%" in finding for finding in profile.findings)


@pytest.mark.parametrize(
    "junk",
    [
        "text", None, 3, [], {}, {"name": "x"}, row(seconds=math.nan), row(seconds=math.inf), row(seconds=-1.0),
        row(seconds="1"), row(seconds=True), row(seconds=10**400), row(calls=None), row(calls=-2), row(calls=1e300),
        {"name": 7, "seconds": 1.0, "calls": 1},
    ],
)  # fmt: skip
def test_junk_rows_are_passed_over(junk: object) -> None:
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 1e-3, "kernels": [junk, row()]})
    assert profile is not None
    assert [use.name for use in profile.kernels] == ["mine"]


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"wall_seconds": 1.0, "on_gpu": True}, {"wall_seconds": "1", "kernels": [row()]},
        {"wall_seconds": math.nan, "kernels": [row()]}, {"wall_seconds": -1.0, "kernels": [row()]},
        {"wall_seconds": 1.0, "on_gpu": True, "kernels": 5}, {"wall_seconds": 1.0, "on_gpu": True, "kernels": None},
        {"wall_seconds": 1.0, "on_gpu": True, "kernels": [row(seconds=0)]},
    ],
)  # fmt: skip
def test_an_answer_without_a_profile(answer: dict[str, Any]) -> None:
    assert kernel_profile(answer) is None


def test_a_profile_has_a_size() -> None:
    kernels = [row("\ud800" * 100_000) for _ in range(10 * MOST_KERNELS)]
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 1.0, "kernels": kernels})
    assert profile is not None
    assert len(profile.kernels) == MOST_KERNELS
    assert len(profile.model_dump_json()) < 100_000


def test_what_a_prompt_may_say_of_a_gpu_pass() -> None:
    kernels = [
        row("void at::native::direct_copy_kernel_cuda<float>(...)", 1e-4),
        *[row(f"k{n}", 1e-4) for n in range(4)],
    ]
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 5e-3, "kernels": kernels})
    assert profile is not None
    text = "\n".join(profile.findings)
    for part in (
        "20% of the time goes to PyTorch's dtype conversions",
        "5 kernels run per pass",
        "0.500 ms of 5.000 ms",
    ):
        assert part in text


def test_a_real_cpu_pass() -> None:
    values = torch.randn(300, 300)
    answer = profile_forward(lambda: torch.relu(values @ values), torch.device("cpu"))
    profile = kernel_profile(answer)
    assert profile is not None
    names = {use.name: use.owner for use in profile.kernels}
    assert names["aten::mm"] is Owner.PYTORCH
    assert names["(the candidate's own code)"] is Owner.CANDIDATE
    assert sum(use.share for use in profile.kernels) == pytest.approx(1.0)
    assert next(use.calls for use in profile.kernels if use.name == "aten::mm") == 1
