@triton.jit
def lora_expand(
    x_ptr, b_ptr, out_ptr, tokens, rank, hidden,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, rank, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None] * rank + inner[None, :],
            mask=(rows[:, None] < tokens) & (inner[None, :] < rank), other=0.0,
        )
        b = tl.load(
            b_ptr + columns[None, :] * rank + inner[:, None],
            mask=(columns[None, :] < hidden) & (inner[:, None] < rank), other=0.0,
        )
        total += tl.dot(x, b)
    at = rows[:, None] * hidden + columns[None, :]
    inside = (rows[:, None] < tokens) & (columns[None, :] < hidden)
    tl.store(out_ptr + at, total.to(tl.bfloat16), mask=inside)
