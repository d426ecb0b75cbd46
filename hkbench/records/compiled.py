"""What compiling one kernel file alone came to."""

from __future__ import annotations

from hkbench.records.base import Record
from hkbench.records.profile import KernelResources


class PtxResources(Record):
    """What ptxas reports of one kernel for an NVIDIA GPU; bytes where nothing else is said."""

    name: str
    arch: str
    registers: int | None = None  #: a thread
    shared_bytes: int = 0  #: static
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None


class CompiledForm(Record):
    """One form in which a kernel was written: PTX, a code object, an object file."""

    kernel: str | None  #: `None`: all kernels of the file
    form: str  #: "ptx", "cubin", "amdgcn", "hsaco", "object"
    bytes: int


class CompiledFile(Record):
    """One kernel file, compiled for one target and not run; `error` is `None` exactly when it compiles."""

    file: str
    way: str  #: which of the ways of compiling it was
    compiler: str  #: with its version
    target: str  #: "gfx942", "sm_90", "cpu"
    error: str | None = None
    line: int | None = None  #: of the file, where the compiler names one
    forms: tuple[CompiledForm, ...] = ()
    resources: tuple[KernelResources, ...] = ()  #: of AMD GPUs
    ptx_resources: tuple[PtxResources, ...] = ()  #: of NVIDIA GPUs
    notes: tuple[str, ...] = ()
    seconds: float
