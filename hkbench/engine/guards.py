"""What the guard of each runner is told: limits, private folder, environment, cage."""

from __future__ import annotations

import shutil
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hkbench import errors
from hkbench.engine.confinement import Cages
from hkbench.engine.preparation import Preparation
from hkbench.judge.job import PROFILE_FOLDER, EvaluateJob
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.sandbox.client import ForkServer, ForkServerLost
from hkbench.sandbox.environment import runner_environment
from hkbench.sandbox.limits import Limits

#: What the tracer says of itself would stand in the candidate's output. Read once, when torch is imported.
QUIET_KINETO = {"KINETO_LOG_LEVEL": "99"}
BUILD_BYTES = 1 << 30  #: that an honest build may take on a disk that is nearly full
ENDLESS_SECONDS = 1e9  #: of processor time: a batch's


class Guards:
    """For the runners of one machine. `memory_bytes`: of each runner's process tree."""

    def __init__(self, cages: Cages, device: DeviceFacts, memory_bytes: int, shared: Preparation) -> None:
        self._cages = cages
        self._common = QUIET_KINETO | _targets(device) | shared.environment()
        self._readable = shared.readable()
        self._limits = {"memory_bytes": memory_bytes}

    def runner(self, folder: Path, code: str) -> dict[str, Any]:
        """For a runner that imports `code` in its private `folder`, which is made."""
        environment = runner_environment(folder) | self._common
        return self._described(folder, environment, asdict(self._cages.cage(folder, code, self._readable)))

    def baseline(self, folder: Path) -> dict[str, Any]:
        """For a runner that is sent one problem after another, as long as the run takes."""
        environment = runner_environment(folder) | self._common
        guard = self._described(folder, environment, asdict(self._cages.cage(folder, None, self._readable)))
        return guard | {"limits": guard["limits"] | {"cpu_seconds": ENDLESS_SECONDS}}

    def profiler(self, job: EvaluateJob) -> dict[str, Any]:
        """For a profiler of the job's candidate. Made before the candidate runs, which could put links in its folder.

        The guard counts the bytes of all private folders of the evaluation: the profiled process writes two of them.
        """
        built, folder = Path(job.folder), Path(job.folder).with_name(PROFILE_FOLDER)
        own = runner_environment(built)
        caches = {name: own[name] for name in ("TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR")}
        environment = runner_environment(folder) | caches | self._common
        cage = self._cages.profiler(folder, built, job.code, job.problem.path, self._readable)
        return self._described(folder.parent, environment, asdict(cage))

    def _described(self, folder: Path, environment: dict[str, str], cage: dict[str, Any]) -> dict[str, Any]:
        limits = self._limits | {"disk_bytes": disk_bytes(folder)}
        return {"limits": limits, "folder": str(folder), "environment": environment, "cage": cage}


def disk_bytes(folder: Path) -> int:
    """What a runner may write there: its usual limit, or half of what is free, but room for a build in any case."""
    return min(Limits.disk_bytes, max(BUILD_BYTES, shutil.disk_usage(folder).free // 2))


@dataclass(frozen=True)
class Spare:
    """A runner that is forked only when the judge asks for it: its guard's and its own end of the sockets."""

    server: ForkServer
    sockets: tuple[socket.socket, socket.socket]
    guard: dict[str, Any]

    def start(self) -> None:
        """Raises:
        WorkerLost: the fork server is gone.
        """
        try:
            self.server.fork([sock.fileno() for sock in self.sockets], self.guard)
        except ForkServerLost as error:
            raise errors.WorkerLost(f"{error}; start the command again") from error
        self.close()

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def _targets(device: DeviceFacts) -> dict[str, str]:
    """Builds are for the device at hand only: left alone, torch asks the GPU, or builds for every one it knows."""
    if device.arch is None or device.kind is DeviceKind.CPU:
        return {}
    if device.kind is DeviceKind.ROCM:
        return {"PYTORCH_ROCM_ARCH": device.arch}
    major, minor = device.arch.removeprefix("sm_")[:-1], device.arch[-1]
    return {"TORCH_CUDA_ARCH_LIST": f"{major}.{minor}"}
