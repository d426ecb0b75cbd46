"""What an emulated GPU needs: libraries that stand in for the candidate's process, and a process that is the device."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from hkbench.device_kinds import DeviceModel
from hkbench.emulator.build import library
from hkbench.evaluation import frames
from hkbench.evaluation.job import Emulation
from hkbench.records import Isolation
from hkbench.sandbox.client import ForkServer
from hkbench.shipped import cache_folder
from hkbench.toolchain.emulated import EmulatedRuntime, find_objdump, find_runtime


@dataclass(frozen=True)
class EmulatedParts:
    """Of one architecture, for all evaluations of a run."""

    arch: str
    runtime: EmulatedRuntime
    objdump: Path

    @property
    def told(self) -> Emulation:
        """What an evaluator has to know."""
        return Emulation(arch=self.arch, libraries=str(self.runtime.folder), hip=self.runtime.toolchain.version)

    def environment(self) -> dict[str, str]:
        """Return what a runner has to know."""
        return self.runtime.environment(self.arch)

    def readable(self) -> tuple[str, ...]:
        """Return what a runner has to see beyond the rest."""
        return str(self.runtime.folder), str(self.runtime.toolchain.root)

    def fork(self, workers: ForkServer, device: socket.socket, folder: Path, isolation: Isolation) -> None:
        """Start the process of one evaluation's device, which is told what to do on `device`.

        Raises:
            ForkServerLost: the workers' server is gone.
        """
        folder.mkdir(parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            workers.fork([theirs.fileno(), device.fileno()])
            job = frames.Emulate(
                arch=self.arch,
                folder=str(folder),
                readable=[*self.readable(), str(self.objdump.parent)],
                objdump=str(self.objdump),
                cache=str(cache_folder().parent),
                layers=list(isolation.layers),
            )
            frames.send(ours, job)


def find_emulation(model: DeviceModel) -> EmulatedParts | None:
    """Find or build what a kind of device needs to be emulated; `None` for the others.

    Raises:
        ToolchainUnavailable: there is no HIP compiler, no LLVM, or they do not build it.
    """
    if model.emulates is None:
        return None
    library()
    runtime = find_runtime()
    return EmulatedParts(model.emulates, runtime, find_objdump(runtime.toolchain))
