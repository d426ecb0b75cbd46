"""A device's current stream, kept waiting and with its caches evicted: by the evaluator and by the runner alike.

Everything is bound here when the module is imported, before any code of a candidate runs in a runner (runner/clock.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import torch

from hkbench.protocol.constants import HOLD_SECONDS

_TRIAL_CYCLES = 1_000_000
_WORD_BYTES = 4
_WORDS_READ = 8  #: of which one is read on a GPU: caches are filled by 32 bytes at least


class Flusher:
    """Evicts the last-level cache by writing and reading a buffer of `size` bytes on the device.

    On a GPU its stream then waits HOLD_SECONDS, unless it is not to be held up.
    """

    def __init__(self, device: torch.device, size: int, holds: bool = True) -> None:
        self.size = size
        words = max(1, size // _WORD_BYTES // _WORDS_READ) * _WORDS_READ
        self._buffer = torch.empty(words, dtype=torch.int32, device=device)  # torch takes the device here
        self._sectors = self._buffer[::_WORDS_READ]
        self._read = torch.empty(words // _WORDS_READ, dtype=torch.int8, device=device)
        self._hold = _hold_cycles(device) if holds else 0
        self._turn = 0

    def __call__(self) -> None:
        self._turn += 1
        _flush(self._buffer, self._sectors, self._read, self._turn, self._hold)


class Hold:
    """Keep a GPU's current stream waiting for HOLD_SECONDS, so that the host queues what follows before it runs."""

    def __init__(self, device: torch.device) -> None:
        self._cycles = _hold_cycles(device)

    def __call__(self) -> None:
        _sleep(self._cycles)


Flush = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int, int], None]


def no_device(*_: object) -> NoReturn:
    """Stand in for what a torch without a device part lacks. Raises RuntimeError."""
    raise RuntimeError("this build of torch has no device part")


Queue = torch._C._CudaStreamBase


def _bind() -> tuple[Callable[[torch.device], Queue], Flush, Callable[[torch.device], int], Callable[[int], None]]:
    """Make the functions of this module around primitives that no module holds by name."""
    tensor, plain = torch._C.TensorBase, torch._C.DisableTorchFunction
    fill, largest, copy = tensor.fill_, tensor.max, tensor.copy_
    # The CPU build of torch has no device part: its event and stream are empty classes.
    event = torch._C._CudaEventBase
    stream: Callable[..., Queue] = Queue
    record, wait, elapsed = (getattr(event, name, None) for name in ("record", "synchronize", "elapsed_time"))
    current_stream = getattr(torch._C, "_cuda_getCurrentStream", None)
    current_device = getattr(torch._C, "_cuda_getDevice", None)
    # A kernel of one thread that counts the device's cycles.
    sleep: Callable[[int], None] = getattr(torch._C, "_cuda_sleep", no_device)

    def queue_on(device: torch.device) -> Queue:
        """Return the stream that is current on a GPU."""
        assert current_stream and current_device
        number, index, kind = current_stream(current_device() if device.index is None else device.index)
        return stream(stream_id=number, device_index=index, device_type=kind)

    def flush_buffer(buffer: torch.Tensor, sectors: torch.Tensor, read: torch.Tensor, value: int, hold: int) -> None:
        with plain():  # an override by a mode that a candidate left behind does not apply inside
            fill(buffer, value)
            # Reading back leaves clean lines behind and keeps a write-back cache from holding the last part. On a GPU
            # the runner may have no kernels but those that fill and copy (evaluation/reach.py).
            if buffer.is_cpu:
                largest(buffer)
            else:
                copy(read, sectors)
        if hold:
            sleep(hold)

    def hold_cycles(device: torch.device) -> int:
        if device.type != "cuda":
            return 0
        assert record and wait and elapsed
        queue = queue_on(device)
        begin, end = event(enable_timing=True), event(enable_timing=True)
        sleep(_TRIAL_CYCLES)  # the first one is loaded too
        record(begin, queue)
        sleep(_TRIAL_CYCLES)
        record(end, queue)
        wait(end)
        return int(_TRIAL_CYCLES * HOLD_SECONDS / (elapsed(begin, end) / 1000.0))

    return queue_on, flush_buffer, hold_cycles, sleep


current_queue, _flush, _hold_cycles, _sleep = _bind()
