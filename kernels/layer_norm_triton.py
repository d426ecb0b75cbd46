@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, hidden, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + row * hidden + at, mask=at < hidden, other=0.0).to(tl.float32)
    mean = tl.sum(sums) / hidden
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, hidden, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * hidden + at, mask=at < hidden, other=0.0).to(tl.float32)
        centred = tl.where(at < hidden, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares) / hidden + eps)
    for start in range(0, hidden, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < hidden
        x = tl.load(x_ptr + row * hidden + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0)
        tl.store(out_ptr + row * hidden + at, (x - mean) * scale * weight + bias, mask=inside)
