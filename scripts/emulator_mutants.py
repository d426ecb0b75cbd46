#!/usr/bin/env python3
"""Break the AMD kernels that are shipped one place at a time, and see what the emulated device makes of it.

    python scripts/emulator_mutants.py               # machine code: a wait removed or weakened, a barrier removed
    python scripts/emulator_mutants.py --miscompiled # machine code, as a compiler would break a matrix product
    python scripts/emulator_mutants.py --source      # sources: mistakes as a model makes them (each is compiled)
    python scripts/emulator_mutants.py --hip         # machine code of the answers and replies in plain HIP
    python scripts/emulator_mutants.py --only 17_Matmul_square_bf16 --dialect cdna4

Needs hipcc and HipKittens (scripts/install_hipkittens.py). On two cores machine code takes some minutes, sources half
an hour. Kernels in plain HIP are executed as their candidates launch them at sizes that an audit shrinks their problems
to.

Exit code 0: every mutant was seen or has its reason, 1: some was not, 2: there is no compiler or no HipKittens.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import machine_mutants, source_mutants  # noqa: E402
from support.emulated import device_code, kernel_source  # noqa: E402
from support.emulated_cases import PROBLEMS, case, source_file  # noqa: E402
from support.emulated_examples import EXAMPLES, example_case, example_name, example_source  # noqa: E402
from support.kittens import kittens_root  # noqa: E402
from support.machine_mutants import UNEXPLAINED, Execute, Launch, Seen, execute, harmless  # noqa: E402
from support.recorded_launches import Replay, recorded  # noqa: E402

from benchmarks.emulated_times import cases  # noqa: E402
from hkbench.audit.shrink import shrunk  # noqa: E402
from hkbench.emulator.explain import plain  # noqa: E402
from hkbench.emulator.program import Program  # noqa: E402
from hkbench.errors import HkbenchError  # noqa: E402
from hkbench.problems import chosen_problems  # noqa: E402
from hkbench.problems.select import SHIPPED  # noqa: E402
from hkbench.toolchain.hip import find_hip  # noqa: E402
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect  # noqa: E402

HEAD = (
    f"{'kernel':38} {'n':>4} {'plain wrong':>12} {'reported':>9} {'late wrong':>11} {'unreported':>13} {'harmless':>9}"
)


#: Kernels in plain HIP whose faults are seen and do no harm, and why.
EXPLAINED = {
    "attention_causal": "the upper half of a register is cleared that a load of 16 bits fills: late, it clears it too",
    "softmax": "a part of the maximum that is subtracted before exponentials: the results are the same without it",
    "topk": "lower halves of keys of which a maximum is taken: what stands there before they arrive is smaller",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel that machine code is broken of: its name, its program, and how that is executed."""

    name: str
    program: Program
    execute: Execute
    explained: str = ""  #: why faults that are seen and do no harm do none


def compiled(name: str, source: str, dialect: Dialect, launch: Callable[[], Launch]) -> Kernel:
    """Return the only kernel of a HipKittens source, with its launch on fresh inputs."""
    with tempfile.TemporaryDirectory() as folder:
        code = device_code(source, dialect.arch, Path(folder), kittens_root(dialect) / "include")
    return Kernel(name, Program.load(code), partial(execute, launch))


def known_answer(problem: str, dialect: Dialect) -> Kernel:
    """Return a shipped answer, launched as one workgroup a dimension."""

    def launch() -> Launch:
        grid, lds, arguments, arrays, results = case(problem, dialect, 1)
        return Launch(grid, 256, lds, arguments, arrays, [result for result, _ in results])

    return compiled(f"{problem} {dialect}", kernel_source(source_file(problem, dialect)), dialect, launch)


def example(prompt: Path) -> Kernel:
    """Return an example of the prompts."""

    def launch() -> Launch:
        grid, threads, lds, arguments, arrays, result, _ = example_case(prompt)
        return Launch(grid, threads, lds, arguments, arrays, [result])

    name = example_name(prompt)
    return compiled(f"example {name}", example_source(prompt), Dialect(name[-5:]), launch)


def kittens(options: argparse.Namespace, dialects: Sequence[Dialect]) -> Iterator[Kernel]:
    """Yield the known answers in HipKittens, and the prompts' examples if these are asked for."""
    for dialect in dialects:
        yield from (known_answer(problem, dialect) for problem in options.only or PROBLEMS)
    for prompt in EXAMPLES if options.examples else ():
        if Dialect(example_name(prompt)[-5:]) in dialects:
            yield example(prompt)


def plain_hip(only: Sequence[str] | None, dialects: Sequence[Dialect]) -> Iterator[Kernel]:
    """Yield the kernels that candidates in plain HIP launch, on memory as it was before their first launch."""
    problems = chosen_problems(SHIPPED, os.environ).problems
    wanted = [problem for problem in problems if only is None or problem.name in only]
    for dialect in dialects:
        for _, one in cases(wanted, dialect.arch, None):
            for launch in recorded(shrunk(one.problem)[0], one.text, dialect.arch) if one.backend == "hip" else ():
                with Replay(launch) as replay:
                    name = plain(launch.request.kernel).partition("(")[0].removeprefix("void ")
                    program, why = Program.load(launch.code), EXPLAINED.get(name, "")
                    yield Kernel(f"{one.problem.number} {name} {dialect}", program, replay.execute, why)


