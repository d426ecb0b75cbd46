"""The useful part of what compilers and linkers print."""

from __future__ import annotations

import re

_ERROR = re.compile(r"(^|[\s:])(fatal )?error: ")
_NEXT = re.compile(r"^\S+:\d+:\d+: |^\d+ (error|warning)s? generated")
_SHOWN_LINES = 14
_UNRESOLVED = re.compile(r"undefined reference to `(?P<name>.+)'\s*$")

# What only PyTorch's ROCm build, ROCm's libraries or the interpreter define: a machine without them cannot tell.
_RESOLVED_ELSEWHERE = re.compile(
    r"(c10|at|torch)::(native::)?(cuda|hip)\b|.*\bfor (c10|at)::(cuda|hip)::|_?Py[A-Z_]|__?hip|hip[A-Z]"
    r"|roc\w+_|rocblas|hipblas|hipsparse|hipsolver|hiprand|miopen|nccl"
)


def first_error(output: str) -> str | None:
    """The first error with the source lines that the compiler shows for it; None when there is no error line.

    A line of "In file included from" above the error is kept: it says which of the candidate's lines led there.
    """
    lines = output.splitlines()
    for index, line in enumerate(lines):
        if not _ERROR.search(line):
            continue
        begin = index
        while begin > 0 and lines[begin - 1].lstrip().startswith(("In file included from", "from ")):
            begin -= 1
        shown = lines[begin : index + 1]
        for after in lines[index + 1 : index + _SHOWN_LINES]:
            if _ERROR.search(after) or (_NEXT.match(after) and ": note: " not in after):
                break
            shown.append(after)
        return "\n".join(shown)
    return None


def unresolved_symbols(output: str) -> tuple[str, ...]:
    """Names that a linker could not resolve and that no library of a ROCm machine would: each once, in order."""
    names: dict[str, None] = {}
    for line in output.splitlines():
        match = _UNRESOLVED.search(line)
        if match and not _RESOLVED_ELSEWHERE.match(match["name"]):
            names[match["name"]] = None
    return tuple(names)
