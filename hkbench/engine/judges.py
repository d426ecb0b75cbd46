"""The judges that measure: one stays with each GPU for all candidates, on a CPU each measurement has its own.

A judge that stays has its context, and has loaded its kernels while the first candidates were built: together half a
second to a second of a verdict on an H200. Whoever ends an evaluation otherwise than with a result that says so has
another judge for the next one; so does what a problem's code has changed for good (judge/footprint.py).
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from hkbench.errors import WorkerLost
from hkbench.judge.job import StayJob
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.runner import wire
from hkbench.sandbox.client import ForkServer, ForkServerLost


class Judges:
    """For the devices of one run. `server` forks them."""

    def __init__(self, server: ForkServer, devices: Sequence[DeviceFacts]) -> None:
        self._server = server
        self._devices = {facts.index: facts for facts in devices}
        self._doors: dict[int, socket.socket] = {}

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
            self._doors.pop(index).close()

    def close(self) -> None:
        for index in list(self._doors):
            self.leave(index)

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
            ours, theirs = socket.socketpair()
            try:
                self._server.fork([theirs.fileno()])
                wire.send(ours, StayJob(facts=self._devices[index]).model_dump(mode="json"))
            except ForkServerLost as error:
                ours.close()
                raise WorkerLost(f"{error}; start the command again") from error
            finally:
                theirs.close()
            self._doors[index] = ours
        return self._doors[index]
