"""Lighter headers of PyTorch for one compilation by nvcc: what its source does not name is left out.

nvcc cannot read precompiled headers, and reads all of them twice. A folder of stand-ins, found before PyTorch's own,
leaves out

- of `torch/extension.h` and `torch/all.h` what PCHs leave out too (`gxx.HEADER_SUBSTITUTES`), and the Python bindings
  where the source says nothing of Python;
- of `ATen/Functions.h` and `ATen/NativeFunctions.h`, which declare each of some 1300 operators, those whose names do
  not occur in the source. Of those that do all overloads are there, so calls mean the same. PyTorch's own headers name
  the operators that they use themselves (AT_PER_OPERATOR_HEADERS). A source with headers of its own, whose names are
  not looked at, gets these lists whole.

A source that needs more fails to compile, and is then built in the usual way. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from hkbench.fastbuild.inside.gxx import HEADER_SUBSTITUTES, substitute_header

OPERATORS = "-DAT_PER_OPERATOR_HEADERS"
_LISTS = ("ATen/Functions.h", "ATen/NativeFunctions.h")
_MIN_OPERATORS = 500  #: operators that such a list has to have to be taken for one
_OPERATOR = re.compile(r"#include <ATen/ops/(\w+?)(?:_native)?\.h>")
_WORTH = re.compile(r"^\s*#\s*include\s*[<\"](?:torch|ATen)/", re.MULTILINE)
_OWN = re.compile(r"^\s*#\s*include\s*(?:\"(?!torch/|ATen/|c10/|cuda)|[^\s<\"])", re.MULTILINE)
_PYTHON = re.compile(r"\b(py(?!torch)|PY|Py(?!Torch)|THP)|TORCH_EXTENSION_NAME")
_BINDINGS = frozenset({"torch/csrc/utils/pybind.h", "torch/csrc/Exceptions.h"})


def write_lighter_headers(source: str, folders: Sequence[str], folder: Path, whole_lists: bool = False) -> list[str]:
    """Write stand-ins to `folder` for one source; return nvcc's words for them, none without PyTorch's headers.

    `folders` are the include folders of the command in their order; `whole_lists` leaves out no operators.
    """
    if not _WORTH.search(source):
        return []
    bindings = bool(_PYTHON.search(source))
    for name, includes in {
        **HEADER_SUBSTITUTES["extension"],
        "torch/all.h": ("torch/types.h", "torch/version.h"),
    }.items():
        kept = [inner for inner in includes if bindings or inner not in _BINDINGS]
        _write(folder / name, substitute_header(name, kept))
    words = ["-isystem", str(folder)]
    if whole_lists or _OWN.search(source):
        return words
    lists = {name: _first(folders, name) for name in _LISTS}
    named = frozenset(re.findall(r"\w+", source))
    shorter = {name: shortened(text, named) for name, text in lists.items()}
    if all(text is not None for text in shorter.values()):
        for name, text in shorter.items():
            _write(folder / name, text or "")
        words.append(OPERATORS)
    return words


def shortened(text: str, named: Collection[str]) -> str | None:
    """Return a list of operators' headers with those of the `named` ones alone; None where it does not look like one.

    Operators that the rest of the text uses stay, and so do those whose header is of another kind.
    """
    lines = text.splitlines(keepends=True)
    operators = [_OPERATOR.match(line) for line in lines]
    if sum(found is not None for found in operators) < _MIN_OPERATORS:
        return None
    rest = "".join(line for line, found in zip(lines, operators, strict=True) if found is None)
    used = set(re.findall(r"\w+", re.sub(r"//.*|#.*", "", rest)))
    kept = {"from_blob", "tensor", *used, *named}
    return "".join(line for line, found in zip(lines, operators, strict=True) if found is None or found[1] in kept)


def _first(folders: Sequence[str], name: str) -> str:
    """Return the text of a header as a compiler would find it; empty where there is none."""
    paths = (Path(folder) / name for folder in folders)
    found = next((path for path in paths if path.is_file()), None)
    return "" if found is None else found.read_text(encoding="utf-8", errors="replace")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
