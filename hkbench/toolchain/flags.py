"""Which of a candidate's own compiler and linker flags a build passes on.

The flags come from an untrusted process. A compiler can be told to load a plugin, run another program or read its
arguments from a file, so what is passed on is listed; anything else is refused by name rather than dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMPILE = re.compile(
    r"-O([0-3sz]|fast)?|-[DU]\w+(=.*)?|-I.+|-std=[\w+]+|-g\d?|-w|-pthread|-fPIC"
    r"|-W(?![lpa],)[\w+=-]*"
    r"|-f(no-)?(gpu-(rdc|flush-denormals-to-zero)|fast-math|unroll-loops|inline-functions|signed-zeros|openmp"
    r"|finite-math-only|math-errno|trapping-math|associative-math|reciprocal-math|strict-aliasing|slp-vectorize"
    r"|vectorize|unsafe-math-optimizations|exceptions|rtti|honor-nans|honor-infinities)"
    r"|-ffp-contract=[\w-]+|-fvisibility=\w+|-fdiagnostics-[\w=-]+|-fconstexpr-(steps|depth)=\d+|-ftemplate-depth=\d+"
    r"|-m(no-)?[\w.+-]+(=[\w.,+-]+)?|--offload-arch=gfx[\w:+-]+|-save-temps"
)
_WITH_VALUE = ("-I", "-D", "-U", "-isystem", "-mllvm")
_REFUSED_M = re.compile(r"-mllvm=.*|-mlinker.*|-mrelocation.*")
_LLVM_OPTION = re.compile(r"-+amdgpu-[\w-]+(=[\w-]+)?|-+(enable|disable|inline|unroll)-?[\w-]*(=[\w-]+)?")
_LINK = re.compile(r"-l[\w.+-]+|-L.+|-pthread|-O\d?|-s|-g|-Wl,--as-needed|-Wl,--no-as-needed")

#: Libraries of ROCm that a machine without a GPU need not have: their absence says nothing about a candidate.
ROCM_LIBRARIES = frozenset(
    (
        "amdhip64",
        "hiprtc",
        "hipblas",
        "hipblaslt",
        "hipsparse",
        "hipsolver",
        "hiprand",
        "hipfft",
        "rocblas",
        "rocsparse",
        "rocsolver",
        "rocrand",
        "rocfft",
        "MIOpen",
        "rccl",
        "roctx64",
        "c10_hip",
        "torch_hip",
    )
)


def refused_compile_flags(flags: Sequence[str]) -> list[str]:
    """Return those of `flags` that a build does not pass on; an empty list when all are fine."""
    refused: list[str] = []
    words = iter(flags)
    for flag in words:
        if flag in _WITH_VALUE:
            value = next(words, "")
            if not value or value.startswith("@") or (flag == "-mllvm" and not _LLVM_OPTION.fullmatch(value)):
                refused.append(f"{flag} {value}".strip())
        elif not _COMPILE.fullmatch(flag) or _REFUSED_M.fullmatch(flag):
            refused.append(flag)
    return refused


def split_link_flags(flags: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split the linker's flags: (flags to pass on, refused flags, names of ROCm libraries that are left out)."""
    passed: list[str] = []
    refused: list[str] = []
    left_out: list[str] = []
    for flag in flags:
        if not _LINK.fullmatch(flag):
            refused.append(flag)
        elif flag.startswith("-l") and flag[2:] in ROCM_LIBRARIES:
            left_out.append(flag[2:])
        else:
            passed.append(flag)
    return passed, refused, left_out
