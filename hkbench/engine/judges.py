"""The judges that measure: one stays with each GPU for all candidates, on a CPU each measurement has its own.

With it stays a runner, for the baselines. Both have their contexts, and the judge has loaded its kernels, while the
first candidates were built: together a second of a verdict on an H200. Whoever ends an evaluation otherwise than with
a result that says so has another pair for the next one; so does a problem whose code changes something for good
(judge/footprint.py).
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkbench.errors import WorkerLost
from hkbench.judge.job import StayJob
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.runner import wire
from hkbench.sandbox import folders
from hkbench.sandbox.client import ForkServer, ForkServerLost

END_SECONDS = 2.0  #: for judges that have nothing to do to end, with their runners; others are killed with their server


class Judges:
    """For the devices of one run. `servers` fork judges and runners; `guard`: of a baseline's, with its folder."""

    def __init__(
        self,
        servers: tuple[ForkServer, ForkServer],
        guard: Callable[[Path], dict[str, Any]],
        devices: Sequence[DeviceFacts],
    ) -> None:
        self._judges, self._runners = servers
        self._guard = guard
        self._devices = {facts.index: facts for facts in devices}
        self._doors: dict[int, socket.socket] = {}
        self._folders: dict[int, Path] = {}
        self._left: list[_Left] = []

    def start(self) -> None:
        """Those of GPUs begin to take them, beside what else there is to do.

        Raises:
            WorkerLost: the fork server is gone.
        """
        for index in self._devices:
            if self._stays(index):
                self._door(index)

    def measure(self, index: int, ends: Sequence[int]) -> socket.socket:
        """Gives the judge of a device the `ends` of an evaluation; the engine's end of a channel to it.

        Raises:
            WorkerLost: no judge can be had.
        """
        ours, theirs = socket.socketpair()
        try:
            self._give(index, [theirs.fileno(), *ends])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        if not self._stays(index):
            self.leave(index)  # it ends after this one
        return ours

    def leave(self, index: int) -> None:
        """The judge of a device gets nothing more, and ends when it has done what it has."""
        if index in self._doors:
            left = _Left(self._doors.pop(index), self._folders.pop(index))
            left.dismiss()
            self._left.append(left)

    def close(self) -> None:
        """All of them end, with their runners, and so do the folders of these. Waits `END_SECONDS` at most."""
        for index in list(self._doors):
            self.leave(index)
        deadline = time.monotonic() + END_SECONDS
        for left in self._left:
            left.wait(max(0.0, deadline - time.monotonic()))
            left.close()
        self._left.clear()

    def _stays(self, index: int) -> bool:
        return self._devices[index].kind is not DeviceKind.CPU

    def _give(self, index: int, descriptors: list[int]) -> None:
        for _ in range(2):
            door = self._door(index)
            try:
                wire.send(door, {})
                wire.send_descriptors(door, descriptors)
            except wire.PeerClosed:  # it ended while it had nothing to do
                self.leave(index)
            else:
                return
        raise WorkerLost(f"the judge of device {index} ends as soon as it begins; its message stands above")

    def _door(self, index: int) -> socket.socket:
        if index not in self._doors:
            self._tidy()
            (ours, theirs), (channel, runner), (control, guard) = (socket.socketpair() for _ in range(3))
            folder = Path(tempfile.mkdtemp(prefix="hkbench-baseline-"))
            try:
                self._runners.fork([guard.fileno(), runner.fileno()], self._guard(folder))
                self._judges.fork([theirs.fileno(), channel.fileno(), control.fileno()])
                wire.send(ours, StayJob(facts=self._devices[index]).model_dump(mode="json"))
            except ForkServerLost as error:
                ours.close()
                _remove(folder)
                raise WorkerLost(f"{error}; start the command again") from error
            finally:
                for sock in (theirs, channel, runner, control, guard):
                    sock.close()
            self._doors[index], self._folders[index] = ours, folder
        return self._doors[index]

    def _tidy(self) -> None:
        ended = [left for left in self._left if left.wait(0.0)]
        for left in ended:
            left.close()
            self._left.remove(left)


@dataclass(frozen=True, eq=False)
class _Left:
    """A judge that gets nothing more: its door, and the folder of its runner."""

    door: socket.socket
    folder: Path

    def dismiss(self) -> None:
        with suppress(OSError):  # it may have ended by itself
            self.door.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within some time, and its runner with it."""
        self.door.settimeout(seconds)
        try:
            return not self.door.recv(1)  # it says nothing by its door
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            return True

    def close(self) -> None:
        self.door.close()
        _remove(self.folder)


def _remove(folder: Path) -> None:
    with suppress(OSError):  # as far as it goes: a folder of the system's for temporary files
        folders.remove(folder, END_SECONDS)
