"""Take the device code out of a built extension and say what its metadata knows of each kernel.

The HIP runtime finds the device code in the section `.hip_fatbin` of a shared library: one Clang offload bundle for
each translation unit, each with one code object an architecture (Clang's ClangOffloadBundler page describes the form).
A code object is an ELF file with a note of metadata (LLVM's AMDGPUUsage, "Code Object Metadata").
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.offload_bundle import PACKED, SECTION as SECTION, BadBundle, images_at, next_bundle
from hkbench.toolchain.process import OUTPUT_LIMIT, run_tool

# What follows is read from a candidate's library, which can hold anything: so much of it and no more.
_ENTRIES_LIMIT = 64  # of all bundles: one an architecture and one for the host, for each translation unit
_SECTION_LIMIT = 512 << 20  # bytes
_TARGET = re.compile(r"hip(v4)?-amdgcn-amd-amdhsa-.*?-(?P<arch>gfx\w+)(:.*)?")
_FIELD = re.compile(r"(?P<first>  - |    )\.(?P<key>\w+):\s+(?P<value>\S.*)")
_NEXT_FREE_VGPR = re.compile(r"\.amdhsa_next_free_vgpr (\d+)")
_TOOL_SECONDS = 60.0
_DIGITS = 10  # of a figure in the metadata
_SAID = 200  # characters of what a tool says went wrong


class NotInspected(Exception):
    """The device code could not be looked into. The message says why; a build does not fail for it."""


class NoDeviceCode(NotInspected):
    """There is none for the architecture."""


def printed_by(name: str, command: list[str], folder: Path, seconds: float, prefix: tuple[str, ...]) -> str:
    """Return what a tool printed, run in `folder` behind `prefix` (see `run_tool`).

    Raises:
        NotInspected: it failed, had no time left, or printed too much.
    """
    result = run_tool(command, folder, seconds, prefix=prefix)
    if result.returncode is None:
        raise NotInspected(f"{name} was not done in time")
    if result.returncode != 0:
        first = next(iter(result.output.strip().splitlines()), "it printed nothing")
        raise NotInspected(f"{name} ended with code {result.returncode}: {first[:_SAID]}")
    if len(result.output.encode()) >= OUTPUT_LIMIT:
        raise NotInspected(f"{name} printed more than {OUTPUT_LIMIT >> 20} MiB, and the rest is cut off")
    return result.output


@dataclass(frozen=True)
class KernelMetadata:
    """What a code object's metadata says of one kernel; `None` where it does not."""

    name: str  #: mangled
    max_workgroup_size: int | None  #: threads: `.max_flat_workgroup_size`; a launch may use fewer
    registers: int | None = None  #: a lane: VGPRs up to a multiple of four, and AGPRs (`.vgpr_count` from gfx90a on)
    agprs: int | None = None
    sgprs: int | None = None
    lds_bytes: int | None = None  #: static
    scratch_bytes_per_lane: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None


@dataclass(frozen=True)
class Tools:
    """LLVM's tools beside the HIP compiler, run in a folder of their own until a deadline (monotonic seconds)."""

    toolchain: HipToolchain
    folder: Path
    deadline: float
    prefix: tuple[str, ...] = ()  #: see `run_tool`

    def run(self, name: str, *arguments: str) -> str:
        """Return what the tool printed. Raises NotInspected when it is missing, fails or has no time left."""
        return self._output(name, [str(self.find(name)), *arguments])

    def find(self, name: str) -> Path:
        """Find an LLVM tool: ROCm has its tools in llvm/bin; elsewhere the compiler says where its own are."""
        for folder in (self.toolchain.root / "llvm" / "bin", self.toolchain.root / "lib" / "llvm" / "bin"):
            if (folder / name).is_file():
                return folder / name
        named = self._output("hipcc", [str(self.toolchain.hipcc), f"-print-prog-name={name}"]).strip()
        if not Path(named).is_absolute():
            raise NotInspected(f"{name} is not installed beside the HIP compiler (LLVM's tools have it)")
        return Path(named)

    def _output(self, name: str, command: list[str]) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        return printed_by(name, command, self.folder, min(_TOOL_SECONDS, self.deadline - time.monotonic()), self.prefix)


