"""PTX and what ptxas, NVIDIA's assembler, says of the kernels in it."""

from __future__ import annotations

import re
from pathlib import Path

from hkbench.records.compiled import PtxResources
from hkbench.toolchain.programs import find_nvcc, find_program

SM = re.compile(r"sm_(\d{2,3})[af]?")
_OF_TRITON = Path("backends", "nvidia", "bin")  #: the newer assembler has a name of its own there
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
_TARGET = re.compile(r"^\.target (sm_\d{2,3}[af]?)\b", re.MULTILINE)
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")


def find_ptxas(triton: Path | None = None) -> str | None:
    """Find ptxas: the one in the folder of Triton, which knows the PTX that Triton writes, else nvcc's, or on PATH."""
    places = [] if triton is None else [triton / _OF_TRITON / name for name in ("ptxas-blackwell", "ptxas")]
    nvcc = find_nvcc()
    places += [] if nvcc is None else [Path(nvcc).with_name("ptxas")]
    found = (find_program(str(path)) for path in (*places, "ptxas"))
    return next((path for path in found if path is not None), None)


def ptxas_command(ptxas: str, arch: str, source: Path, cubin: Path) -> list[str]:
    """Return the command that assembles PTX and says what each kernel uses."""
    return [ptxas, "-v", f"-arch={arch}", str(source), "-o", str(cubin)]


def target_of(source: Path) -> str | None:
    """Return what PTX says that it is for: "sm_90a", where sm_90 was asked for and the code has more."""
    found = _TARGET.search(source.read_text(encoding="utf-8", errors="replace"))
    return found[1] if found is not None else None


def parse_ptxas(output: str) -> tuple[PtxResources, ...]:
    """Return one record a kernel of what `ptxas -v` prints, in its order, with the names as it prints them."""
    found: list[dict[str, object]] = []
    for line in output.splitlines():
        if (entry := _ENTRY.search(line)) is not None:
            found.append({"name": entry[1], "arch": entry[2]})
        elif not found:
            continue
        elif (spilled := _SPILLS.search(line)) is not None:
            stack, stores, loads = map(int, spilled.groups())
            found[-1] |= {"stack_bytes": stack, "spill_store_bytes": stores, "spill_load_bytes": loads}
        elif (used := _USED.search(line)) is not None:
            shared = _SHARED.search(used[2])
            found[-1] |= {"registers": int(used[1]), "shared_bytes": int(shared[1]) if shared else 0}
    return tuple(PtxResources.model_validate(one) for one in found)
