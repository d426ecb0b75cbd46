"""Precompiled headers for hipcc: one for the device pass and one for the host pass of the same headers and flags.

hipcc cannot be told of them, so its two compilations are run as hipcc itself would run them (`-###` prints the
commands), each with its header. Whatever hipcc does otherwise than expected, and whatever fails, is left to hipcc.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.engine.kits import Kits, NotMade, Wish, default_root
from hkbench.errors import ToolchainUnavailable
from hkbench.runner import compile as use
from hkbench.toolchain.hip import HipToolchain, find_torch
from hkbench.toolchain.process import ToolResult, run_tool

MAKE_SECONDS = 600.0
MAX_KITS = 8  #: of one toolchain; each takes some 0.4 GB
DEVICE, HOST = "device.pch", "host.pch"
Run = Callable[[Sequence[str]], ToolResult]
_SHARED = re.compile(r"(torch|ATen|c10|pybind11|hip)/[\w/]+\.h|[a-z_]+")  #: headers that a kit may hold
_WORTH = re.compile(r"(torch|ATen|pybind11)/.*")
#: Names that an include folder of the candidate's must not hold: they would be found in place of a kit's headers.
_SHADOWED = {"torch", "ATen", "c10", "caffe2", "pybind11", "hip", "Python.h", "thrust", "rocprim", "bits", "cuda.h"}
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]\s*(//.*)?")


@dataclass(frozen=True)
class _Wanted:
    """What a kit is made for: hipcc's words without source, output and name, and the headers in their order."""

    flags: tuple[str, ...]
    headers: tuple[str, ...]

    @property
    def name(self) -> str:
        return hashlib.sha256(json.dumps([self.flags, self.headers]).encode()).hexdigest()[:32]


class HipKits:
    """Kits for builds by one hipcc, with those of g++ for the C++ half of an extension."""

    def __init__(self, toolchain: HipToolchain, host: Kits | None = None, root: Path | None = None) -> None:
        torch = find_torch()
        parts = [
            str(toolchain.hipcc),
            toolchain.version,
            toolchain.compiler,
            torch.version,
            str(torch.root),
            sys.version,
        ]
        parts += [str((torch.root / "version.py").stat().st_mtime_ns), str(toolchain.hipcc.stat().st_mtime_ns)]
        self._hipcc = str(toolchain.hipcc)
        self.store = (root or default_root()) / "hip" / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        self.store.mkdir(parents=True, exist_ok=True)
        self.host = host
        self.used = 0  #: compilations that a kit was used for, to the end
        self.wanted: dict[_Wanted | Wish, None] = {}  #: what builds so far could have used

    def readable(self) -> tuple[Path, ...]:
        """What the tools of a build have to see."""
        return (self.store,) if self.host is None else (self.store, self.host.store)

    def compile(self, run: Run, command: Sequence[str], source: Path) -> str | None:
        """Does what the compile command does, with a kit. None: there is none, or it did not work out."""
        if command[0] == self._hipcc:
            return self._compile_hip(run, command, source)
        return self._compile_host(run, command, source)

    def support(self, objects: Sequence[Path]) -> list[str]:
        """Objects to link with those that were compiled with a kit of g++."""
        marks = [Path(f"{path}{use.MARK}") for path in objects]
        names = dict.fromkeys(mark.read_text(encoding="utf-8") for mark in marks if mark.is_file())
        return [str(self.host.store / name / use.SUPPORT) for name in names] if self.host is not None else []

    def _compile_host(self, run: Run, command: Sequence[str], source: Path) -> str | None:
        parsed = use.parse(command[1:])
        included = use.leading_includes(source.read_text(encoding="utf-8", errors="replace"))
        kit = use.kit_for(included)
        program = shutil.which(command[0])
        if self.host is None or parsed is None or kit is None or program is None:
            return None
        if Path(program).resolve() != self.host.compiler or _shadows(command):
            return None
        wish = Wish(kit, parsed.flags)
        if not self.host.has(wish):
            self.wanted[wish] = None
            return None
        done = run(use.with_kit(self.host.store / wish.name, command, parsed.output))
        if done.returncode != 0:
            Path(parsed.output + use.MARK).unlink(missing_ok=True)
            return None
        self.used += 1
        return done.output

    def _compile_hip(self, run: Run, command: Sequence[str], source: Path) -> str | None:
        wanted = _Wanted(_flags(command), _shared_headers(source.read_text(encoding="utf-8", errors="replace")))
        if not any(map(_WORTH.fullmatch, wanted.headers)) or _shadows(command):
            return None
        kit = self.store / wanted.name
        if not (kit / HOST).is_file():
            self.wanted[wanted] = None
            return None
        steps = _steps(run([*command, "-###"]))
        if steps is None:
            return None
        output = []
        for step in steps:
            if step[1] == "-cc1":
                header = DEVICE if "-fcuda-is-device" in step else HOST
                step = [*step[:2], "-include-pch", str(kit / header), *step[2:]]
            done = run(step)
            if done.returncode != 0:
                return None
            output.append(done.output)
        self.used += 1
        return "".join(output)

    def make_wanted(self, caged: Callable[[Path], Sequence[str]] = lambda _folder: ()) -> list[str]:
        """Makes what builds so far could have used; what went wrong. `caged` gives the words of a cage for a folder."""
        failed = []
        for wanted in list(self.wanted):
            del self.wanted[wanted]
            try:
                if isinstance(wanted, Wish):
                    assert self.host is not None
                    folder = self.host.new_folder()
                    self.host.make(wanted, caged(folder), folder)
                else:
                    self._make(wanted, caged)
            except NotMade as error:
                failed.append(str(error))
        return failed

    def _make(self, wanted: _Wanted, caged: Callable[[Path], Sequence[str]]) -> None:
        """Both headers. Raises NotMade."""
        # clang writes the header's own path into it, so the folder keeps its name, and a link says that it is finished.
        folder = Path(tempfile.mkdtemp(prefix="kit-", dir=self.store))
        prefix = caged(folder)
        finished = False
        try:
            text = "".join(f"#include <{name}>\n" for name in wanted.headers)
            source, output = folder / "kit.hip", folder / "kit.o"
            source.write_text(text, encoding="utf-8")
            command = [self._hipcc, *wanted.flags, "-c", str(source), "-o", str(output)]
            steps = _steps(run_tool([*command, "-###"], folder, 60.0, None, prefix))
            if steps is None:
                raise NotMade("hipcc does not show two compilations")
            for step in steps:
                if step[1] == "-cc1":
                    header = DEVICE if "-fcuda-is-device" in step else HOST
                    done = run_tool(_precompiling(step, folder / header), folder, MAKE_SECONDS, None, prefix)
                    if done.returncode != 0:
                        raise NotMade(done.output[-2000:])
            shutil.rmtree(folder / "tmp", ignore_errors=True)
            self._drop_oldest()
            with contextlib.suppress(FileExistsError):  # another process was quicker
                (self.store / wanted.name).symlink_to(folder.name)
                finished = True
        finally:
            if not finished:
                shutil.rmtree(folder, ignore_errors=True)

    def _drop_oldest(self) -> None:
        links = [path for path in self.store.iterdir() if path.is_symlink()]
        links.sort(key=lambda link: (link / HOST).stat().st_atime if (link / HOST).is_file() else 0.0)
        for link in links[: max(0, len(links) - MAX_KITS + 1)]:
            folder = link.resolve()
            link.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)