def machine(kernels: Iterable[Kernel], *, miscompiled: bool) -> int:
    """Print a line a kernel, and what has no explanation; return the exit code."""
    print(HEAD)
    seen: list[Seen] = []
    reasons = Counter[str]()
    for kernel in kernels:
        found = _machine(kernel, miscompiled=miscompiled)
        if found:
            _row(kernel.name, found)
        seen += found
        reasons.update(_reason(one, kernel) for one in found)
    for rule in sorted({one.mutant.rule for one in seen}):
        _row(f"all: {rule}", [one for one in seen if one.mutant.rule == rule])
    _row("all", seen)
    for reason, count in sorted((reason, count) for reason, count in reasons.items() if reason):
        print(f"reported and right also when late: {count} {reason}")
    if miscompiled:
        return int(any(not one.plain_wrong for one in seen))
    return int(any(one.late_wrong and not one.reported for one in seen) or bool(reasons[UNEXPLAINED]))


def _machine(kernel: Kernel, *, miscompiled: bool) -> list[Seen]:
    program = kernel.program
    made = machine_mutants.miscompiled(program) if miscompiled else machine_mutants.waits_and_barriers(program)
    seen = machine_mutants.judge(program, kernel.execute, made) if made else []
    for one in seen:
        unreported = not miscompiled and one.late_wrong and not one.reported
        if unreported or (not miscompiled and harmless(one)) or (miscompiled and not one.plain_wrong):
            said = "; ".join(str(fault) for fault in one.faults[:1])
            print(f"  instruction {one.mutant.at}: {one.original} -> {one.mutant.text}: {_reason(one, kernel)} {said}")
    return seen


def _reason(one: Seen, kernel: Kernel) -> str:
    reason = harmless(one)
    return kernel.explained if reason == UNEXPLAINED and kernel.explained else reason


def _row(name: str, seen: Sequence[Seen]) -> None:
    counts = (
        len(seen), sum(one.plain_wrong for one in seen), sum(one.reported for one in seen),
        sum(one.late_wrong for one in seen), sum(one.late_wrong and not one.reported for one in seen),
        sum(bool(harmless(one)) for one in seen),
    )  # fmt: skip
    widths = (4, 12, 9, 11, 13, 9)
    columns = " ".join(f"{n:{width}}" for n, width in zip(counts, widths, strict=True))
    print(f"{name:38} {columns}", flush=True)


def source(problems: Sequence[str], dialects: Sequence[Dialect]) -> int:
    """Print a line a mutant, and the counts by rule; return the exit code."""
    judged: list[source_mutants.Judged] = []
    unexplained = 0
    with tempfile.TemporaryDirectory() as folder:
        for group in source_mutants.by_kernel(source_mutants.mutants()):
            if group[0].problem not in problems or group[0].dialect not in dialects:
                continue
            for one in source_mutants.judge(group, Path(folder)):
                judged.append(one)
                reason = "" if one.caught else source_mutants.reason(one)
                unexplained += not one.caught and not reason
                print(f"{one.mutant}: {one.by}{f': {reason}' if reason else ''}", flush=True)
    print(f"\n{'rule':45} {'n':>4} {'values':>7} {'both':>5} {'checker':>8} {'compiler':>9} {'not caught':>11}")
    for rule in dict.fromkeys(one.mutant.rule.name for one in judged):
        _source_row(rule, [one for one in judged if one.mutant.rule.name == rule])
    _source_row("all", judged)
    return int(unexplained > 0)


def _source_row(name: str, judged: Sequence[source_mutants.Judged]) -> None:
    by = Counter(one.by for one in judged)
    print(
        f"{name:45} {len(judged):4} {by['values']:7} {by['values and checker']:5} {by['checker']:8}"
        f" {by['compiler']:9} {by['not caught']:11}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="store_true", help="mutants of the sources")
    parser.add_argument("--miscompiled", action="store_true", help="wrong machine code around matrix products")
    parser.add_argument("--examples", action="store_true", help="machine code of the prompts' examples, too")
    parser.add_argument("--hip", action="store_true", help="machine code of the answers and replies in plain HIP")
    parser.add_argument("--only", nargs="+", metavar="PROBLEM", help="these known answers, by their problems' names")
    parser.add_argument("--dialect", choices=list(WITH_CARD), help="this one alone")
    options = parser.parse_args(argv)
    dialects = [dialect for dialect in WITH_CARD if options.dialect in (None, dialect)]
    try:
        find_hip()
        for dialect in () if options.hip else dialects:
            kittens_root(dialect)
    except HkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    if options.source:
        return source(options.only or PROBLEMS, dialects)
    kernels = plain_hip(options.only, dialects) if options.hip else kittens(options, dialects)
    return machine(kernels, miscompiled=options.miscompiled)


if __name__ == "__main__":
    sys.exit(main())
