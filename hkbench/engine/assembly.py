"""What the compiler made of a candidate, as text: assembly.s beside its verdict.

It is read when the candidate's processes have ended, as what it is: files that a candidate could write. No verdict
turns on it. Tools read copies in a cage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hkbench.engine.confinement import Cages
from hkbench.engine.host_code import Binutils, host_functions
from hkbench.errors import ToolchainUnavailable
from hkbench.profile.names import contents
from hkbench.sandbox.folders import TooDeep
from hkbench.toolchain.build_hip import reads
from hkbench.toolchain.code_object import SECTION, NotInspected, Tools, code_objects, printed_by
from hkbench.toolchain.disassembly import disassembled, without_head
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.programs import find_cuobjdump

LIMIT = 400_000  #: characters of one candidate's
SECONDS = 30.0  #: for all of its files
MAX_FILES = 16
_CUDA = b".nv_fatbin"
_TEXTS = (".ptx", ".amdgcn")  #: of Triton, which leaves them in its cache
_ENDINGS = (*_TEXTS, ".so", ".cubin", ".elf")
_TRITON_ELF = "kernel_"  #: where --build-only compiles for Triton (toolchain/triton.py)
_NOT_ITS_OWN = ("__triton_launcher", "cuda_utils", "hip_utils")  #: Triton's libraries, which start any kernel


async def assembly_of(folder: Path, scratch: Path, arch: str | None, cages: Cages) -> str | None:
    """Return the text of what was built in `folder`; `None` where nothing was.

    A part that cannot be read is a line that says why. `arch`: of the AMD GPU whose code is wanted. `scratch` is made,
    for the copies; whoever made `folder` removes both.
    """
    return await asyncio.to_thread(_Reader(scratch, arch, cages).read, folder)


@dataclass
class _Reader:
    scratch: Path
    arch: str | None
    cages: Cages

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + SECONDS

    def read(self, folder: Path) -> str | None:
        parts = []
        try:
            for number, (path, content) in enumerate(_own_files(folder)):
                if number == MAX_FILES:
                    parts.append(f"# more than {MAX_FILES} files: the others are left out\n")
                    break
                name = Path(path).name
                try:
                    parts.append(f"# {name}\n{self._part(number, name, content)}")
                except (NotInspected, ToolchainUnavailable) as reason:
                    parts.append(f"# {name}: not disassembled: {reason}\n")
        except TooDeep as error:
            parts.append(f"# not read: {error}\n")
        text = "\n".join(parts)
        if len(text) > LIMIT:
            text = f"{text[:LIMIT]}\n# cut: {len(text) - LIMIT:,} of {len(text):,} characters are left out\n"
        return text or None

    def _part(self, number: int, name: str, content: bytes) -> str:
        if name.endswith(_TEXTS):
            return content.decode(errors="replace")
        own = self.scratch / str(number)
        own.mkdir(parents=True)
        copy = own / f"built{Path(name).suffix}"
        copy.write_bytes(content)
        if name.endswith(".elf") or SECTION.encode() in content:  # as a section is called, its name stands in the file
            return self._amd(copy, own)
        if name.endswith(".cubin") or _CUDA in content:
            return self._nvidia(copy, own)
        return host_functions(copy, Binutils(own, self.deadline, self.cages.tool(own)))

    def _amd(self, copy: Path, own: Path) -> str:
        if self.arch is None:
            raise NotInspected("the architecture that it is for is not known")
        toolchain = find_hip()
        tools = Tools(toolchain, own, self.deadline, self.cages.tool(own, *reads(toolchain)))
        objects = (copy,) if copy.suffix == ".elf" else code_objects(copy, self.arch, tools)
        return "\n".join(without_head(disassembled(one, self.arch, tools)) for one in objects)

    def _nvidia(self, copy: Path, own: Path) -> str:
        program = find_cuobjdump()
        wanted = ("-sass",) if copy.suffix == ".cubin" else ("-ptx", "-sass")
        # It takes the cubin out of a library into a temporary file, and calls nvdisasm beside it.
        prefix = self.cages.tool(own, Path(program).resolve().parents[1])
        seconds = self.deadline - time.monotonic()
        return printed_by("cuobjdump", [program, *wanted, str(copy)], own, seconds, prefix)


def _own_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of what a build left of the candidate's own."""
    for path, content in contents(str(folder), _ENDINGS):
        name = Path(path).name
        is_copy = name.endswith(".elf") and not name.startswith(_TRITON_ELF)  # of what is in a library
        if not is_copy and not name.startswith(_NOT_ITS_OWN):
            yield path, content
