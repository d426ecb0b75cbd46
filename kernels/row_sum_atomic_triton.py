@triton.jit
def row_sum(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x))
