"""Precompile headers for the builds of `--build-only`, by the steps of `fastbuild/inside/hipcc.py`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from hkbench.errors import ToolchainUnavailable
from hkbench.fastbuild.hip_pch import HipPchCache
from hkbench.fastbuild.inside import gxx as use, hipcc
from hkbench.fastbuild.inside.attempt import ERRORS
from hkbench.fastbuild.pch_cache import NotMade, PchCache, PchRequest
from hkbench.toolchain.diagnostics import begins_at_own_line
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.process import ToolResult

Run = Callable[[Sequence[str]], ToolResult]


class HipPchBuilder:
    """PCHs for builds by one hipcc, with those of g++ for the C++ half of an extension."""

    def __init__(self, toolchain: HipToolchain, host: PchCache | None = None, root: Path | None = None) -> None:
        self._hipcc = str(toolchain.hipcc)
        self._store = HipPchCache(toolchain, root)
        self.host = host
        self.used = 0  #: compilations that a PCH was used for, to the end
        self.wanted: dict[hipcc.Wanted | PchRequest, None] = {}  #: what builds so far could have used

    def readable(self) -> tuple[Path, ...]:
        """Return what the tools of a build have to see."""
        return (self._store.store,) if self.host is None else (self._store.store, self.host.store)

    def compile(self, run: Run, command: Sequence[str], source: Path) -> ToolResult | None:
        """Do what the compile command does, with a PCH. None: there is none, or it did not work out."""
        if command[0] == self._hipcc:
            return self._compile_hip(run, command, source)
        return self._compile_host(run, command, source)

    def support(self, objects: Sequence[Path]) -> list[str]:
        """Return the objects to link with those that were compiled with a PCH of g++."""
        marks = [Path(f"{path}{use.MARK}") for path in objects]
        names = dict.fromkeys(mark.read_text(encoding="utf-8") for mark in marks if mark.is_file())
        return [str(self.host.store / name / use.SUPPORT) for name in names] if self.host is not None else []

    def _compile_host(self, run: Run, command: Sequence[str], source: Path) -> ToolResult | None:
        parsed = use.parse(command[1:])
        included = use.leading_includes(source.read_text(encoding="utf-8", errors="replace"))
        pch = use.pch_for(included)
        program = shutil.which(command[0])
        if self.host is None or parsed is None or pch is None or program is None:
            return None
        if Path(program).resolve() != self.host.compiler or hipcc.shadows(command):
            return None
        request = PchRequest(pch, parsed.flags)
        if not self.host.has(request):
            self.wanted[request] = None
            return None
        done = run(use.with_pch(self.host.store / request.name, command, parsed.output))
        if done.returncode != 0:
            Path(parsed.output + use.MARK).unlink(missing_ok=True)
            return None
        self.used += 1
        return done

    def _compile_hip(self, run: Run, command: Sequence[str], source: Path) -> ToolResult | None:
        wanted = hipcc.wanted(command, source.read_text(encoding="utf-8", errors="replace"))
        if wanted is None:
            return None
        if not self._store.has(wanted):
            self.wanted[wanted] = None
            return None
        shown = run([*command, "-###"])
        steps = hipcc.steps_of(shown.output) if shown.returncode == 0 else None
        if steps is None:
            return None
        done = ToolResult(0, "", shown.seconds)
        for step in steps:
            one = run(hipcc.with_pch(step, self._store.store / wanted.name))
            if one.returncode not in (0, ERRORS) or (one.returncode and not begins_at_own_line(one.output)):
                return None
            done = ToolResult(one.returncode, done.output + one.output, done.seconds + one.seconds)
            if one.returncode != 0:
                break
        self.used += 1
        return done

    def make_wanted(self, caged: Callable[[Path], Sequence[str]] = lambda _folder: ()) -> list[str]:
        """Make what builds so far could have used; what went wrong. `caged` gives the words of a cage for a folder."""
        failed = []
        for wanted in list(self.wanted):
            del self.wanted[wanted]
            try:
                if isinstance(wanted, PchRequest):
                    assert self.host is not None
                    folder = self.host.new_folder()
                    self.host.make(wanted, caged(folder), folder)
                else:
                    folder = self._store.new_folder()
                    self._store.make(wanted, caged(folder), folder)
            except NotMade as error:
                failed.append(str(error))
        return failed


def hip_pch_builder(toolchain: HipToolchain) -> HipPchBuilder | None:
    """Return the PCHs in the user's cache folder; None where that cannot be written."""
    try:
        try:
            host = PchCache()
        except ToolchainUnavailable:  # no g++: the C++ half has none
            host = None
        return HipPchBuilder(toolchain, host)
    except OSError:
        return None
