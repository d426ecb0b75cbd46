"""Triton, and what its AMD back end's code objects say of their kernels.

A code object of Triton's has one kernel. Its metadata has the registers (LLVM's AMDGPUUsage, "Code Object Metadata").
LDS stands in Triton's own metadata: all of it is asked for at the launch.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata as packages
from pathlib import Path
from typing import Annotated

from pydantic import Base64Bytes, Field, field_validator

from hkbench.errors import ToolchainUnavailable
from hkbench.records import KernelResources, Record
from hkbench.toolchain.code_object import NotInspected, Tools, allocated_vgprs, metadata
from hkbench.toolchain.disassembly import instruction_counts
from hkbench.toolchain.occupancy import remark
from hkbench.toolchain.resources import completed, from_metadata, with_findings

IMAGE_LIMIT = 64 << 20  #: bytes
_ELF = b"\x7fELF"
_MACHINE = slice(18, 20)  # e_machine of an ELF header
_AMDGPU = (224).to_bytes(2, "little")

Name = Annotated[str, Field(max_length=300)]
Text = Annotated[str, Field(max_length=200)]


class LaunchedKernel(Record):
    """One specialisation of a kernel, as the runner that compiled it reports it (JSON, not trusted)."""

    name: Name
    signature: dict[Name, Text]  #: argument -> "*bf16", "i32", "constexpr"
    constants: dict[Name, Text]  #: what the source declares `tl.constexpr` -> its value
    specialised: dict[Name, Text] = {}  #: what Triton made a constant, as an integer that is 1
    options: dict[Name, int | None]  #: num_warps, num_stages, waves_per_eu, ...
    lds_bytes: Annotated[int, Field(ge=0, le=1 << 30)]  #: that a launch asks for
    launches: int
    image: Annotated[Base64Bytes, Field(max_length=IMAGE_LIMIT)]  #: the code object; empty: Triton did not load it

    @field_validator("image")
    @classmethod
    def _is_a_code_object(cls, image: bytes) -> bytes:
        if image and not (image.startswith(_ELF) and image[_MACHINE] == _AMDGPU):
            raise ValueError("not an ELF file for AMD GPUs")
        return image

    @property
    def label(self) -> str:
        """The name with what tells this specialisation from others: constants, options that were set, arguments."""
        chosen = {key: value for key, value in self.options.items() if value and (key, value) != ("kpack", 1)}
        said = ", ".join(f"{key}={value}" for key, value in (*self.constants.items(), *chosen.items()))
        kinds = ", ".join(kind for kind in self.signature.values() if kind != "constexpr")
        return f"{self.name}[{said}]({kinds})"


@dataclass(frozen=True)
class Triton:
    """The installed package, found without importing it."""

    version: str
    root: Path


def find_triton() -> Triton:
    """Raise ToolchainUnavailable when there is no Triton, or one without its AMD back end."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise ToolchainUnavailable(
            "Triton is not installed: run `pip install triton` with this interpreter's pip (Linux; no GPU is needed)"
        )
    root = Path(spec.origin).parent
    if not (root / "backends" / "amd" / "compiler.py").is_file():
        raise ToolchainUnavailable(f"{root} has no AMD back end: run `pip install --force-reinstall triton`")
    for name in ("triton", "pytorch-triton-rocm", "pytorch-triton", "triton-rocm"):
        try:
            return Triton(packages.version(name), root)
        except packages.PackageNotFoundError:
            continue
    return Triton("unknown", root)


def resources(kernels: Sequence[LaunchedKernel], arch: str, tools: Tools) -> tuple[KernelResources, ...]:
    """Return what the code objects show: a record a kernel, under its label.

    Raises NotInspected if one shows nothing.
    """
    tools.folder.mkdir(parents=True, exist_ok=True)
    found: list[KernelResources] = []
    for number, kernel in enumerate(kernels):
        code_object = tools.folder / f"kernel_{number}.elf"
        code_object.write_bytes(kernel.image)
        found += with_findings(_inspected(kernel, code_object, arch, tools))
    return tuple(found)


def _inspected(kernel: LaunchedKernel, code_object: Path, arch: str, tools: Tools) -> tuple[KernelResources, ...]:
    described = [one for one in metadata(code_object, tools) if one.name == kernel.name]
    if len(described) != 1:
        raise NotInspected(f"the code object of {kernel.name} describes no such kernel")
    own = from_metadata(described[0], arch)
    own = own.model_copy(update={"lds_bytes": (own.lds_bytes or 0) + kernel.lds_bytes})
    waves = remark(own, allocated_vgprs(code_object, kernel.name, tools))
    own = own.model_copy(update={"occupancy_waves_per_simd": waves})
    first, *functions = completed((own,), described, instruction_counts(code_object, arch, tools))
    # In the code Triton's LDS has no size; what the launch asks for is in `lds_bytes` already.
    return (first.model_copy(update={"name": kernel.label, "dynamic_lds": False}), *functions)
