"""The decoder against two others: LLVM's assembler takes back what was understood, and tinygrad's tables agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.emulated import device_code, kernel_source
from support.emulator_step import assemble
from support.kittens import kittens_or_skip
from tinygrad.renderer.amd import decode_inst
from unit.emulator.proof import corpus, machine
from unit.emulator.proof.printing import printed

from hkbench.emulator import elf
from hkbench.emulator.decode import base_name, decode
from hkbench.emulator.listing import Line, disassemble
from hkbench.emulator.operands import Kind
from hkbench.emulator.table import table
from hkbench.toolchain.hipkittens import Dialect

_REGISTER = re.compile(r"\b([vs])\[(\d+)(?::\d+)?\]")
_LAST_SCALAR = 101
_ALIASES = {"v_accvgpr_read": "v_accvgpr_read_b32", "v_accvgpr_write": "v_accvgpr_write_b32"}


def _agrees(arch: str, lines: Sequence[Line]) -> None:
    _assembles_again(arch, lines)
    _second_opinion(arch, lines)


def _assembles_again(arch: str, lines: Sequence[Line]) -> None:
    """What the decoder understood, printed, is assembled to the same machine code."""
    rows, texts, words = table(arch), [], []
    for line in lines:
        mnemonic = line.text.partition(" ")[0]
        row = rows.get(base_name(mnemonic)[0])
        signature = row.signature if row else ("?",)
        if not all(":" in token or token in ("vcc", "exec", "scc", "=exec", "=scc", "=vcc") for token in signature):
            continue  # memory, branches, waits: below
        texts.append(printed(mnemonic, signature, decode(line.text, rows)))
        words.append(line)
    for text, again, line in zip(texts, assemble(arch, tuple(texts)), words, strict=True):
        assert again.words == line.words, f"{arch}: {line.text}\n  understood as {text}\n  which is {again.text}"


def _second_opinion(arch: str, lines: Sequence[Line]) -> None:
    """tinygrad's tables find the same mnemonic and registers in the bytes; register 0 it leaves out or adds."""
    rows = table(arch)
    for line in lines:
        name = base_name(line.text.partition(" ")[0])[0]
        if name not in rows:
            continue
        data = b"".join(word.to_bytes(4, "little") for word in line.words) + bytes(8)
        try:
            other = repr(decode_inst(data, "cdna"))
        except ValueError:
            continue  # not in its tables
        if name in ("v_readlane_b32", "v_readfirstlane_b32"):
            other = other.replace("v[", "s[", 1)  # its tables take the destination for a vector register
        named = base_name(other.partition("(")[0].lower())[0].replace("_mad_mix", "_fma_mix")
        assert _ALIASES.get(named, named) == name, f"{arch}: {line.text}, and tinygrad {other}"
        theirs = {(file, int(first)) for file, first in _REGISTER.findall(other)}
        ours = {
            ("v" if slot.kind is Kind.VGPR else "s", slot.index % 256)
            for slot in decode(line.text, rows).slots
            if slot.kind is Kind.VGPR or (slot.kind is Kind.SGPR and slot.index <= _LAST_SCALAR)
        }
        differ = {register for register in ours ^ theirs if register[1]}
        assert not differ, f"{arch}: {line.text}\n  {sorted(ours)}, and tinygrad {other}"


@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_forms_of_the_proof(arch: str) -> None:
    lines = assemble(arch, tuple(corpus.texts(arch)))
    assert len(lines) > 900
    _agrees(arch, lines)


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
def test_code_objects_of_the_examples(arch: str, tmp_path: Path) -> None:
    hip_or_skip("the decoder is not compared on compiled kernels")
    dialect = Dialect.CDNA3 if arch == "gfx942" else Dialect.CDNA4
    include = kittens_or_skip(dialect, "the decoder is not compared on HipKittens' kernels") / "include"
    for example in corpus.kernels(dialect):
        code = device_code(kernel_source(example), arch, tmp_path, include)
        assert elf.read(code).arch == arch
        _agrees(arch, disassemble(code))
