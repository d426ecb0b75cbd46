"""Where one kernel file is compiled: folders, a cage for each tool, a limit of time."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.engine.confinement import Cages
from hkbench.records import Isolation
from hkbench.records.compiled import CompiledForm
from hkbench.toolchain.process import ToolResult, run_tool

MADE_LIMIT = 512 << 20  #: bytes of one file


@dataclass(frozen=True)
class Workplace:
    """A folder of its own for one compilation. Each tool writes into one room of it, in which no other one works."""

    root: Path  #: absolute, and empty at first
    isolation: Isolation
    timeout: float
    begun: float = field(default_factory=time.monotonic)
    found: list[tuple[CompiledForm, Path]] = field(default_factory=list)  #: what came out, and where it is kept

    @property
    def deadline(self) -> float:
        return self.begun + self.timeout

    def left(self) -> float:
        """Return the seconds that are left, and never less than one."""
        return max(1.0, self.deadline - time.monotonic())

    def room(self, name: str, *readable: Path) -> tuple[Path, tuple[str, ...]]:
        """Make a room, and return it with what stands before a tool that writes there.

        Such a tool sees the system, `readable`, the copy of the source and what came out so far.
        """
        for folder in (self.root / name, self._source, self._kept):
            folder.mkdir(exist_ok=True)
        cage = Cages(self.isolation).tool(self.root / name, self._source, self._kept, *readable)
        return self.root / name, cage

    def run(self, name: str, command: list[str], *readable: Path) -> ToolResult:
        """Run one tool in a room."""
        folder, cage = self.room(name, *readable)
        return run_tool(command, folder, self.left(), prefix=cage)

    def made(self, room: str, name: str) -> bytes:
        """Read what a tool wrote. Raises OSError where it is no file, a link included."""
        handle = os.open(self.root / room / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as stream:
            content = stream.read(MADE_LIMIT + 1)
        if len(content) > MADE_LIMIT:
            raise OSError(f"{name} has more than {MADE_LIMIT >> 20} MiB")
        return content

    def copy_of(self, file: Path) -> Path:
        """Copy the file to where tools see it, and not what lies beside it."""
        self._source.mkdir(exist_ok=True)
        return Path(shutil.copyfile(file, self._source / file.name))

    def keep(self, kernel: str | None, form: str, content: bytes) -> Path:
        """Keep what came out."""
        self._kept.mkdir(exist_ok=True)
        path = self._kept / f"{len(self.found)}.{form}"
        path.write_bytes(content)
        self.found.append((CompiledForm(kernel=kernel, form=form, bytes=len(content)), path))
        return path

    def forms(self) -> tuple[CompiledForm, ...]:
        """Return what came out, in order."""
        return tuple(form for form, _ in self.found)

    def kept(self, form: str) -> Iterator[tuple[CompiledForm, Path]]:
        """Yield what came out in one form."""
        yield from [(one, path) for one, path in self.found if one.form == form]

    @property
    def _source(self) -> Path:
        return self.root / "source"

    @property
    def _kept(self) -> Path:
        return self.root / "kept"
