"""Keep the processes that measure.

One worker stays with each slot of a GPU for all candidates; on a CPU each measurement has its own. Those of one GPU
share it by locks in a folder (evaluation/sharing.py).

With a worker stays a runner, for the baselines. Both have their contexts, and the evaluator has loaded its kernels,
while the first candidates were built: together a second of a verdict on an H200. Whoever ends an evaluation otherwise
than with a result that says so has another pair for the next one; so does a problem whose code changes something for
good (evaluation/footprint.py).
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hkbench.device_kinds import model_of
from hkbench.engine.guards import Guard
from hkbench.engine.slots import DeviceSlot
from hkbench.errors import DeviceUnavailable, WorkerLost
from hkbench.evaluation import frames
from hkbench.protocol import wire
from hkbench.records import DeviceFacts
from hkbench.sandbox import folders
from hkbench.sandbox.client import ForkServer, ForkServerLost

END_SECONDS = (
    2.0  #: for workers that have nothing to do to end, with their runners; others are killed with their server
)


@dataclass(frozen=True)
class EvaluationSockets:
    """Hold a worker's ends of an evaluation's sockets, and its files: both workers are given them."""

    sockets: tuple[socket.socket, ...]
    files: tuple[int, ...]

    @property
    def descriptors(self) -> list[int]:
        return [*(sock.fileno() for sock in self.sockets), *self.files]

    def close(self) -> None:
        """Close sockets and files, once. A runner whose worker is gone ends when these are closed too."""
        for sock in self.sockets:
            sock.close()
        for fd in self.files:
            os.close(fd)


class DeviceLocks:
    """The locks by which evaluations share devices: for each a folder, which is made when it is asked for."""

    def __init__(self) -> None:
        self._folders: dict[int, Path] = {}

    def folder(self, device: int) -> Path:
        """Return the folder for a device."""
        if device not in self._folders:
            self._folders[device] = Path(tempfile.mkdtemp(prefix="hkbench-locks-"))
        return self._folders[device]

    def close(self) -> None:
        """Remove the folders. Who has one open keeps its locks."""
        for folder in self._folders.values():
            _remove(folder)
        self._folders.clear()


class DeviceWorkers:
    """For the devices of one run. `servers` fork workers and runners; `guard`: of a baseline's, with its folder."""

    def __init__(
        self,
        servers: tuple[ForkServer, ForkServer],
        guard: Callable[[Path], Guard],
        devices: Sequence[DeviceFacts],
        locks: DeviceLocks,
    ) -> None:
        """Take the `locks` of the devices, which whoever made them closes."""
        self._workers, self._runners = servers
        self._guard = guard
        self._locks = locks
        self._devices = {facts.index: facts for facts in devices}
        self._control_sockets: dict[DeviceSlot, socket.socket] = {}
        self._folders: dict[DeviceSlot, Path] = {}
        self._left: list[_RetiredWorker] = []

    def start(self, each: int = 1) -> None:
        """Start `each` workers of every GPU, which take their devices beside what else there is to do.

        Raises:
            WorkerLost: the fork server is gone.
        """
        for slot in (DeviceSlot(index, number) for number in range(each) for index in self._devices):
            if self._is_reusable(slot.device):
                self._control_socket(slot)

    def measure(self, slot: DeviceSlot, ends: Sequence[int]) -> socket.socket:
        """Give the evaluator of a slot the `ends` of an evaluation; return the engine's end of a channel to it.

        Raises:
            WorkerLost: no worker can be had.
        """
        ours, theirs = socket.socketpair()
        try:
            self._give(slot, [theirs.fileno(), *ends])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        if not self._is_reusable(slot.device):
            self.leave(slot)  # it ends after this one
        return ours

    def leave(self, slot: DeviceSlot) -> None:
        """Give the evaluator of a slot nothing more; it ends when it has done what it has."""
        if slot in self._control_sockets:
            left = _RetiredWorker(self._control_sockets.pop(slot), self._folders.pop(slot))
            left.dismiss()
            self._left.append(left)

    def close(self) -> None:
        """End all workers with their runners, and remove their folders. Waits `END_SECONDS` at most."""
        for slot in list(self._control_sockets):
            self.leave(slot)
        deadline = time.monotonic() + END_SECONDS
        for left in self._left:
            left.wait(max(0.0, deadline - time.monotonic()))
            left.close()
        self._left.clear()

    def _is_reusable(self, index: int) -> bool:
        return not model_of(self._devices[index].kind).on_host

    def _give(self, slot: DeviceSlot, descriptors: list[int]) -> None:
        for _ in range(2):
            control = self._control_socket(slot)
            try:
                frames.send(control, frames.TakeEvaluation())
                wire.send_descriptors(control, descriptors)
            except wire.PeerClosed:  # it ended while it had nothing to do
                self.leave(slot)
            else:
                return
        raise WorkerLost(f"the evaluator of device {slot.device} ends as soon as it begins; its message stands above")

    def _control_socket(self, slot: DeviceSlot) -> socket.socket:
        if slot not in self._control_sockets:
            self._tidy()
            (ours, theirs), (channel, runner), (control, guard) = (socket.socketpair() for _ in range(3))
            folder = Path(tempfile.mkdtemp(prefix="hkbench-baseline-"))
            try:
                self._runners.fork([guard.fileno(), runner.fileno()], self._guard(folder))
                self._workers.fork([theirs.fileno(), channel.fileno(), control.fileno()])
                shared = str(self._locks.folder(slot.device)) if self._is_reusable(slot.device) else None
                frames.send(ours, frames.ServeDevice(facts=self._devices[slot.device], shared=shared))
            except ForkServerLost as error:
                ours.close()
                _remove(folder)
                raise WorkerLost(f"{error}; start the command again") from error
            finally:
                for sock in (theirs, channel, runner, control, guard):
                    sock.close()
            self._control_sockets[slot], self._folders[slot] = ours, folder
        return self._control_sockets[slot]

    def _tidy(self) -> None:
        ended = [left for left in self._left if left.wait(0.0)]
        for left in ended:
            left.close()
            self._left.remove(left)


@dataclass(frozen=True, eq=False)
class _RetiredWorker:
    """An evaluator that gets nothing more: its door, and the folder of its runner."""

    control: socket.socket
    folder: Path

    def dismiss(self) -> None:
        with suppress(OSError):  # it may have ended by itself
            self.control.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> bool:
        """Return whether the worker and its runner have ended within some time."""
        self.control.settimeout(seconds)
        try:
            return not self.control.recv(1)  # it says nothing by its door
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            return True

    def close(self) -> None:
        self.control.close()
        _remove(self.folder)


def _remove(folder: Path) -> None:
    with suppress(OSError):  # as far as it goes: a folder of the system's for temporary files
        folders.remove(folder, END_SECONDS)


def chosen_devices(found: Sequence[DeviceFacts], indices: Sequence[int]) -> tuple[DeviceFacts, ...]:
    """Return the devices with these numbers, in the order of `indices`.

    Raises:
        DeviceUnavailable: there is no such device; the message lists those that there are.
    """
    by_index = {facts.index: facts for facts in found}
    absent = [index for index in indices if index not in by_index]
    if absent:
        there = ", ".join(f"{facts.index} ({facts.name})" for facts in found)
        raise DeviceUnavailable(
            f"there is no {found[0].kind} device {', '.join(map(str, absent))}; --device-index can name {there}"
        )
    return tuple(by_index[index] for index in indices)
