"""ALU instructions: the executor against AMD's pseudocode (and what stands in its place where that is wrong)."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from unit.emulator.proof import alu, compare, errata, inputs, machine, pseudocode
from unit.emulator.proof.alu import Instruction
from unit.emulator.proof.wave import Wave

_INACTIVE = 0b1001 << 30  #: lanes that must keep what they have
_FIRST, _EACH = 8, 40  #: registers of the groups of operands
_BY_ARCH = ("fp8", "bf8")


def _mnemonics() -> list[str]:
    return sorted(filter(alu.covers, machine.mnemonics()))


def _prepared(mnemonic: str, group: int) -> tuple[Wave, list[Instruction]]:
    """Return a wave whose registers hold values to try, and the mnemonic in all of its forms."""
    rng = np.random.default_rng(inputs.generator(mnemonic, group).getrandbits(32))
    wave = Wave(exec=~_INACTIVE & (1 << 64) - 1, scc=group & 1)
    wave.vgpr[:] = rng.integers(0, 1 << 32, wave.vgpr.shape, dtype=np.uint32)
    wave.sgpr[:102] = rng.integers(0, 1 << 32, 102).tolist()
    wave.vcc = inputs.generator("vcc", mnemonic, group).getrandbits(64)
    instructions = []
    for number, (entry, wide) in enumerate(alu.forms(pseudocode.entries()[mnemonic])):
        first = _FIRST + _EACH * number
        scalar = mnemonic.startswith("s_")
        instruction = alu.scalar(entry, first) if scalar else alu.vector(entry, first, wide)
        alu.fill(wave, instruction, (group, number))
        instructions.append(instruction)
    return wave, instructions


@functools.cache
def _cases(mnemonic: str, arch: str) -> list[tuple[Wave, list[str], Wave]]:
    """Return before, program and after, as the definition has it."""
    found = []
    for group in range(inputs.GROUPS * (8 if mnemonic.startswith("s_") else 1)):
        before, instructions = _prepared(mnemonic, group)
        after = before.copy()
        for instruction in instructions:
            alu.apply(after, instruction, arch)
        found.append((before, [instruction.text for instruction in instructions], after))
    return found


@pytest.mark.parametrize("mnemonic", _mnemonics())
def test_alu(mnemonic: str) -> None:
    for arch in machine.architectures(mnemonic):
        cases = _cases(mnemonic, arch if any(part in mnemonic for part in _BY_ARCH) else machine.ARCHITECTURES[-1])
        for before, program, after in cases:
            actual = machine.run(arch, program, before)
            found = compare.differences(after, actual, errata.ULP.get(mnemonic, 0))
            assert not found, f"{arch}: {'; '.join(program)}\n  " + "\n  ".join(found)
