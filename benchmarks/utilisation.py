"""What the driver says of how busy GPUs are, sampled by nvidia-smi while something else is measured.

Its figure is the share of the last sampling period of the driver (1/6 s to 1 s) in which any kernel ran. It knows
nothing of how much of the GPU that kernel used.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import fmean

EVERY_MS = 200
FIELDS = "timestamp,index,uuid,utilization.gpu"


class Utilisation:
    """Use as a context manager. `devices` are indexes or UUIDs of GPUs as nvidia-smi knows them, in the run's order."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = list(devices)
        self._lines: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Utilisation:
        tool = shutil.which("nvidia-smi")
        if tool is None or not self._devices:
            return self
        command = [tool, "-i", ",".join(self._devices), f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
        command += ["-lms", str(EVERY_MS)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._lines.extend(self._process.stdout)

    def __exit__(self, *_: object) -> None:
        if self._process is None or self._reader is None:
            return
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def shares(self, begin: float, end: float) -> list[float | None]:
        """For each device the mean share from `begin` to `end` (seconds since the epoch); None where nothing was said.

        Complete once the context is left.
        """
        found = samples(self._lines)
        return [_mean(found.get(device, ()), begin, end) for device in self._devices]


def samples(lines: Iterable[str]) -> dict[str, list[tuple[float, float]]]:
    """(seconds since the epoch, share) by index and, once more, by UUID; lines that are no samples are passed over.

    nvidia-smi writes local time.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        parts = [part.strip() for part in line.split(",")]
        try:
            stamp, index, uuid, percent = parts
            moment = datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
            share = float(percent) / 100.0
        except ValueError:
            continue
        for name in (index, uuid):
            found[name].append((moment, share))
    return found


def _mean(found: Iterable[tuple[float, float]], begin: float, end: float) -> float | None:
    inside = [share for moment, share in found if begin <= moment <= end]
    return fmean(inside) if inside else None
