"""Instructions to decode: every form that the proof executes, and what the compiler makes of kernels."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from unit.emulator.proof import alu, machine, memory, pseudocode
from unit.emulator.proof.wave import Wave

_MORE = (
    *("v_mov_b32_dpp v1, v2 row_shr:3 row_mask:0xa bank_mask:0x5", "v_add_f32_dpp v1, -v2, |v3| row_newbcast:7"),
    *("v_add_f32_e64 v1, -v2, |v3|", "v_fma_f32 v1, -|v2|, 0.5, s7 clamp", "v_add_f32_e32 v1, 0x3f9d70a4, v3"),
    *("v_add_u32_sdwa v1, v2, sext(v3) dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3 src1_sel:WORD_0",),
    *("v_pk_add_f16 v1, v2, v3 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0]", "v_pk_mul_f32 v[2:3], v[4:5], s[6:7]"),
    *("v_cmp_lt_i64_e64 s[8:9], v[2:3], s[4:5]", "v_cndmask_b32_e64 v1, 0, -1, vcc", "v_mov_b32_e32 v1, 0xdeadbeef"),
    *("v_lshlrev_b64 v[2:3], 3, v[4:5]", "s_mov_b64 exec, -1", "s_and_b64 vcc, exec, s[4:5]", "v_mov_b32_e32 v1, -4.0"),
    *("v_add_f64 v[2:3], v[4:5], 1.0", "v_readlane_b32 s4, v5, 63", "v_fma_f16 v1, v2, v3, v4 op_sel:[1,0,0,1]"),
)


def texts(arch: str) -> Iterator[str]:
    """Yield the text of every form of every mnemonic of an architecture that the proof executes."""
    for mnemonic in machine.mnemonics():
        if arch not in machine.architectures(mnemonic):
            continue
        known = pseudocode.entries().get(mnemonic, {})
        if alu.covers(mnemonic):
            for entry, wide in alu.forms(known):
                scalar = mnemonic.startswith("s_")
                yield (alu.scalar(entry, 8) if scalar else alu.vector(entry, 8, wide)).text
        for entry in known.values():
            for form in memory.forms(entry):
                wave, rng = Wave(memory=bytearray(8192), address=1 << 40), random.Random(mnemonic)
                scratch = form == "scratch"
                yield (memory.private(entry, wave) if scratch else memory.access(entry, wave, rng, form)).text
    yield from _MORE


def kernels(dialect: str) -> list[Path]:
    """Return the shipped HipKittens examples."""
    return sorted((Path(__file__).resolve().parents[4] / "examples" / "hipkittens" / dialect).glob("*.py"))
