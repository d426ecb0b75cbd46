"""Mutants of the shipped HipKittens kernels' sources: mistakes of the kind that a model makes, as textual rules.

Each place in each known answer where a rule's text stands is one mutant.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from support.emulated import device_code, kernel_source, run
from support.emulated_cases import PROBLEMS, case, is_right, source_file
from support.kittens import kittens_or_skip

from hkbench.emulator.executor import Options
from hkbench.emulator.program import Program
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect

BUDGET = 50_000_000  #: instructions of a mutant
_INCLUDE = '#include "kittens.cuh"\n'
_WAIT = 'asm volatile("s_waitcnt {}" ::: "memory");'
_ORDER = "  __builtin_amdgcn_sched_barrier(0);\n"


@dataclass(frozen=True)
class Rule:
    """A mistake: `old` becomes `new` at one place."""

    name: str
    old: str
    new: str = ""


@dataclass(frozen=True)
class Mutant:
    """A known answer with one mistake, the `place`-th where the rule's text stands."""

    problem: str
    dialect: Dialect
    rule: Rule
    place: int

    def __str__(self) -> str:
        return f"{self.problem} {self.dialect} line {self.line}: {self.rule.name}"

    @property
    def line(self) -> int:
        """The line of the source in which the mistake begins."""
        text = kernel_source(source_file(self.problem, self.dialect))
        return text[: _places(text, self.rule.old)[self.place]].count("\n") + 1

    @property
    def source(self) -> str:
        text = kernel_source(source_file(self.problem, self.dialect))
        at = _places(text, self.rule.old)[self.place]
        return text[:at] + self.rule.new + text[at + len(self.rule.old) :]


RULES = (
    Rule("barrier removed", "__builtin_amdgcn_s_barrier();"),
    Rule("__syncthreads removed", "__syncthreads();"),
    Rule("wait for LDS removed", _WAIT.format("lgkmcnt(0)")),
    Rule("wait for LDS weakened", _WAIT.format("lgkmcnt(0)"), _WAIT.format("lgkmcnt(4)")),
    Rule("wait for memory removed", _WAIT.format("vmcnt(0)")),
    Rule("wait for memory weakened", _WAIT.format("vmcnt(0)"), _WAIT.format("vmcnt(2)")),
    Rule("sched_barrier before the product removed", _ORDER + "    mma_AB", "    mma_AB"),
    Rule("sched_barrier before the product removed", "  " + _ORDER + "      mma_AB", "      mma_AB"),
    Rule("sched_barrier before the product removed", "  " + _ORDER + "    mma_At", "    mma_At"),
    Rule("one step of K short", "steps = g.a.cols() / BK", "steps = g.a.cols() / BK - 1"),
    Rule("one block of keys short", "blocks = g.k.rows() / KVB", "blocks = g.k.rows() / KVB - 1"),
    Rule("one piece short", "for (int i = 1; i < PIECES; ++i)", "for (int i = 1; i < PIECES - 1; ++i)"),
    Rule("sums not zeroed", "zero(c);"),
    Rule("sums not zeroed", "  zero(o);"),
    Rule("sums not zeroed", "  zero(o[1]);"),
    Rule("sums not zeroed", "  zero(total);"),
    Rule("scores not zeroed", "  zero(s);"),
    Rule("largest score not begun", "  neg_infty(before);"),
    Rule("tile of the wrong step", "g.a, {0, 0, row, k + 1}", "g.a, {0, 0, row, k}"),
    Rule("tile of the wrong step", "g.b, {0, 0, k + 1, col}", "g.b, {0, 0, k, col}"),
    Rule("tile of the wrong step", "g.b, {0, 0, col, k + 1}", "g.b, {0, 0, col, k}"),
    Rule("tile of the wrong step", "g.a, {0, 0, row, k}", "g.a, {0, 0, row, 0}"),
    Rule("tile into the wrong buffer", "G::load(As[now ^ 1]", "G::load(As[now]"),
    Rule("buffers not swapped", "now ^= 1", "now ^= 0"),
    Rule("wrong quadrant stored", "row * 2 + wm", "row * 2 + wn"),
    Rule("wrong quadrant stored", "row * BM + wm * 64", "row * BM + wn * 64"),
    Rule("wrong quadrant read", "{wm, kk}", "{wn, kk}"),
    Rule("wrong quadrant read", "(As[now], {wm, 0})", "(As[now], {wn, 0})"),
    Rule("wave takes another's column", "wn = warpid() % 2", "wn = warpid() / 2"),
    Rule("keys of another head", "g.k, {b, h, t", "g.k, {b, 0, t"),
    Rule("values of another head", "g.v, {b, h, t", "g.v, {b, 0, t"),
    Rule("bound one too far", "row < rows", "row <= rows"),
    Rule("bound one too far", "col < cols", "col <= cols"),
    Rule("bound one too far", "at >= g.pieces", "at > g.pieces"),
    Rule("bound one too far", "row >= g.scores.rows()", "row > g.scores.rows()"),
    Rule("bound left out", "if (at >= g.pieces) return;"),
    Rule("correction left out", "mul(total, total, correction);"),
    Rule("correction left out", "mul_col(o, o, correction);"),
    Rule("correction left out", "mul_col(o[half], o[half], correction);"),
    Rule("correction not exponentiated", "exp2(correction, correction);"),
    Rule("largest not kept", "copy(before, largest);"),
    Rule("largest not subtracted", "sub_col(s, s, largest);"),
    Rule("largest not subtracted", "sub(x[i], x[i], largest);"),
    Rule("not divided by the sum", "div_col(o, o, total);"),
    Rule("not divided by the sum", "div_col(o[half], o[half], total);"),
    Rule("not divided by the sum", "mul(x[i], x[i], 1.0f / total);"),
    Rule("rounding left out", "unary_map<to_nearest_bf16>(c, c);"),
    Rule("rounding left out", "unary_map<to_nearest_bf16>(s, s);"),
    Rule("rounding left out", "unary_op<to_nearest_bf16>(x[i], x[i]);"),
    Rule("mask left out", "    add(x[i], x[i], other);\n  }\n  copy", "  }\n  copy"),
    Rule("residual left out", "    add(x[i], x[i], other);\n    unary", "    unary"),
    Rule("factor left out", "mul(x[i], x[i], g.scale);"),
    Rule("factor left out", "mul(s, s, g.scale_log2e);"),
    Rule("factor left out", "mul(y, y, g.alpha);"),
    Rule("factor left out", "mul(x[i], x[i], scale);"),
    Rule("factor left out", "mul(x[i], x[i], weight);"),
    Rule("limit left out", "min(x, x, g.limit);"),
    Rule("limit left out", "max(x, x, -g.limit);"),
    Rule("bias left out", "add_col(c, c, bias);"),
    Rule("bias of the wrong column", "col * BN + wn * 64 + j * 16", "col * BN + j * 16"),
    Rule("wrong stride", "row * cols + col]", "row * rows + col]"),
    Rule("wrong stride", "first = warpid() * PIECES", "first = warpid()"),
    Rule("wrong stride", "blockIdx.x * 4 + warpid()", "blockIdx.x * 2 + warpid()"),
    Rule("wrong stride", "blockIdx.x * WAVES + warpid()", "blockIdx.x + warpid()"),
    Rule("wrong row of the mask", "row % g.mask.rows()", "row / g.mask.rows()"),
    Rule("wave writes another's part", "parts[warpid()] = part", "parts[0] = part"),
    Rule("wave left out of the sum", "total += parts[i]", "total += parts[i & 1]"),
    Rule("part of the sum never written", "if (laneid() == 0) parts", "if (laneid() == 0 && warpid()) parts"),
)


