"""Whether a GPU is idle while nobody should be using it."""

from __future__ import annotations

import time

import torch

LOOKS = 3
SLOWER = 8.0
SLACK = 5e-4  #: seconds; below a time slice of another context's kernel, far above the jitter of a launch
INTERRUPTED = 1.5e-4  #: seconds more than usual that a kernel takes which waits for one of another process
MAX_INTERRUPTED = 0.1  #: share of the kernels
MIN_INTERRUPTED = 8
#: Seconds that the kernel took at least, of all that this process has tried: other evaluations may use a device while
#: one learns what is usual there, the first of them before there is a candidate.
_LEAST: dict[torch.device, float] = {}


class IdleProbe:
    """Time a trivial kernel of the evaluator's own, while the runners are stopped.

    A kernel of another process that goes on (a persistent one, or work that was left queued) has to share the GPU in
    time slices of a millisecond or so with this one, which otherwise takes microseconds. Short kernels of another
    process, with pauses between them, hold up some of several.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._gpu = device.type == "cuda"
        self.looks = 0
        self.busy = 0
        self.kernels = 0  #: but the first of each look, before which the device may have been asleep
        self.interrupted = 0  #: kernels that waited for another process's
        if self._gpu:
            self._cell = torch.zeros(1, device=device)
            self._once()
            now = min(self._once() for _ in range(20))
            self._usual = _LEAST[device] = min(now, _LEAST.get(device, now))

    def forget(self) -> None:
        """Forget all looks."""
        self.looks = self.busy = self.kernels = self.interrupted = 0

    def look(self) -> None:
        """Count a look, and whether the device was busy."""
        if self._gpu:
            self.looks += 1
            took = [self._once() for _ in range(LOOKS)]
            self.busy += min(took) > SLOWER * self._usual + SLACK
            self.kernels += len(took) - 1
            self.interrupted += sum(seconds > self._usual + INTERRUPTED for seconds in took[1:])

    @property
    def reason(self) -> str | None:
        """What to say when the device was busy at most looks; one busy look may be a neighbour's work."""
        if self.busy > max(2, self.looks // 2):
            seen = f"the device was still at work in {self.busy} of {self.looks} looks while both sides were stopped"
        elif self.interrupted >= MIN_INTERRUPTED and self.interrupted > MAX_INTERRUPTED * self.kernels:
            seen = f"other work held up {self.interrupted} of {self.kernels} kernels while both sides were stopped"
        else:
            return None
        return f"{seen}: a kernel of the candidate's that goes on, or another program that uses the device"

    def _once(self) -> float:
        torch.cuda.synchronize(self._device)
        start = time.perf_counter()
        self._cell.add_(1)
        torch.cuda.synchronize(self._device)
        return time.perf_counter() - start
