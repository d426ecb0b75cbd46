"""The runners of track `own` on a GPU, which see libraries without the device code that computes (stripped.py)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hkbench.device_kinds import model_of
from hkbench.engine.stripped import forget_unused, replaced_files
from hkbench.evaluation.job import EvaluateJob
from hkbench.profile.fatbin import UnknownFormat
from hkbench.protocol.constants import WITHOUT_LIBRARIES
from hkbench.records import DeviceKind, EvaluationSettings, Isolation, Reach, Track
from hkbench.sandbox import overlay
from hkbench.sandbox.cage import NAMESPACES
from hkbench.sandbox.client import ForkServer, ForkServerLost
from hkbench.sandbox.environment import readable_paths
from hkbench.shipped import cache_folder

CHECK_SECONDS = 120.0
_CHECK = "hkbench.runner.library_check"
_DEVICE_FILES = {DeviceKind.CUDA: Path("/dev/nvidiactl"), DeviceKind.ROCM: Path("/dev/kfd")}
_DRIVERS = (Path("/proc/driver/nvidia/version"), Path("/sys/module/amdgpu/version"))


class _NotUsable(Exception):
    """The device does not work with the copies, or computes in spite of them."""


class LibraryFreeRunners:
    """Their fork servers, one for each reach, started when they are first asked for."""

    def __init__(self, settings: EvaluationSettings) -> None:
        self._track = settings.track
        self._environment: dict[str, str] = {}
        self._device = ""
        self._servers: dict[Reach, ForkServer] = {}
        self._starting: dict[Reach, asyncio.Task[None]] = {}
        #: Why all libraries are within reach of everybody; None: they are not.
        self._reason: str | None = "no fork server for other runners was started"
        self._failed: dict[Reach, str] = {}  # why there is no server for a reach

    def start(self, kind: DeviceKind | None, isolation: Isolation, environment: dict[str, str], early: bool) -> None:
        """Begin to start the first one, if `early`; else it is started for the first candidate.

        `kind`: of the device; None: the best that there is.
        """
        self._environment = environment | {WITHOUT_LIBRARIES: "1"}
        self._reason = self._why_none(kind, isolation)
        if self._reason is None and early:
            self._begin(Reach.OWN)

    async def least(self, wanted: Reach) -> tuple[Reach, str | None]:
        """Return what a candidate has in reach that is to have at least `wanted`, once its runners can be forked.

        The second is why that is more, where the machine is the reason.
        """
        if wanted is not Reach.ALL and self._reason is None:
            await asyncio.shield(self._begin(wanted))  # others wait for it too
        because = self._reason or self._failed.get(wanted)
        return (wanted, None) if because is None else (Reach.ALL, because)

    async def with_reach(self, job: EvaluateJob, wanted: Reach) -> EvaluateJob:
        """Return the job with what `least` says of it."""
        reach, because = await self.least(wanted)
        return job.model_copy(update={"reach": reach, "all_because": because})

    def server(self, reach: Reach) -> ForkServer:
        """Return the fork server of runners with a reach that `least` has returned."""
        return self._servers[reach]

    async def close(self) -> None:
        """End the servers."""
        for starting in self._starting.values():
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
        for server in self._servers.values():
            await asyncio.to_thread(server.close)

    def _begin(self, reach: Reach) -> asyncio.Task[None]:
        if reach not in self._starting:
            self._starting[reach] = asyncio.create_task(self._start(reach))
        return self._starting[reach]

    async def _start(self, reach: Reach) -> None:
        store = cache_folder() / "libraries"
        server = ForkServer("hkbench.runner.main", self._environment)
        try:
            replaced = await asyncio.to_thread(replaced_files, readable_paths(), store, reach is Reach.SIMPLE)
            with tempfile.NamedTemporaryFile("w", dir=store, suffix=".json") as places:
                json.dump(replaced, places)
                places.flush()
                words = overlay.words(Path(places.name))
                if reach is Reach.OWN:
                    await self._check(words, store / f"{_described(replaced)}.checked")
                server.start(words)
                self._servers[reach] = server
                await asyncio.to_thread(server.wait_ready)
            await asyncio.to_thread(forget_unused, store)
        except (UnknownFormat, OSError, ForkServerLost, _NotUsable) as error:
            self._failed[reach] = f"libraries could not be replaced: {error}"

    async def _check(self, words: Sequence[str], passed: Path) -> None:
        """Check once that the device works with these copies; the file `passed` is made when it does.

        Raises:
            _NotUsable: it does not.
        """
        if passed.exists():
            passed.touch()
            return
        command = (*words, sys.executable, "-m", _CHECK, self._device)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, env=self._environment, stderr=pipe)
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                _, said = await process.communicate()
        except TimeoutError as error:
            raise _NotUsable(f"with the copies {self._device} did nothing for {CHECK_SECONDS:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            lines = said.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            raise _NotUsable(f"with the copies on {self._device}: {lines[-1][:300]}")
        passed.touch()

    def _why_none(self, kind: DeviceKind | None, isolation: Isolation) -> str | None:
        if kind is None:
            here = (kind for kind, file in _DEVICE_FILES.items() if file.exists())
            kind = next(here, DeviceKind.CPU)
        model = model_of(kind)
        self._device = model.torch_device(0)
        if self._track is Track.ANY and model.libraries_removable:
            return "in track `any` libraries are within reach"
        return why_in_reach(kind, isolation)


def why_in_reach(kind: DeviceKind, isolation: Isolation) -> str | None:
    """Return why libraries are within reach of every candidate on a kind of device; None: they can be kept from it."""
    model = model_of(kind)
    if not model.libraries_removable:
        return f"libraries cannot be kept from a process that uses {model.phrase}"
    if not any(layer.startswith(NAMESPACES) for layer in isolation.layers):
        return "there is no mount namespace, in which libraries could be replaced"
    return None


def _described(replaced: Mapping[str, str]) -> str:
    """Return what stands for the copies and the driver that has to do with them."""
    drivers = [path.read_text() for path in _DRIVERS if path.exists()]
    return hashlib.sha256(f"{sorted(replaced.items())} {drivers}".encode()).hexdigest()
