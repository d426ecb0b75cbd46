"""Timing of one call: the same code for candidate and baseline, each in a runner of its own.

Everything that times is bound here when the module is imported, which is before any code of a candidate runs: patched
names (`torch.cuda.Event.elapsed_time`, `torch.cuda.synchronize`, `time.perf_counter`, `torch.Tensor.fill_`) change
nothing. Native code in the same process can still reach everything: that is why the evaluator has a clock of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from hkbench.protocol.device_stream import current_queue
from hkbench.protocol.runtimes import loaded_runtimes

TEXT_LIMIT = 200


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
        self._peek: Callable[[], int] | None = None
        self._clear: Callable[[], int] | None = None
        self._text: Callable[[int], bytes | None] = lambda _code: None
        self._unpin: Callable[[], int] | None = None
        for kind, path in loaded_runtimes():
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            self._peek = getattr(library, f"{kind}PeekAtLastError")
            self._clear = getattr(library, f"{kind}GetLastError")
            text = getattr(library, f"{kind}GetErrorString")
            text.restype = ctypes.c_char_p
            self._text = text
            if kind == "cuda":
                self._unpin = library.cudaCtxResetPersistingL2Cache
            break

    def __bool__(self) -> bool:
        return self._peek is not None

    def forget(self) -> None:
        """Clear the last error: what was left before a call is not that call's error."""
        if self._clear is not None:
            self._clear()

    def unpin_cache(self) -> None:
        """Make what was pinned in the L2 cache, to stay there through any flush, ordinary again (CUDA only).

        Within a call a candidate may pin what it likes.
        """
        if self._unpin is not None:
            self._unpin()

    def read(self) -> str | None:
        """Return the last error, which stays as it is."""
        code = int(self._peek()) if self._peek is not None else 0
        if code == 0:
            return None
        text = self._text(code) or b"unknown error"
        return f"{text.decode(errors='replace')[:TEXT_LIMIT]} (error {code})"


runtime = _Runtime()


def _bind_stop() -> Callable[[], None]:
    kill, process, number = os.kill, os.getpid, signal.SIGSTOP

    def stop_self() -> None:
        """Stop all threads of this process; it returns when somebody else has had it go on."""
        kill(process(), number)

    return stop_self


stop_self = _bind_stop()

TimedCall = Callable[[Callable[[], object], torch.device, Callable[[], None] | None], Timed]


def _bind() -> tuple[TimedCall, bool]:
    """Make the functions of this module around primitives that no module holds by name."""
    perf_counter = time.perf_counter
    # The CPU build of torch has no device part: its event and stream are empty classes.
    event = torch._C._CudaEventBase
    record, wait, elapsed = (getattr(event, name, None) for name in ("record", "synchronize", "elapsed_time"))
    synchronize = getattr(torch._C, "_cuda_synchronize", None)
    queue_on = current_queue

    def on_host(forward: Callable[[], object], flush: Callable[[], None] | None) -> Timed:
        if flush is not None:
            flush()
        start = perf_counter()
        result = forward()
        seconds = perf_counter() - start
        return Timed(result, seconds, seconds, None)

    def on_device(forward: Callable[[], object], device: torch.device, flush: Callable[[], None] | None) -> Timed:
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

    def timed_call(forward: Callable[[], object], device: torch.device, flush: Callable[[], None] | None) -> Timed:
        """Run `forward` once and time it.

        On a GPU `seconds` is between two events on the stream that was current before the call. Nothing waits between
        flush and first event on the host, so that it queues the forward pass while the device is held up: how fast a
        process wakes up is not in the figure (with the flush alone, of 60 us, equals differed by up to 12 %).
        `idle_seconds` ends after a device-wide synchronise, so it also holds work on other streams. On a CPU both are
        the same `perf_counter` interval.
        """
        return on_device(forward, device, flush) if device.type == "cuda" else on_host(forward, flush)

    return timed_call, bool(runtime)


timed_call, reads_device_errors = _bind()
