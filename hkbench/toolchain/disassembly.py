"""Count the instructions of each kernel by class, in LLVM's disassembly of a code object.

The counts are static: how often an instruction stands in the code, not how often it runs. A loop's body counts once, an
unrolled one as often as it was unrolled, both sides of a branch count.

Every instruction is in exactly one class:

| class | instructions |
| --- | --- |
| `mfma_...`, `smfmac_...`, `wmma_...` | matrix instructions, one class each kind: `mfma_f32_16x16x16_bf16` |
| `accvgpr_move` | copies between VGPRs and AGPRs |
| `transcendental` | exp, log, rcp, rsq, sqrt, sin, cos |
| `valu` | every other vector instruction |
| `global_load_b128`, `buffer_store_b32`, ... | global, buffer, flat and scratch accesses by bits a lane |
| `global_load_lds_b32`, `buffer_load_lds_b128` | loads that go straight to LDS |
| `buffer_load_lds_lost_b128` | those whose LDS address, in M0, is that of a null pointer: nothing arrives |
| `global_atomic`, `flat_atomic`, `buffer_atomic`, `lds_atomic` | atomics |
| `lds_read_b128`, `lds_read2_b64`, `lds_read_tr_b64`, `lds_write_b32`, ... | LDS by bits a lane; `2` is two at once |
| `lane_permute` | bpermute, permute and swizzle: on LDS's way, but without its memory |
| `scalar_load`, `salu`, `branch`, `call`, `waitcnt`, `barrier`, `nop` | scalar instructions |
| `lds_other`, `control`, `cache_control`, `other` | what is left: `s_endpgm`, `s_setprio`, `buffer_inv` and the like |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from hkbench.toolchain.code_object import Tools

_LABEL = re.compile(r"(?:[0-9a-f]+ )?<(?P<name>.+)>:")
_MATRIX = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")
LOST = "lost"  #: in the class of a load to LDS that does not arrive
_LDS_LOAD = "_load_lds_"
_M0 = re.compile(r"s_\w+ m0,")
_NULL_M0 = re.compile(r"s_mov_b32 m0, -1\b")
_PADDING = ("s_nop", "s_code_end")  # the second from gfx10 on
_ROOM = 16  #: so many one after the other wait for nothing: one `s_nop` can wait 16 cycles
_WIDTHS = {
    "ubyte": 8,
    "sbyte": 8,
    "byte": 8,
    "ushort": 16,
    "sshort": 16,
    "short": 16,
    "dword": 32,
    "dwordx2": 64,
    "dwordx3": 96,
    "dwordx4": 128,
    # Names from gfx11 on.
    **{f"{sign}{bits}": bits for sign in "ui" for bits in (8, 16)},
    **{f"b{bits}": bits for bits in (8, 16, 32, 64, 96, 128)},
}
_MEMORY = re.compile(
    r"(?P<space>global|buffer|flat|scratch)_(?P<what>load|store)_(?P<lds>lds_)?(?P<width>[us]?byte|[us]?short|dword(x[234])?|(?:d16_)?(?:hi_)?[uib]\d+)"
    r"(_d16)?(_hi)?"
)
_OLDER = {"load": "read", "store": "write"}  # gfx11's names of the same
_LDS = re.compile(
    r"ds_(?P<what>read|write|load|store)(?P<two>2|_2addr)?(?:st64|_stride64)?_(?:addtid_)?"
    r"(?P<form>b|u|i)(?P<bits>\d+)(?P<rest>\w*)"
)
_CLASSES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"v_accvgpr_\w+", "accvgpr_move"),
        (
            r"v_(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos|exp_legacy|log_legacy)_(f16|f32|f64|bf16)(_\w+)?",
            "transcendental",
        ),
        (r"v_\w+", "valu"),
        (r"ds_(bpermute|permute|swizzle)_\w+", "lane_permute"),
        (
            r"ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|wrxchg2?(st64)?|cmpst|cmpswap|condxchg32|pk_add|wrap)_\w+",
            "lds_atomic",
        ),
        (r"ds_\w+", "lds_other"),
        (r"(global|flat|buffer)_(?P<kind>atomic)_\w+", "{space}_atomic"),
        (r"buffer_(wbl2|wbinvl1|inv)\w*|s_dcache_\w+|s_icache_\w+", "cache_control"),
        (r"s_waitcnt\w*|s_wait_\w+", "waitcnt"),
        (r"s_barrier\w*", "barrier"),
        (r"s_c?branch\w*|s_setpc_b64", "branch"),
        (r"s_swappc_b64|s_call_b64", "call"),
        (r"s_nop", "nop"),
        (r"s_(buffer_|scratch_)?load_\w+", "scalar_load"),
        (
            r"s_(endpgm\w*|setprio|sleep|sethalt|trap|sendmsg\w*|code_end|ttracedata|set_gpr_idx_\w+|setreg\w*)",
            "control",
        ),
        (r"s_\w+", "salu"),
    )
)
_ORDER = (
    "mfma",
    "smfmac",
    "wmma",
    "swmmac",
    "valu",
    "transcendental",
    "accvgpr_move",
    "global",
    "buffer",
    "flat",
    "scratch",
    "lds",
    "lane_permute",
    "waitcnt",
    "barrier",
    "branch",
    "call",
    "scalar_load",
    "salu",
)


def instruction_counts(code_object: Path, arch: str, tools: Tools) -> dict[str, dict[str, int]]:
    """Return class -> count for every function of a code object, kernels or not, by its mangled name.

    Raises NotInspected when llvm-objdump is missing or cannot read it.
    """
    return count_instructions(disassembled(code_object, arch, tools))


def disassembled(code_object: Path, arch: str, tools: Tools) -> str:
    """Return what llvm-objdump prints of a code object. Raises NotInspected as `instruction_counts`."""
    flags = ["-d", f"--mcpu={arch}", "--no-show-raw-insn", "--no-leading-addr"]
    return tools.run("llvm-objdump", *flags, str(code_object))


def without_head(printed: str) -> str:
    """Return what an objdump prints from its first section on, without what names the file."""
    return printed.partition("Disassembly of section")[2].partition("\n")[2].strip("\n") + "\n"


def count_instructions(disassembly: str) -> dict[str, dict[str, int]]:
    """Return class -> count for every function that `llvm-objdump -d` prints, classes in a fixed order.

    What fills room (`s_nop`, `s_code_end`) does not count: behind a function up to the next one's alignment, and before
    the code of a kernel whose arguments are preloaded, which begins 256 bytes behind its entry (AMDGPUUsage, "Preloaded
    Kernel Arguments").
    """
    functions: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in disassembly.splitlines():
        label = _LABEL.fullmatch(line.strip())
        if label is not None:
            current = functions.setdefault(label["name"], [])
        elif current is not None and line.startswith(("\t", " ")):
            instruction = line.partition("//")[0].strip()
            if instruction and instruction != "...":
                current.append(instruction)
    return {name: _counted(_without_padding(found)) for name, found in functions.items()}


def _without_padding(instructions: list[str]) -> list[str]:
    end = len(instructions)
    while end and instructions[end - 1].startswith(_PADDING):
        end -= 1
    kept: list[str] = []
    for is_padding, run in groupby(instructions[:end], key=lambda one: one.startswith(_PADDING)):
        found = list(run)
        kept += [] if is_padding and len(found) >= _ROOM else found
    return kept


def _counted(instructions: Iterable[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    nowhere = False  # whether M0 is known to be a null pointer's LDS address
    for instruction in instructions:
        found = instruction_class(instruction)
        counts[found.replace("_lds_", f"_lds_{LOST}_") if nowhere and _LDS_LOAD in found else found] += 1
        if _M0.match(instruction):
            nowhere = _NULL_M0.match(instruction) is not None
        elif found in ("branch", "call"):  # what follows may be reached from elsewhere
            nowhere = False
    return {name: counts[name] for name in sorted(counts, key=_place)}


def _place(name: str) -> tuple[int, str]:
    head = name if name in _ORDER else name.partition("_")[0]
    return (_ORDER.index(head) if head in _ORDER else len(_ORDER), name)


def instruction_class(instruction: str) -> str:
    """Return the class of one instruction with its operands, as llvm-objdump prints it: `v_mul_f32_e32 v0, v1, v2`."""
    mnemonic, _, operands = instruction.partition(" ")
    if mnemonic.startswith(_MATRIX):
        return mnemonic.removeprefix("v_").removesuffix("_e64")
    memory = _MEMORY.fullmatch(mnemonic)
    if memory is not None:
        to_lds = memory["lds"] or (memory["what"] == "load" and re.search(r"\blds\b", operands))
        lds = "_lds" if to_lds else ""
        bits = _WIDTHS[memory["width"].rpartition("_")[2]]  # a lane, of "dwordx4", or of "d16_hi_b16" from gfx11 on
        return f"{memory['space']}_{memory['what']}{lds}_b{bits}"
    shared = _LDS.fullmatch(mnemonic)
    if shared is not None:
        transposed = "_tr" if "_tr" in shared["rest"] else ""
        what = _OLDER.get(shared["what"], shared["what"])
        return f"lds_{what}{'2' if shared['two'] else ''}{transposed}_b{shared['bits']}"
    for pattern, name in _CLASSES:
        if pattern.fullmatch(mnemonic):
            return name.format(space=mnemonic.partition("_")[0])
    return "other"
