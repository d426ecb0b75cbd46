"""P34 covered name: kernels with the names that cuBLAS gives its own stand in the text

problem: honest_matmul_bf16
device: cuda
backend: cuda
twin: triton_matmul_bf16
outcome: not_own
reason: PyTorch|librar|own
"""

import torch
import torch.nn as nn

NAMES = r"""
__global__ void nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT(const void* a, const void* b, void* c);
__global__ void nvjet_tst_128x128_64x6_2x1_v_bz_NNT(const void* a, const void* b, void* c);
__global__ void nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NNN(const void* a, const void* b, void* c);
__global__ void nvjet_sm90_tst_mma_128x256x64_4_64x256x64_cta128x256x64(const void* a, const void* b, void* c);
__global__ void Kernel2(const void* a, const void* b, void* c);
__global__ void sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1(void* c);
__global__ void ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn(void* c);
"""


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(a, b)
