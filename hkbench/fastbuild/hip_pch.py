"""Make the precompiled headers of hipcc that builds share: the trusted side of `fastbuild/inside/hipcc.py`.

A PCH is one header for the device pass and one for the host pass, of the same list of headers and set of flags. It lies
in the user's cache folder, where runners can read it and not write. What a candidate chooses of it are names and flags
from lists.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hkbench.fastbuild.inside import hipcc
from hkbench.fastbuild.inside.hipcc import DEVICE, HOST, Wanted
from hkbench.fastbuild.inside.patch_torch import HIP_PCH_REQUESTS, HIP_PCHS
from hkbench.fastbuild.pch_cache import NotMade, default_root, describe, forget_unused, written
from hkbench.rocm import include_folders
from hkbench.toolchain.hip import HipToolchain, find_torch
from hkbench.toolchain.process import run_tool

MAKE_SECONDS = 600.0
MAX_PCHS = 8  #: of one toolchain; each takes some 0.4 GB


class HipPchCache:
    """The PCHs of one hipcc, in `store`."""

    def __init__(
        self, toolchain: HipToolchain, root: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Take `environment`, the builds', as far as hipcc looks at it (`hipcc.ASKED`); none for those of the engine.

        Raises:
            ToolchainUnavailable: no PyTorch.
            OSError: the cache folder cannot be written.
        """
        torch = find_torch()
        self._asked = hipcc.asked(environment or {})
        parts = [
            str(toolchain.hipcc),
            toolchain.version,
            toolchain.compiler,
            torch.version,
            str(torch.root),
            sys.version,
            json.dumps(self._asked),
        ]
        parts += [str((torch.root / "version.py").stat().st_mtime_ns), str(toolchain.hipcc.stat().st_mtime_ns)]
        self._toolchain = toolchain
        self.store = (root or default_root()) / "hip" / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        self.store.mkdir(parents=True, exist_ok=True)
        forget_unused(self.store.parent)
        own = [*torch.includes, torch.root / "include" / "THH", toolchain.include]
        self._folders = [*map(str, own), *include_folders(os.environ)]
        compiler = os.path.realpath(toolchain.hipcc)
        described = {"compiler": compiler, "folders": self._folders, "environment": self._asked}
        describe(self.store / hipcc.TOOLCHAIN, described, "folders")

    @property
    def environment(self) -> dict[str, str]:
        """What a runner has to know."""
        return {HIP_PCHS: str(self.store)}

    @property
    def reads(self) -> tuple[Path, ...]:
        """What has to be in sight where PCHs are made."""
        return (self._toolchain.root, self._toolchain.hipcc)

    def requested(self, folder: Path) -> list[Wanted]:
        """Return what the builds in a candidate's private folder asked for.

        Its own process wrote this: see `acceptable`.
        """
        found = []
        for request in written(folder / HIP_PCH_REQUESTS):
            with contextlib.suppress(KeyError, TypeError):
                if hipcc.acceptable(request["flags"], request["headers"], self._folders):
                    found.append(Wanted(tuple(request["flags"]), tuple(request["headers"])))
        return found

    def has(self, wanted: Wanted) -> bool:
        return (self.store / wanted.name / HOST).is_file()

    def new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="pch-", dir=self.store))

    def make(self, wanted: Wanted, prefix: Sequence[str], folder: Path, stop: threading.Event | None = None) -> None:
        """Make a PCH in `folder`, one of `new_folder`; take some 20 to 60 s.

        `prefix` stands before each compiler: a cage that may write in `folder`. `stop` ends it early.

        Raises:
            NotMade: hipcc is otherwise than expected, refused, was stopped, or took longer than MAKE_SECONDS.
        """
        finished = False
        try:
            self._compile(wanted, tuple(prefix), folder, stop)
            shutil.rmtree(folder / "tmp", ignore_errors=True)
            self._drop_oldest()
            with contextlib.suppress(FileExistsError):  # another process was quicker
                # clang writes the header's own path into it, so the folder keeps its name, and a link says it is done.
                (self.store / wanted.name).symlink_to(folder.name)
                finished = True
        finally:
            if not finished:
                shutil.rmtree(folder, ignore_errors=True)

    def _compile(self, wanted: Wanted, prefix: tuple[str, ...], folder: Path, stop: threading.Event | None) -> None:
        deadline = time.monotonic() + MAKE_SECONDS
        before = (*prefix, "env", *(f"{name}={value}" for name, value in self._asked.items()))

        def run(words: Sequence[str]) -> str:
            done = run_tool(words, folder, deadline - time.monotonic(), stop, before)
            if done.returncode != 0:
                raise NotMade(done.output[-2000:] or f"no end within {MAKE_SECONDS:.0f} s")
            return done.output

        source, output = folder / "pch.hip", folder / "pch.o"
        source.write_text("".join(f"#include <{name}>\n" for name in wanted.headers), encoding="utf-8")
        command = [str(self._toolchain.hipcc), *wanted.flags, "-c", str(source), "-o", str(output)]
        steps = hipcc.steps_of(run([*command, "-###"]))
        if steps is None:
            raise NotMade("hipcc does not show two compilations")
        for step in steps:
            if step[1] == "-cc1":
                run(_precompiling(step, folder / (DEVICE if hipcc.is_device(step) else HOST)))

    def _drop_oldest(self) -> None:
        links = [path for path in self.store.iterdir() if path.is_symlink()]
        links.sort(key=lambda link: (link / HOST).stat().st_atime if (link / HOST).is_file() else 0.0)
        for link in links[: max(0, len(links) - MAX_PCHS + 1)]:
            folder = link.resolve()
            link.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)


def _precompiling(step: Sequence[str], output: Path) -> list[str]:
    """Return the compilation of a header with the same settings, which instantiates its templates once and for all."""
    words = ["-emit-pch" if word in hipcc.OUTPUTS else word for word in step]
    words = [word for word in words if not word.startswith(("-cuid", "-fembed-offload-object="))]
    words[words.index("-o") + 1] = str(output)
    if "-fcuda-include-gpubinary" in words:
        at = words.index("-fcuda-include-gpubinary")
        del words[at : at + 2]
    return [*words[:2], "-fpch-instantiate-templates", *words[2:]]
