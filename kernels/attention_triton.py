@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, length, scale,
    DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64) * length * DIM
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    inner = tl.arange(0, DIM)
    q = tl.load(q_ptr + head + rows[:, None] * DIM + inner[None, :], mask=rows[:, None] < length, other=0.0)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    sums = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(0, length, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + columns[None, :] * DIM + inner[:, None], mask=columns[None, :] < length, other=0.0)
        scores = tl.dot(q, k) * scale
        scores = tl.where(columns[None, :] < length, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        weights = tl.exp(scores - higher[:, None])
        sums = sums * shrink + tl.sum(weights, 1)
        v = tl.load(v_ptr + head + columns[:, None] * DIM + inner[None, :], mask=columns[:, None] < length, other=0.0)
        total = total * shrink[:, None] + tl.dot(weights.to(tl.float16), v)
        top = higher
    at = head + rows[:, None] * DIM + inner[None, :]
    tl.store(out_ptr + at, (total / sums[:, None]).to(tl.float16), mask=rows[:, None] < length)
