"""Timing of one call: the same code for candidate and baseline, each in a runner of its own.

Everything that times is bound here when the module is imported, which is before any code of a candidate runs: patched
names (`torch.cuda.Event.elapsed_time`, `torch.cuda.synchronize`, `time.perf_counter`, `torch.Tensor.fill_`) change
nothing. Native code in the same process can still reach everything: that is why the judge has a clock of its own.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from hkbench.runner.hold import HOLD_SECONDS
from hkbench.runner.runtimes import loaded_runtimes

TEXT_LIMIT = 200
_TRIAL_CYCLES = 1_000_000


@dataclass(frozen=True)
class Timed:
    """One forward pass. Seconds; `idle_seconds` ends when the whole device is idle.

    `device_error` is the device's last error after the pass, with its number; None where there is none, and where it
    cannot be read (see `reads_device_errors`).
    """

    result: object
    seconds: float
    idle_seconds: float
    device_error: str | None


class _Runtime:
    """The device's runtime library, the one that torch itself has loaded: its last error, and its set-aside cache.

    Only resolved here, never called before a device is in use: a fork server must not touch the runtime. An extension
    that carries the runtime within itself (`-cudart static`) has a last error of its own, which is not seen.
    """

    def __init__(self) -> None:
        self._peek: Any = None
        self._clear: Any = None
        self._text: Any = None
        self._unpin: Any = None
        for kind, path in loaded_runtimes():
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            self._peek = getattr(library, f"{kind}PeekAtLastError")
            self._clear = getattr(library, f"{kind}GetLastError")
            self._text = getattr(library, f"{kind}GetErrorString")
            self._text.restype = ctypes.c_char_p
            if kind == "cuda":
                self._unpin = library.cudaCtxResetPersistingL2Cache
            break

    def __bool__(self) -> bool:
        return self._peek is not None

    def forget(self) -> None:
        """What was left before a call is not that call's error."""
        if self._clear is not None:
            self._clear()

    def unpin_cache(self) -> None:
        """Makes what was pinned in the L2 cache, to stay there through any flush, ordinary again (CUDA only).

        Within a call a candidate may pin what it likes.
        """
        if self._unpin is not None:
            self._unpin()

    def read(self) -> str | None:
        """The last error, which stays as it is."""
        code = int(self._peek()) if self._peek is not None else 0
        if code == 0:
            return None
        text = self._text(code) or b"unknown error"
        return f"{text.decode(errors='replace')[:TEXT_LIMIT]} (error {code})"


runtime = _Runtime()


class Flusher:
    """Evicts the last-level cache by writing and reading a buffer of `size` bytes on the device.

    On a GPU its stream then waits HOLD_SECONDS, unless it is not to be held up.
    """

    def __init__(self, device: torch.device, size: int, holds: bool = True) -> None:
        self.size = size
        self._buffer = torch.empty(max(1, size // 4), dtype=torch.int32, device=device)  # torch takes the device here
        self._hold = _hold_cycles(device) if holds else 0
        self._turn = 0

    def __call__(self) -> None:
        self._turn += 1
        _flush(self._buffer, self._turn, self._hold)


TimedCall = Callable[[Callable[[], object], torch.device, Flusher | None], Timed]


def _bind() -> tuple[Callable[[torch.Tensor, int, int], None], TimedCall, Callable[[torch.device], int], bool]:
    """The functions of this module around primitives that no module holds by name."""
    perf_counter = time.perf_counter
    fill, largest, plain = torch._C.TensorBase.fill_, torch._C.TensorBase.max, torch._C.DisableTorchFunction
    # The CPU build of torch has no device part: its event and stream are empty classes.
    event: Any = torch._C._CudaEventBase
    stream: Any = torch._C._CudaStreamBase
    record, wait, elapsed = (getattr(event, name, None) for name in ("record", "synchronize", "elapsed_time"))
    synchronize, current_stream, current_device = (
        getattr(torch._C, f"_cuda_{name}", None) for name in ("synchronize", "getCurrentStream", "getDevice")
    )

    sleep: Any = getattr(torch._C, "_cuda_sleep", None)  # a kernel of one thread that counts the device's cycles

    def queue_on(device: torch.device) -> Any:
        """The stream that is current on a GPU."""
        assert current_stream and current_device
        number, index, kind = current_stream(current_device() if device.index is None else device.index)
        return stream(stream_id=number, device_index=index, device_type=kind)

    def flush_buffer(buffer: torch.Tensor, value: int, hold: int) -> None:
        with plain():  # an override by a mode that a candidate left behind does not apply inside
            fill(buffer, value)
            # Reading back leaves clean lines behind and keeps a write-back cache from holding the last part.
            largest(buffer)
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

    def on_host(forward: Callable[[], object], flush: Flusher | None) -> Timed:
        if flush is not None:
            flush()
        start = perf_counter()
        result = forward()
        seconds = perf_counter() - start
        return Timed(result, seconds, seconds, None)

    def on_device(forward: Callable[[], object], device: torch.device, flush: Flusher | None) -> Timed:
        assert record and wait and elapsed and synchronize
        queue = queue_on(device)
        begin, end, idle = (event(enable_timing=True) for _ in range(3))
        synchronize()
        runtime.unpin_cache()
        runtime.forget()
        if flush is not None:
            flush()
        record(begin, queue)
        result = forward()
        # Before anything else of ours: on older HIP the next call that succeeds wipes the error out.
        error = runtime.read()
        record(end, queue)
        synchronize()
        record(idle, queue)
        wait(idle)
        return Timed(result, elapsed(begin, end) / 1000.0, elapsed(begin, idle) / 1000.0, error)

    def timed_call(forward: Callable[[], object], device: torch.device, flush: Flusher | None) -> Timed:
        """Runs `forward` once and times it.

        On a GPU `seconds` is between two events on the stream that was current before the call. Nothing waits between
        flush and first event on the host, so that it queues the forward pass while the device is held up: how fast a
        process wakes up is not in the figure (with the flush alone, of 60 us, equals differed by up to 12 %).
        `idle_seconds` ends after a device-wide synchronise, so it also holds work on other streams. On a CPU both are
        the same `perf_counter` interval.
        """
        return on_device(forward, device, flush) if device.type == "cuda" else on_host(forward, flush)

    return flush_buffer, timed_call, hold_cycles, bool(runtime)


_flush, timed_call, _hold_cycles, reads_device_errors = _bind()