def hip_kits(toolchain: HipToolchain) -> HipKits | None:
    """Kits in the user's cache folder; None where that cannot be written."""
    try:
        try:
            host = Kits()
        except ToolchainUnavailable:  # no g++: the C++ half has none
            host = None
        return HipKits(toolchain, host)
    except OSError:
        return None


def _steps(shown: ToolResult) -> list[list[str]] | None:
    """The commands that `-###` shows, if they are the device's compilation, its linking, and the host's compilation."""
    steps = [shlex.split(line) for line in shown.output.splitlines() if line.startswith(' "')]
    compilations = [step for step in steps if step[1:2] == ["-cc1"]]
    as_expected = (
        shown.returncode == 0
        and len(compilations) == 2
        and "-fcuda-is-device" in compilations[0]
        and "-fcuda-is-device" not in compilations[1]
        and steps[-1] is compilations[1]
        and all("-emit-obj" in step for step in compilations)
    )
    return steps if as_expected else None


def _precompiling(step: Sequence[str], output: Path) -> list[str]:
    """The compilation of a header with the same settings; its templates are instantiated once and for all there."""
    words = ["-emit-pch" if word == "-emit-obj" else word for word in step if not word.startswith("-cuid")]
    words[words.index("-o") + 1] = str(output)
    if "-fcuda-include-gpubinary" in words:
        at = words.index("-fcuda-include-gpubinary")
        del words[at : at + 2]
    return [*words[:2], "-fpch-instantiate-templates", *words[2:]]


def _flags(command: Sequence[str]) -> tuple[str, ...]:
    """What a kit depends on: all but names of files, the extension's name, and folders of one build."""
    kept: list[str] = []
    words = iter(command[1:])
    for word in words:
        if word in ("-c", "-o", "-I"):
            next(words, "")
        elif word == "-isystem":
            folder = next(words, "")
            kept += [word, folder] if Path(folder).name != "torch_hip" else []
        elif not word.startswith(("-DTORCH_EXTENSION_NAME=", "-I")):
            kept.append(word)
    return tuple(kept)


def _shared_headers(text: str) -> tuple[str, ...]:
    """The headers that a source includes first of all, up to one that no kit holds."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        include = _INCLUDE.fullmatch(line.strip())
        if include is not None and _SHARED.fullmatch(include[1]):
            found[include[1]] = None
        elif include is not None or (line.strip() and not re.fullmatch(r"//.*|#\s*line\b.*", line.strip())):
            break
    return tuple(found)


def _shadows(command: Sequence[str]) -> bool:
    """Whether a folder of the candidate's own could hold headers in place of a kit's."""
    folders = [command[at + 1] for at, word in enumerate(command[:-1]) if word == "-I"]
    folders += [word[2:] for word in command if word.startswith("-I") and len(word) > 2]
    return any(_SHADOWED.intersection(os.listdir(folder)) for folder in folders if Path(folder).is_dir())
