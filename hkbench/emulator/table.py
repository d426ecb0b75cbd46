"""The executor's table of mnemonics, as the executor itself tells it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from hkbench.emulator.build import core


@dataclass(frozen=True)
class Row:
    """One mnemonic: its number, and what its operands are."""

    name: str
    op: int
    signature: tuple[str, ...]


@cache
def table(arch: str) -> dict[str, Row]:
    """Return the mnemonics that the executor has for an architecture, without `_e32` and the like."""
    told = core().hkbench_emulator_table
    told.restype = ctypes.c_char_p
    found = {}
    for op, line in enumerate(told().decode().splitlines()):
        name, _, signature = line.partition("\t")
        base, _, only = name.partition("@")
        if not only or only == arch:
            found[base] = Row(base, op, tuple(signature.split()))
    return found
