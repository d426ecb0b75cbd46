"""Large tensors of a model drawn by all processors, alike in every process that makes it under the same seed.

PyTorch draws a tensor of the host's by one generator, one value after the other: a layer of 32768 by 32768 takes eight
seconds, in which a GPU waits. Here the values come of a generator for each `CHUNK`, whose seeds are drawn by PyTorch's
own. So they are other values than PyTorch's, of the same distribution, and depend on the tensor's size; smaller tensors
have PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch

CHUNK = 1 << 22  #: elements of one generator
MIN_ELEMENTS = 1 << 24  #: of a tensor that is drawn so: PyTorch takes 0.1 s for as many
_DRAWING = ("uniform_", "normal_")  #: what torch.nn.init draws by


@contextmanager
def quick_draws() -> Iterator[None]:
    """Have `Tensor.uniform_` and `Tensor.normal_`, and with them torch.nn.init, draw large tensors in chunks."""
    with _drawing(_by_chunks):
        yield


@contextmanager
def no_draws() -> Iterator[None]:
    """Have them leave large tensors as they are, where nobody asks for the values."""
    with _drawing(_small_ones):
        yield


@contextmanager
def _drawing(way: Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]) -> Iterator[None]:
    for name in _DRAWING:
        setattr(torch.Tensor, name, way(getattr(torch.Tensor, name)))
    try:
        yield
    finally:
        for name in _DRAWING:
            delattr(torch.Tensor, name)  # PyTorch's are those of a base class


def _by_chunks(plain: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(plain)
    def drawn(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        if not _is_large(tensor) or named.get("generator") is not None:
            return plain(tensor, *arguments, **named)
        chunks = tensor.detach().view(-1).split(CHUNK)
        seeds = torch.empty(len(chunks), dtype=torch.int64, device="cpu").random_().tolist()

        def draw(chunk: torch.Tensor, seed: int) -> None:
            plain(chunk, *arguments, **{**named, "generator": torch.Generator("cpu").manual_seed(seed)})

        with ThreadPoolExecutor(min(len(chunks), torch.get_num_threads())) as pool:
            list(pool.map(draw, chunks, seeds))
        return tensor

    return drawn


def _small_ones(plain: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(plain)
    def drawn(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
        return tensor if _is_large(tensor) else plain(tensor, *arguments, **named)

    return drawn


def _is_large(tensor: torch.Tensor) -> bool:
    if tensor.requires_grad and torch.is_grad_enabled():
        return False  # which PyTorch refuses
    ordinary = tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.is_contiguous()
    return ordinary and tensor.numel() >= MIN_ELEMENTS
