"""Which definition, independent of the executor, each mnemonic has; the tests beside this file apply them.

| definition | where |
| --- | --- |
| AMD's pseudocode by the evaluator | test_alu.py, test_memory.py |
| another witness where the pseudocode is wrong | errata.py, in test_alu.py |
| layouts by formulas, exact products | test_matrix.py |
| movements between lanes by formulas | test_lanes.py |
| quotients that are rounded correctly | test_division.py |
| where the program goes on, and what changes nothing | test_control.py |
"""

from __future__ import annotations

from collections.abc import Iterable

from unit.emulator.proof import alu, errata, matrix, memory

LANES = frozenset(
    (
        *("ds_swizzle_b32", "ds_bpermute_b32", "ds_permute_b32", "v_permlane16_swap_b32", "v_permlane32_swap_b32"),
        *("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", "ds_read_b64_tr_b4", "ds_read_b96_tr_b6"),
        *("v_readfirstlane_b32", "v_readlane_b32"),
        *("v_writelane_b32", "v_accvgpr_write_b32", "v_accvgpr_read_b32", "v_accvgpr_mov_b32", "v_pk_mov_b32"),
    )
)
DIVISION = frozenset(("v_div_scale_f32", "v_div_scale_f64", "v_div_fmas_f32", "v_div_fmas_f64"))
BRANCHES = frozenset(
    (
        *("s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz", "s_cbranch_execz"),
        *("s_cbranch_execnz", "s_call_b64", "s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_endpgm"),
    )
)
NO_EFFECT = frozenset(
    (
        *("s_nop", "s_sleep", "s_setprio", "s_waitcnt", "s_barrier", "s_icache_inv", "s_dcache_inv", "s_dcache_wb"),
        *("buffer_wbl2", "buffer_inv", "v_nop"),
    )
)
MODE = frozenset(("s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32"))
CLOCK = frozenset(("s_memtime", "s_memrealtime"))
TRAPS = frozenset(("s_trap", "s_sethalt"))


def of(mnemonic: str) -> list[str]:
    """Return the names of a mnemonic's definitions."""
    found = []
    if alu.covers(mnemonic):
        found.append("second witness" if mnemonic in errata.WITNESSES else "pseudocode")
    if memory.covers(mnemonic):
        found.append("pseudocode and addresses")
    if matrix.product(mnemonic):
        found.append("layouts and exact products")
    named = {
        "lanes by formulas": LANES,
        "correctly rounded quotients": DIVISION,
        "loads straight to LDS": {mnemonic} if memory.direct(mnemonic) else set(),
        "branches": BRANCHES,
        "no effect": NO_EFFECT,
        "MODE": MODE,
        "a clock that goes on": CLOCK,
        "refused": TRAPS,
    }
    return found + [name for name, members in named.items() if mnemonic in members]


def report(mnemonics: Iterable[str]) -> str:
    """Return a line for each mnemonic with its definitions."""
    return "\n".join(f"{mnemonic:32} {', '.join(of(mnemonic)) or 'NONE'}" for mnemonic in sorted(mnemonics))
