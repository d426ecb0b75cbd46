"""rows of a table, gathered.

problem: honest_embedding
device: cuda
backend: triton
outcome: fast|slow
"""

import triton
import triton.language as tl
from torch import nn


@triton.jit
def gather_kernel(tokens_ptr, table_ptr, out_ptr, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    token = tl.load(tokens_ptr + row)
    at = tl.arange(0, BLOCK)
    inside = at < hidden
    tl.store(out_ptr + row * hidden + at, tl.load(table_ptr + token * hidden + at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)

    def forward(self, tokens):
        tokens = tokens.contiguous()
        table = self.table.weight
        hidden = table.shape[1]
        out = table.new_empty(tokens.shape[0], hidden)
        gather_kernel[(tokens.shape[0],)](tokens, table, out, hidden, BLOCK=triton.next_power_of_2(hidden))
        return out
