"""Sizes of blocks, warps, stages and groups: constants of C++ and Python, and keywords of a launch."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from hkbench.moves.base import Site, write
from hkbench.moves.python_source import PythonSource, native_code

_SIZE = re.compile(r"block|tile|chunk|unroll|stage|warp|thread|group|panel|split|rows_per|_per_|vec|^b[mnk]$", re.I)
_CONSTANT = re.compile(
    r"(?:\bconstexpr\s+(?:static\s+)?|\bconst\s+|\bstatic\s+const(?:expr)?\s+)"
    r"(?:int|unsigned|long|size_t|int64_t|int32_t|std::size_t|auto)\s+(\w+)\s*=\s*(\d+)\s*;"
    r"|^[ \t]*#define[ \t]+(\w+)[ \t]+(\d+)[ \t]*$",
    re.MULTILINE,
)
_MAX_SIZE = 4096
_STEPS = 3  #: doublings up and down from what stands there


def sizes_of(value: int) -> list[str]:
    """Return sizes around one, each twice the one before it: 16 to 1024 for 128."""
    found = {value}
    for power in range(1, _STEPS + 1):
        if value % 2**power == 0:
            found.add(value >> power)
        if value << power <= _MAX_SIZE:
            found.add(value << power)
    return [str(size) for size in sorted(found) if size > 0]


def of_move(move: str, source: str, backend: str) -> list[Site]:
    """Find the values that a move changes: of blocks and warps, of a pipeline's stages, of rows of blocks in turn."""
    return [site for site in _all(source, backend) if site.move == move]


def _all(source: str, backend: str) -> list[Site]:
    found = _keywords_and_constants(source)
    if backend != "triton":
        found += _native_constants(source)
    return found


def _move_of(name: str) -> str:
    lower = name.lower()
    if "stage" in lower:
        return "enable_async_pipeline"
    return "grouped_gemm_colmajor" if "group" in lower else "change_block_sizes"


def _values(name: str, value: int) -> list[str]:
    lower = name.lower()
    if lower == "num_warps":
        return sorted({"1", "2", "4", "8", "16", str(value)}, key=int)
    if "stage" in lower:
        return sorted({"1", "2", "3", "4", "5", str(value)}, key=int)
    return sizes_of(value)


def _native_constants(source: str) -> list[Site]:
    found: list[Site] = []
    for start, code in native_code(source):
        for match in _CONSTANT.finditer(code):
            group = 2 if match.group(1) else 4
            name, value = match.group(group - 1), match.group(group)
            if _SIZE.search(name) and int(value) > 0:
                span = (start + match.start(group), start + match.end(group))
                found.append(Site.of_values(_move_of(name), name, span, _values(name, int(value)), value))
    return found


def _keywords_and_constants(source: str) -> list[Site]:
    """Find integers of the Python file: keywords of a kernel's launch, and constants of the module and of functions."""
    file = PythonSource(source)
    found: list[Site] = []

    def add(name: str, node: ast.expr) -> None:
        if not (isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0 and _SIZE.search(name)):
            return
        span = file.span(node)
        if source[span[0] : span[1]] == str(node.value):
            found.append(Site.of_values(_move_of(name), name, span, _values(name, node.value), str(node.value)))

    for node in file.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            add(node.targets[0].id, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):  # kernel[grid](...)
            for keyword in node.keywords:
                add(keyword.arg or "", keyword.value)
    return found


def constants(source: str, backend: str) -> dict[str, int]:
    """Return the sizes and launch parameters that a source names, with their values; none of one that is not Python."""
    return {site.label: int(site.choices[site.now]) for site in _sites(source, backend)}


def with_values(source: str, backend: str, values: Mapping[str, int]) -> str | None:
    """Return the source with other values of its constants; `None` where it has none of a name, or nothing changes."""
    sites = [site for site in _sites(source, backend) if site.label in values]
    if {site.label for site in sites} != set(values) or any(not 0 < value <= _MAX_SIZE for value in values.values()):
        return None
    given = [Site.of_values(site.move, site.label, site.spans[0], ["", str(values[site.label])], "") for site in sites]
    written = write(source, given, [1] * len(given))
    return written if written != source else None


def _sites(source: str, backend: str) -> list[Site]:
    try:
        found = _all(source, backend)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list({site.spans: site for site in found}.values())
