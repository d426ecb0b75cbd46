"""Mutants of machine code: one instruction of a program changed, executed with and without what sees such faults."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from support.emulated import Array, run

from hkbench.emulator.build import core
from hkbench.emulator.encode import SIZE, encode
from hkbench.emulator.executor import Options, Outcome
from hkbench.emulator.faults import Fault
from hkbench.emulator.listing import Line
from hkbench.emulator.program import Program

MOST = {"vmcnt": 63, "lgkmcnt": 15}  #: what a counter can hold
LONGER = 8  #: times as many instructions as without the mutation are an endless loop
#: In which late delivery is tried; those that are reported and right in the first ones are tried in all of them.
ORDERS: tuple[int | None, ...] = (None, 1, 2, 3, 4, 5)
SURE = 2
UNEXPLAINED = "unexplained"
_COUNTER = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_READ = re.compile(r"(ds_read\w*) (.*?)( offset:(\d+))?")
_MATRIX = re.compile(r"(v_mfma\w+) (\S+), (\S+), (\S+), (\S+)")


@dataclass(frozen=True)
class Launch:
    """A kernel's launch on fresh inputs: grid, threads, LDS, arguments, arrays, and which of those are results."""

    grid: tuple[int, ...]
    threads: int
    lds: int
    arguments: bytes
    arrays: list[Array]
    results: list[Array]
    kernel: str | None = None


@dataclass(frozen=True)
class Mutant:
    """An instruction and what stands in its place."""

    rule: str
    at: int
    text: str


@dataclass(frozen=True)
class Seen:
    """What became of a mutant. Wrong: other bytes than those of the kernel as it is, or accesses out of bounds."""

    mutant: Mutant
    original: str
    plain_wrong: bool
    late_wrong: bool
    faults: tuple[Fault, ...]
    refused: bool

    @property
    def reported(self) -> bool:
        return bool(self.faults) or self.refused


def waits_and_barriers(program: Program) -> list[Mutant]:
    """Return the mutants without a wait, with a wait for one less, and without a barrier."""
    found = []
    for at, line in enumerate(program.code.lines):
        name, _, rest = line.text.partition(" ")
        if name == "s_barrier":
            found.append(Mutant("barrier removed", at, "s_nop 0"))
        if name != "s_waitcnt":
            continue
        found.append(Mutant("wait removed", at, "s_nop 0"))
        counts = {match[1]: int(match[2]) for match in _COUNTER.finditer(rest)}
        for counter, count in counts.items():
            if count < MOST[counter]:
                weaker = " ".join(f"{c}({n + (c == counter)})" for c, n in counts.items())
                found.append(Mutant("wait weakened", at, f"s_waitcnt {weaker}"))
    return found


def miscompiled(program: Program) -> list[Mutant]:
    """Return mutants as a compiler would make them that selects or allocates wrongly around matrix products."""
    found = []
    for at, line in enumerate(program.code.lines):
        product = _MATRIX.fullmatch(line.text)
        if product is not None:
            name, d, a, b, c = product.groups()
            found.append(Mutant("product dropped", at, "s_nop 0"))
            found.append(Mutant("operands swapped", at, f"{name} {d}, {b}, {a}, {c}"))
            found.append(Mutant("one operand twice", at, f"{name} {d}, {a}, {a}, {c}"))
            found.append(Mutant("sum begun anew", at, f"{name} {d}, {a}, {b}, 0"))
        read = _READ.fullmatch(line.text)
        if read is not None and "2" not in read[1].split("_b")[0]:
            found.append(Mutant("offset of a read", at, f"{read[1]} {read[2]} offset:{int(read[4] or 0) + 16}"))
        if line.text.startswith("ds_read_b64_tr_b16"):
            plain = line.text.replace("ds_read_b64_tr_b16", "ds_read_b64")
            found.append(Mutant("read not transposed", at, plain))
    return [mutant for mutant in found if mutant.text != program.code.lines[mutant.at].text]


def _place(program: Program, begin: int, record: bytes) -> None:
    ctypes.memmove(ctypes.addressof(program.records) + begin, record, len(record))


@contextmanager
def put_in(program: Program, mutant: Mutant) -> Iterator[None]:
    """Let the program have the mutant's instruction, for a while."""
    old = program.code.lines[mutant.at]
    code = encode([Line(old.address, mutant.text, old.words, old.place, old.function)], program.arch)
    one = ctypes.create_string_buffer(bytes(code.records), len(code.records))
    assert core().hkbench_emulator_link(one, 1) == 1
    begin = mutant.at * SIZE
    kept = program.records.raw[begin : begin + SIZE]
    _place(program, begin, one.raw[:SIZE])
    try:
        yield
    finally:
        _place(program, begin, kept)


#: Executes a program, and returns the outcome and the results' bytes.
Execute = Callable[[Program, Options], tuple[Outcome, bytes]]


def execute(launch: Callable[[], Launch], program: Program, options: Options) -> tuple[Outcome, bytes]:
    """Return the outcome and the results' bytes of a launch on fresh inputs."""
    made = launch()
    outcome = run(
        program, made.grid, made.threads, made.arguments, made.arrays,
        lds=made.lds, kernel=made.kernel, options=options,
    )  # fmt: skip
    return outcome, b"".join(np.ascontiguousarray(result).tobytes() for result in made.results)


def judge(program: Program, execute: Execute, mutants: Sequence[Mutant]) -> list[Seen]:
    """Execute the program as it is, and each mutant plainly, checked, and with late delivery."""
    outcome, right = execute(program, Options(check=False))
    assert execute(program, Options(check=False, late=True))[1] == right
    return [_judge_one(_Case(program, execute, right, LONGER * outcome.instructions), mutant) for mutant in mutants]


@dataclass(frozen=True)
class _Case:
    program: Program
    execute: Execute
    right: bytes
    budget: int

    def run(self, *, check: bool = False, late: bool = False, seed: int | None = None) -> tuple[Outcome, bool]:
        """Return the outcome, and whether it is wrong."""
        options = Options(check=check, late=late, seed=seed, max_instructions=self.budget)
        outcome, values = self.execute(self.program, options)
        beyond = any(fault.kind == "out_of_bounds" for fault in outcome.faults)
        return outcome, outcome.refusal is not None or beyond or values != self.right


def _judge_one(case: _Case, mutant: Mutant) -> Seen:
    original = case.program.code.lines[mutant.at].text
    with put_in(case.program, mutant):
        _, plain_wrong = case.run()
        checked, _ = case.run(check=True)
        order = next((seed for seed in ORDERS[:SURE] if case.run(late=True, seed=seed)[1]), -1)
        if checked.faults and order == -1:
            order = next((seed for seed in ORDERS[SURE:] if case.run(late=True, seed=seed)[1]), -1)
    return Seen(mutant, original, plain_wrong, order != -1, checked.faults, checked.refusal is not None)


def harmless(seen: Seen) -> str:
    """Return why what was reported gives right values also when it is late; "" where nothing of the kind was seen."""
    if not seen.faults or seen.late_wrong:
        return ""
    if all(fault.kind == "wait" and fault.detail.startswith("s") for fault in seen.faults):
        return "scalars that decide a branch or a bound: what stands there before they arrive decides it the same way"
    return UNEXPLAINED
