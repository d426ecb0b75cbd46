"""Kernels in a candidate's text that are an installed package's, whatever they are called there.

Texts are compared by their tokens, without comments and with each identifier replaced by its place within a run of
`RUN` tokens, so that renaming changes nothing. What is short, or common to all kernels of a kind, is nobody's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from hkbench.profile import names
from hkbench.profile.names import base, device_functions, is_jit, without_comments
from hkbench.sandbox.apart import answered

RUN = 32  #: tokens
MIN_RUNS = 48  #: below, a kernel is too short to be anybody's in particular
COPIED = 0.75  #: of a kernel's runs, that stand in installed kernels
MAX_FILES = 20_000
MAX_RUNS = 200_000  #: of all installed kernels: some ten seconds' work, once in a process
MAX_CHARACTERS = 1 << 20  #: of one file
MAX_CANDIDATE_CHARACTERS = 1 << 21
SECONDS = 30.0  #: of processor time, for all texts of a candidate
MEMORY = 2 << 30

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\s\w]")
_PYTHON_COMMENT = re.compile(r"#[^\n]*")
_KERNEL_BODY = re.compile(r"\b__global__\b[^;{}]{0,2000}\{")
_NEEDS = re.compile(r"^(?:torch|triton)\b", re.IGNORECASE)
#: Of PyTorch's files; it has kernels nowhere else.
_TORCH_KERNELS = ("torch/include/ATen/native/", "torch/_inductor/kernel", "torch/sparse/")
_WORD = re.compile(r"[A-Za-z_]")
#: Words that mean the same in every kernel and are kept as they stand.
_KEPT = frozenset(
    (
        *("if", "else", "for", "while", "return", "in", "not", "and", "or", "is", "def", "break", "continue"),
        *("static", "const", "constexpr", "float", "double", "int", "auto", "void", "unsigned", "bool", "sizeof"),
        *("template", "typename", "true", "false", "True", "False", "None"),
    )
)


def copied_kernels_apart(source: str, folder: str) -> dict[str, str]:
    """Return the kernels of a candidate that installed packages have -> the installed file of each.

    Its file and what lies in its folder are looked through in a process of its own.

    Raises:
        NotFinished: that takes more than `SECONDS` or `MEMORY`.
    """

    def look() -> list[tuple[str, list[int]]]:
        texts = (source, *(text for _, text in names.texts(folder)))
        return [(name, sorted(found)) for name, found in own_runs(texts)]

    return _matched((name, set(found)) for name, found in answered(look, SECONDS, MEMORY))


def own_runs(texts: Iterable[str]) -> Iterator[tuple[str, set[int]]]:
    """Yield (name, runs) of the kernels in these texts that are long enough to be somebody's."""
    left = MAX_CANDIDATE_CHARACTERS
    for text in texts:
        for name, body in kernels_in(text[:left]):
            own = runs(body)
            if len(own) >= MIN_RUNS:
                yield name, own
        left -= len(text)
        if left <= 0:
            return


def _matched(kernels: Iterable[tuple[str, set[int]]]) -> dict[str, str]:
    found = {}
    for name, own in kernels:
        index = installed_runs()
        places = [index[run] for run in own if run in index]
        if len(places) >= COPIED * len(own):
            found[name] = max(sorted(set(places)), key=places.count)
    return found


def kernels_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text without comments) of each `__global__` function, also in strings, and Triton function."""
    plain = without_comments(text)
    for match in _KERNEL_BODY.finditer(plain):
        end = _closing(plain, match.end())
        yield from ((base(name), plain[match.end() : end]) for name in device_functions(match[0]))
    if "jit" not in text:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    jitted = {
        argument.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and is_jit(node.func)
        for argument in node.args
        if isinstance(argument, ast.Name)
    }
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.name in jitted or any(map(is_jit, node.decorator_list))):
            body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
            if body:
                yield node.name, _PYTHON_COMMENT.sub(" ", "\n".join(lines[body[0].lineno - 1 : node.end_lineno]))


def runs(body: str) -> set[int]:
    """Return a number for each run of `RUN` tokens, the same where only identifiers were renamed."""
    tokens = _TOKEN.findall(body)
    return {_number(tokens[at : at + RUN]) for at in range(len(tokens) - RUN + 1)}


def _number(tokens: list[str]) -> int:
    places: dict[str, str] = {}
    words = []
    for token in tokens:
        plain = token in _KEPT or not _WORD.match(token)
        words.append(token if plain else places.setdefault(token, f"@{len(places)}"))
    return int.from_bytes(blake2b(" ".join(words).encode(errors="replace"), digest_size=8).digest())


def _closing(text: str, start: int) -> int:
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return start + match.start()
    return len(text)


@lru_cache(maxsize=1)
def installed_runs() -> dict[int, str]:
    """Return runs of all kernels in packages here that need PyTorch or Triton, and in PyTorch's headers."""
    return runs_of_files(_kernel_files())


def runs_of_files(paths: Iterable[Path]) -> dict[int, str]:
    """Return the runs of the kernels in these files, each with the file that has it."""
    found: dict[int, str] = {}
    for path in paths:
        try:
            text = path.read_text(errors="replace")[:MAX_CHARACTERS]
        except OSError:
            continue
        if "__global__" not in text and "triton" not in text:
            continue
        for _, body in kernels_in(text):
            for run in runs(body):
                found.setdefault(run, str(path))
        if len(found) > MAX_RUNS:
            break
    return found


def _kernel_files() -> Iterator[Path]:
    files = (Path(str(item.locate())) for dist in _packages() for item in dist.files or () if _holds_kernels(str(item)))
    for number, path in enumerate(files):
        if number >= MAX_FILES:
            return
        yield path


def _packages() -> Iterator[metadata.Distribution]:
    for dist in metadata.distributions():
        name = dist.metadata["Name"] or ""
        if name in ("torch", "triton") or any(_NEEDS.match(need) for need in dist.requires or ()):
            yield dist


def _holds_kernels(path: str) -> bool:
    if path.startswith("torch/"):
        return path.startswith(_TORCH_KERNELS) and path.endswith((".cuh", ".h", ".py"))
    return path.endswith((".py", ".cuh", ".cu", ".hip"))