@dataclass(frozen=True)
class Judged:
    """What became of a source mutant."""

    mutant: Mutant
    refused_by_compiler: bool
    same_code: bool
    wrong: bool  #: values, executed plainly
    late_wrong: bool
    faults: tuple[str, ...]  #: kinds

    @property
    def caught(self) -> bool:
        return self.refused_by_compiler or self.wrong or bool(self.faults)

    @property
    def by(self) -> str:
        """By what it was caught."""
        if self.refused_by_compiler:
            return "compiler"
        seen = [name for name, yes in (("values", self.wrong), ("checker", bool(self.faults))) if yes]
        return " and ".join(seen) or "not caught"


@dataclass(frozen=True)
class Reason:
    """Why a mutant is not caught: for those of a rule, in some known answers and at some places of them."""

    rule: str
    why: str
    dialect: str = ""
    problems: tuple[str, ...] = PROBLEMS
    places: tuple[int, ...] = ()  #: none: all

    def holds(self, mutant: Mutant) -> bool:
        """Return whether it is said of this mutant."""
        return (
            mutant.rule.name == self.rule
            and mutant.dialect in (self.dialect or mutant.dialect)
            and mutant.problem in self.problems
            and (not self.places or mutant.place in self.places)
        )


_ITSELF = "tiles in column layout are read by plain loads here, for which the compiler waits itself"
NOT_CAUGHT = (
    Reason("wait for LDS removed", _ITSELF, "cdna3", ("17_Matmul_square_bf16",)),
    Reason("wait for LDS weakened", _ITSELF, "cdna3", ("17_Matmul_square_bf16",)),
    Reason("sched_barrier before the product removed", _ITSELF, "cdna3", ("17_Matmul_square_bf16",)),
    Reason(
        "barrier removed",
        "with two buffers the barrier at the loop's beginning orders everything",
        "cdna4",
        ("17_Matmul_square_bf16", "19_Matmul_NT_ragged_bf16", "38_Matmul_bias_GELU_bf16"),
        places=(1,),
    ),
    Reason("rounding left out", "truncated numbers are within the tolerance"),
    Reason(
        "one piece short",
        "any number near the largest may be subtracted",
        problems=("5_Scaled_masked_softmax_fp32",),
        places=(0,),
    ),
    Reason(
        "largest score not begun",
        "a small number is left in the register, and any number near the largest may be subtracted",
        "cdna4",
        ("23_Attention_full_bf16",),
    ),
)


