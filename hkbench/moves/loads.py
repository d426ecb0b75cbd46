"""Through which caches a kernel reads."""

from __future__ import annotations

import re

from hkbench.moves.base import Site
from hkbench.moves.python_source import PythonSource, native_code

_CACHES = ("default", 'cache_modifier=".ca"', 'cache_modifier=".cg"', 'eviction_policy="evict_last"')
_KERNEL = re.compile(r"__global__[^{;]*?\w+\s*\(([^)]*)\)\s*\{")
_CONST_POINTER = re.compile(
    r"const\s+(?:float|double|int|unsigned|half|__half|float[24]|int[24])\s*\*\s*(?:__restrict__\s*)?(\w+)"
)
#: Functions that read through other caches, by backend; those of CUDA are of its programming guide, 7.10 and 7.11.
_READERS = {"cuda": ("__ldg", "__ldcg", "__ldcs"), "hip": ("__builtin_nontemporal_load",)}
_READERS["hipkittens"] = _READERS["hip"]


def caches(source: str, backend: str) -> list[Site]:
    """Find loads that can be told which caches to use."""
    if backend == "triton":
        return PythonSource(source).further_keywords(
            "cache_policy_cg", "cache of load", "tl.load", _CACHES, unless={"cache_modifier", "eviction_policy"}
        )
    return _of_pointers(source, backend) if backend in _READERS else []


def _of_pointers(source: str, backend: str) -> list[Site]:
    """Find all reads of a constant pointer that a kernel has as an argument."""
    found: list[Site] = []
    for start, code in native_code(source):
        for kernel in _KERNEL.finditer(code):
            end = _closing(code, kernel.end() - 1, "{}")
            for name in _CONST_POINTER.findall(kernel.group(1)):
                reads = _reads(code, name, kernel.end(), end)
                if reads:
                    spans = tuple((start + at, start + at) for read in reads for at in read)
                    texts = [("",) * len(spans)]
                    texts += [(f"{reader}(&", ")") * len(reads) for reader in _READERS[backend]]
                    choices = ("default", *_READERS[backend])
                    found.append(Site("cache_policy_cg", f"cache of {name}", choices, 0, spans, tuple(texts)))
    return found


def _reads(code: str, name: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where `name[...]` begins and ends; none at all where an address of it is taken, or reads are nested."""
    found: list[tuple[int, int]] = []
    for match in re.finditer(rf"(?<![\w.>&])\b{name}\s*\[", code[start:end]):
        begin = start + match.start()
        close = _closing(code, start + match.end() - 1, "[]") + 1
        if found and begin < found[-1][1]:
            return []
        found.append((begin, close))
    return found


def _closing(code: str, at: int, brackets: str) -> int:
    """Return the place of the bracket that closes the one at a place; the end of the code where there is none."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] == brackets[0]) - (code[place] == brackets[1])
        if depth == 0:
            return place
    return len(code) - 1
