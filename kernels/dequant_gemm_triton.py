@triton.jit
def dequant_gemm(
    x_ptr, weight_ptr, scale_ptr, out_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0,
        )
        weight = tl.load(
            weight_ptr + columns[None, :] * k + inner[:, None],
            mask=(columns[None, :] < n) & (inner[:, None] < k), other=0,
        )
        total += tl.dot(x, weight.to(tl.float16))
    scale = tl.load(scale_ptr + columns, mask=columns < n, other=0.0)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], (total * scale[None, :]).to(tl.float16), mask=inside)