def reason(judged: Judged) -> str:
    """Return why a mutant is not caught; "" where no reason is known."""
    if judged.same_code:
        return "the compiler makes the same code of it"
    return next((one.why for one in NOT_CAUGHT if one.holds(judged.mutant)), "")


def _places(text: str, old: str) -> list[int]:
    found, at = [], text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def mutants() -> list[Mutant]:
    """Return all: of each rule, each known answer and each place."""
    found = []
    for dialect in WITH_CARD:
        for problem in PROBLEMS:
            text = kernel_source(source_file(problem, dialect))
            for rule in RULES:
                found += [Mutant(problem, dialect, rule, n) for n in range(len(_places(text, rule.old)))]
    return found


def judge(mutants_: Sequence[Mutant], folder: Path) -> list[Judged]:
    """Compile mutants of one known answer, and execute each: checked, and with late delivery in a drawn order.

    They are compiled in one go, each in a namespace of its own, as reading the headers takes most of the time.
    """
    problem, dialect = mutants_[0].problem, mutants_[0].dialect
    sources = [kernel_source(source_file(problem, dialect)), *(mutant.source for mutant in mutants_)]
    code = _code(sources, dialect, folder)
    if code is None and len(mutants_) == 1:
        return [Judged(mutants_[0], True, False, False, False, ())]
    if code is None:  # one of them does not compile
        return [one for mutant in mutants_ for one in judge([mutant], folder)]
    program = Program.load(code)
    spaces = [f"mutant{n}" for n in range(len(sources))]
    names = [next(k for k in program.kernels if k.startswith(f"_ZN{len(space)}{space}")) for space in spaces]
    texts = [_text(program, name) for name in names]
    found = []
    for mutant, name, text in zip(mutants_, names[1:], texts[1:], strict=True):
        plain, kinds = _executed(program, name, mutant, Options(max_instructions=BUDGET))
        late, more = _executed(program, name, mutant, Options(late=True, seed=3, max_instructions=BUDGET))
        found.append(Judged(mutant, False, text == texts[0], not plain, not late, tuple(sorted(kinds | more))))
    return found


def _text(program: Program, kernel: str) -> list[str]:
    text = [line.text for line in program.code.lines if line.function == kernel]
    while text and text[-1] == "s_nop 0":  # behind the last kernel
        text.pop()
    return text


def _code(sources: Sequence[str], dialect: Dialect, folder: Path) -> bytes | None:
    include = kittens_or_skip(dialect, "no source mutant was compiled") / "include"
    text = _INCLUDE
    for n, source in enumerate(sources):
        text += f"namespace mutant{n} {{\n{source.replace(_INCLUDE, '')}\n}}\n"
    try:
        return device_code(text, dialect.arch, folder, include)
    except subprocess.CalledProcessError:
        return None


def _executed(program: Program, kernel: str, mutant: Mutant, options: Options) -> tuple[bool, set[str]]:
    """Return whether the values are right, and the kinds of faults."""
    grid, lds, arguments, arrays, results = case(mutant.problem, mutant.dialect)
    outcome = run(program, grid, 256, arguments, arrays, lds=lds, kernel=kernel, options=options)
    kinds = {fault.kind for fault in outcome.faults}
    if outcome.refusal is not None:
        return False, kinds
    with np.errstate(all="ignore"):
        return all(is_right(result, expected) for result, expected in results), kinds


def by_kernel(found: Sequence[Mutant]) -> list[list[Mutant]]:
    """Return the mutants of each known answer together."""
    groups: dict[tuple[str, Dialect], list[Mutant]] = {}
    for mutant in found:
        groups.setdefault((mutant.problem, mutant.dialect), []).append(mutant)
    return list(groups.values())


def sample(kernels: int, each: int, seed: int) -> list[list[Mutant]]:
    """Return some mutants of some known answers, drawn by a seed."""
    random = np.random.default_rng(seed)
    groups = by_kernel(mutants())
    chosen = [groups[n] for n in random.choice(len(groups), kernels, replace=False)]
    return [[group[n] for n in random.choice(len(group), each, replace=False)] for group in chosen]
