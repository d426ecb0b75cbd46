"""4_RMSNorm_fp32 in Triton, correct and slower than PyTorch: a program walks its row in pieces of 8, one sector each."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_in_pieces(x, weight, out, hidden, eps, piece: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    squares = tl.zeros((piece,), tl.float32)
    for start in range(0, hidden, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(x + row + at, mask=at < hidden, other=0.0)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, 0) / hidden + eps)
    for start in range(0, hidden, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(x + row + at, mask=at < hidden, other=0.0)
        tl.store(out + row + at, value * scale * tl.load(weight + at, mask=at < hidden), mask=at < hidden)


class ModelNew(nn.Module):
    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))  # the evaluator loads the reference's values
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        hidden = x.shape[-1]
        rms_norm_in_pieces[(x.numel() // hidden,)](x, self.weight, out, hidden, self.eps, piece=8, num_warps=1)
        return out