def code_objects(library: Path, arch: str, tools: Tools) -> tuple[Path, ...]:
    """Return the code objects for `arch` in a library or object file, each written to a file in the tools' folder.

    Raises NotInspected when there is none or its form is not known.
    """
    section = tools.folder / "section.bin"
    tools.run("llvm-objcopy", "-O", "binary", f"--only-section={SECTION}", str(library), str(section))
    if section.stat().st_size > _SECTION_LIMIT:
        raise NotInspected(f"the device code has more than {_SECTION_LIMIT >> 20} MiB")
    content = section.read_bytes()
    matches = ((_TARGET.fullmatch(target), image) for target, image in unbundled(content))
    found = [image for match, image in matches if match is not None and match["arch"] == arch]
    if not found:
        raise NoDeviceCode(f"{library.name} has no device code for {arch}")
    paths = []
    for number, image in enumerate(found):
        paths.append(tools.folder / f"device_{number}.elf")
        paths[-1].write_bytes(image)
    return tuple(paths)


def unbundled(content: bytes) -> list[tuple[str, bytes]]:
    """Return (target, image) of every entry of the bundles in `content`, host entries included.

    Raises NotInspected for what is no bundle, is cut off, or is compressed.
    """
    entries: list[tuple[str, bytes]] = []
    begin = 0
    while begin < len(content):
        if content.startswith(PACKED, begin):
            raise NotInspected("the device code is compressed (--offload-compress)")
        try:
            images, end = images_at(content, begin, _ENTRIES_LIMIT)
        except BadBundle as error:
            raise NotInspected(str(error)) from error
        if not images:
            raise NotInspected("an offload bundle claims 0 entries")
        entries += [(image.target, content[image.begin : image.end]) for image in images]
        if len(entries) > _ENTRIES_LIMIT or sum(len(image) for _, image in entries) > len(content):
            raise NotInspected("the offload bundles hold more than their section")
        begin = next_bundle(content, end)
    return entries


def metadata(code_object: Path, tools: Tools) -> tuple[KernelMetadata, ...]:
    """Return the kernels of a code object, in its own order. Raises NotInspected where llvm-readelf cannot read it."""
    return parse_metadata(tools.run("llvm-readelf", "--notes", str(code_object)))


def parse_metadata(notes: str) -> tuple[KernelMetadata, ...]:
    """Return the kernels in what `llvm-readelf --notes` prints: YAML, one list item a kernel under `amdhsa.kernels`."""
    kernels: list[dict[str, str]] = []
    inside = False
    for line in notes.splitlines():
        if line and not line.startswith(" "):
            inside = line.startswith("amdhsa.kernels:")
        match = _FIELD.fullmatch(line) if inside else None
        if line.startswith("  - ") and inside:
            kernels.append({})
        if match is not None and kernels:
            kernels[-1][match["key"]] = match["value"].strip().strip("'\"")
    return tuple(_kernel(kernel) for kernel in kernels if "name" in kernel)


def _kernel(fields: dict[str, str]) -> KernelMetadata:
    def number(key: str) -> int | None:
        value = fields.get(key, "")
        return int(value) if value.isdecimal() and len(value) <= _DIGITS else None

    return KernelMetadata(
        name=fields["name"],
        max_workgroup_size=number("max_flat_workgroup_size"),
        registers=number("vgpr_count"),
        agprs=number("agpr_count"),
        sgprs=number("sgpr_count"),
        lds_bytes=number("group_segment_fixed_size"),
        scratch_bytes_per_lane=number("private_segment_fixed_size"),
        vgpr_spills=number("vgpr_spill_count"),
        sgpr_spills=number("sgpr_spill_count"),
    )


def allocated_vgprs(code_object: Path, kernel: str, tools: Tools) -> int:
    """Return the VGPRs and AGPRs a lane that a launch is given, in whole blocks, by the kernel's descriptor.

    They are more than the kernel uses where its source caps the waves a SIMD. Raises NotInspected.
    """
    shown = tools.run("llvm-objdump", "-D", "-j", ".rodata", str(code_object))
    found = _NEXT_FREE_VGPR.search(shown.partition(f".amdhsa_kernel {kernel}\n")[2])
    if found is None:
        raise NotInspected(f"no kernel descriptor of {kernel[:100]}")
    return int(found[1])
