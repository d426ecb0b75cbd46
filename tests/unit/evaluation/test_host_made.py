"""What the host made for kernels to read: what was moved is told apart from what was computed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
import torch

from hkbench.evaluation import host_made
from hkbench.evaluation.host_made import Table


def _table(*tensors: torch.Tensor) -> Table:
    """Return the table that the device would make of tensors that kernels read."""
    rows = []
    for tensor in tensors:
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        for at in range(0, len(data), 16):
            number = hashlib.blake2b(data[at : at + 16], digest_size=8).digest()
            rows += [int.from_bytes(number, "little"), len(data[at : at + 16])]
    return host_made.table(np.array(rows, np.uint64).tobytes())


def test_rows_are_counted_once() -> None:
    whole = _table(torch.arange(64, dtype=torch.int32), torch.arange(64, dtype=torch.int32))
    assert host_made.size(whole) == 256
    assert host_made.size(host_made.without(whole, _table(torch.arange(32, dtype=torch.int32)))) == 128
    assert host_made.size(host_made.within(whole, _table(torch.arange(32, dtype=torch.int32)))) == 128
    assert host_made.size(host_made.table(b"")) == 0


Work = Callable[[torch.Tensor], torch.Tensor]
MOVED: dict[str, Work] = {
    "transposed": lambda x: x.t(),
    "cast to bf16": lambda x: x.bfloat16(),
    "cast to bytes": lambda x: (x * 20).to(torch.int8),
    "padded": lambda x: torch.nn.functional.pad(x, (3, 5)),
    "repeated": lambda x: x.repeat(3, 1),
    "a part": lambda x: x[:, ::2],
}
COMPUTED: dict[str, Work] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax in bf16": lambda x: torch.softmax(x, -1).bfloat16(),
    "layer norm in bf16": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]).bfloat16(),
    "product": lambda x: x @ x.t(),
    "turned over": lambda x: ~torch.softmax(x, -1).view(torch.int32),
    "sums": lambda x: x.sum(-1),
    "running sum": lambda x: x.cumsum(-1),
}


@pytest.mark.parametrize("name", [*MOVED, *COMPUTED])
def test_what_depends_on_many_elements_is_told_apart(name: str) -> None:
    torch.manual_seed(5)
    x, other = torch.randn(96, 512), torch.randn(96, 512)
    (near,) = host_made.sparsely_changed([x], [other], 7)
    assert isinstance(near, torch.Tensor)
    assert 0.02 < (near != x).float().mean() < 0.05
    work = (MOVED | COMPUTED)[name]
    first, second, third = (_table(work(given), torch.ones(4096)) for given in (x, near, other))
    share = host_made.computed(first, second, third) / work(x).nbytes
    assert share > 0.85 if name in COMPUTED else share < 0.25


def test_inputs_keep_their_structure() -> None:
    given: list[object] = [torch.zeros(1000), [torch.zeros(3, 1000, dtype=torch.int64)], 5]
    others: list[object] = [torch.ones(1000), [torch.ones(3, 1000, dtype=torch.int64)], 5]
    first, second, third = host_made.sparsely_changed(given, others, 1)
    assert isinstance(first, torch.Tensor) and isinstance(second, list) and third == 5
    assert 0 < first.sum() < 80 and 0 < second[0].sum() < 240 and second[0].dtype == torch.int64
