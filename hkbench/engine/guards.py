"""What the guard of each runner is told: limits, private folder, environment, cage."""

from __future__ import annotations

import shutil
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from hkbench import errors
from hkbench.device_kinds import model_of
from hkbench.engine.confinement import Cages
from hkbench.engine.emulation import EmulatedParts
from hkbench.engine.preparation import PchBuilder
from hkbench.errors import Unavailable
from hkbench.evaluation.job import PROFILE_FOLDER, EvaluateJob
from hkbench.protocol import wire
from hkbench.records import DeviceFacts
from hkbench.sandbox.cage import Cage
from hkbench.sandbox.client import ForkServer, ForkServerLost
from hkbench.sandbox.environment import runner_environment
from hkbench.sandbox.limits import Limits

#: What the tracer says of itself would stand in the candidate's output. Read once, when torch is imported.
QUIET_KINETO = {"KINETO_LOG_LEVEL": "99"}
BUILD_BYTES = 1 << 30  #: that an honest build may take on a disk that is nearly full
FULL_BYTES = 256 << 20  #: less than this free is a full disk: a compiler that fails removes what it wrote
ENDLESS_SECONDS = 1e9  #: of processor time: a batch's


#: As the fork server takes it: "limits", "folder", "environment" and "cage".
Guard = dict[str, object]


class Guards:
    """For the runners of one machine. `memory_bytes`: of each runner's process tree."""

    def __init__(
        self,
        cages: Cages,
        device: DeviceFacts,
        memory_bytes: int,
        shared: PchBuilder,
        emulation: EmulatedParts | None = None,
    ) -> None:
        self._cages = cages
        # Build for the device at hand only: left alone, torch asks the GPU, or builds for every one it knows.
        targets = {} if device.arch is None else model_of(device.kind).build_targets(device.arch)
        self._common = QUIET_KINETO | targets | shared.environment()
        self._readable = shared.readable()
        if emulation is not None:
            self._common |= emulation.environment()
            self._readable += emulation.readable()
        self._memory_bytes = memory_bytes

    def runner(self, folder: Path, code: str) -> Guard:
        """Return the guard of a runner that imports `code` in its private `folder`, which is made."""
        environment = runner_environment(folder) | self._common
        return self._described(folder, environment, self._cages.cage(folder, code, self._readable))

    def baseline(self, folder: Path) -> Guard:
        """Return the guard of a runner that is sent one problem after another, as long as the run takes."""
        environment = runner_environment(folder) | self._common
        cage = self._cages.cage(folder, None, self._readable)
        return self._described(folder, environment, cage, cpu_seconds=ENDLESS_SECONDS)

    def profiler(self, job: EvaluateJob) -> Guard:
        """Return the guard of a profiler for the job's candidate.

        Make it before the candidate runs, which could put links in its folder.

        The guard counts the bytes of all private folders of the evaluation: the profiled process writes two of them.
        """
        built, folder = Path(job.folder), Path(job.folder).with_name(PROFILE_FOLDER)
        own = runner_environment(built)
        caches = {name: own[name] for name in ("TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR")}
        environment = runner_environment(folder) | caches | self._common
        cage = self._cages.profiler(folder, built, job.code, job.problem.path, self._readable)
        return self._described(folder.parent, environment, cage)

    def _described(self, folder: Path, environment: dict[str, str], cage: Cage, **limits: float) -> Guard:
        limits |= {"memory_bytes": self._memory_bytes, "disk_bytes": disk_bytes(folder)}
        return {"limits": limits, "folder": str(folder), "environment": environment, "cage": asdict(cage)}


def disk_bytes(folder: Path) -> int:
    """Return how much a runner may write: its usual limit or half of the free space, but always room for a build."""
    return min(Limits.disk_bytes, max(BUILD_BYTES, shutil.disk_usage(folder).free // 2))


def check_disk(folder: Path) -> None:
    """Raise Unavailable where the disk of a private folder is full: what fails there says nothing of a candidate.

    A candidate cannot fill it: see `disk_bytes`.
    """
    free = shutil.disk_usage(folder).free
    if free < FULL_BYTES:
        raise Unavailable(f"the disk of {folder} is full ({free >> 20} MiB free): make room, or name another by TMPDIR")


@dataclass(frozen=True)
class DeferredRunner:
    """A runner that is forked only when the evaluator asks for it: its guard's and its own end of the sockets."""

    server: ForkServer
    sockets: tuple[socket.socket, socket.socket]
    guard: Guard

    def start(self) -> None:
        """Fork the process.

        Raises:
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


@dataclass(frozen=True)
class FurtherRunners:
    """Runners of the same candidate that are forked when the evaluator asks for one, who gets its sockets."""

    server: ForkServer
    socket: socket.socket
    guard: Guard

    def start(self) -> None:
        """Fork the process and hand over its channel and control.

        Raises:
            WorkerLost: the fork server or the evaluator is gone.
        """
        pairs = [socket.socketpair() for _ in range(2)]
        (channel, runner), (control, guard) = pairs
        try:
            self.server.fork([guard.fileno(), runner.fileno()], self.guard)
            wire.send_descriptors(self.socket, [channel.fileno(), control.fileno()])
        except (ForkServerLost, wire.PeerClosed) as error:
            raise errors.WorkerLost(f"{error}; start the command again") from error
        finally:
            for sock in (*pairs[0], *pairs[1]):
                sock.close()

    def close(self) -> None:
        self.socket.close()


@dataclass(frozen=True)
class RunnersOnDemand:
    """The runners of one evaluation that are forked when its evaluator asks for them."""

    profiler: DeferredRunner
    further: FurtherRunners

    def close(self) -> None:
        self.profiler.close()
        self.further.close()
