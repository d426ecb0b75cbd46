"""The executor as the device's process uses it."""

from __future__ import annotations

from pathlib import Path

from hkbench.emulator import executor
from hkbench.emulator.arena import Range
from hkbench.emulator.build import core
from hkbench.emulator.device import Ran
from hkbench.emulator.link import LaunchKernel
from hkbench.emulator.program import Program
from hkbench.emulator.report import CallOptions, Told


class ExecutorEngine:
    """Code objects of one architecture, and the memory that their kernels may touch."""

    def __init__(self, arch: str, objdump: Path) -> None:
        """Load the executor. Raises ToolchainUnavailable where it is not built and cannot be."""
        core()
        self._arch = arch
        self._objdump = objdump
        self._memory = executor.Memory()

    def load(self, code: bytes) -> Program:
        """Decode a code object. Raises ValueError for another architecture's, and what `Program.load` raises."""
        program = Program.load(code, objdump=self._objdump)
        if program.arch != self._arch:
            raise ValueError(f"it is for {program.arch}, and this device is a {self._arch}")
        return program

    def add(self, memory: Range, name: str) -> None:
        """Let kernels use a stretch of memory. Raises ValueError where it meets another one."""
        self._memory.add(memory.begin, memory.size, name)

    def remove(self, memory: Range) -> None:
        """Withdraw it."""
        self._memory.remove(memory.begin)

    def launch(self, module: Program, request: LaunchKernel, options: CallOptions) -> Ran:
        """Execute a kernel."""
        launch = executor.Launch(request.kernel, request.grid, request.block, request.dynamic_lds, request.kernarg)
        how = executor.Options(options.check, options.late, options.seed, options.max_instructions)
        outcome = executor.launch(module, launch, self._memory, how)
        refusal = outcome.refusal
        return Ran(
            instructions=outcome.instructions,
            faults=[Told(kind=fault.kind, message=str(fault)) for fault in outcome.faults],
            refusal=None if refusal is None else Told(kind=refusal.kind, message=str(refusal)),
            written=[Range(address, size) for address, size in outcome.written],
        )
