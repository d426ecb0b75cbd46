"""eval.py: evaluate one candidate."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from hkbench.binding import bind_file, is_bare, with_note
from hkbench.cli.arguments import (
    add_build_only,
    add_device,
    check_build_only,
    chosen_backend,
    chosen_sizes,
    device_kind,
)
from hkbench.cli.configuration import configure
from hkbench.cli.preflight import check_machine
from hkbench.cli.problem_file import problem_file
from hkbench.cli.settings import add_evaluation, evaluation_settings
from hkbench.cli.steps import Steps
from hkbench.cli.verdicts import describe
from hkbench.compile_only.build_only import compile_only
from hkbench.compile_only.evaluator import BUILD_ONLY_BACKEND, DEFAULT_ARCH
from hkbench.engine import factory
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.engine.private_folder import temporary_folder
from hkbench.errors import InputMissing
from hkbench.problems import load_problem
from hkbench.records import BackendName, Problem, SizeSet, Status, Verdict
from hkbench.store.files import write_atomic

DESCRIPTION = """Evaluate one candidate: build it, compare it with the reference, time both.

Exit code: 0 correct with a speed-up of at least 1.0 (with --build-only compiled, on an emulated GPU correct), 1 slower,
2 not correct; 64 and above: no verdict was reached, and the message says why. Progress goes to standard error."""

EXIT = {
    Status.FAST: 0, Status.COMPILED: 0, Status.EMULATED: 0, Status.SLOW: 1, Status.INCORRECT: 2, Status.REFUSED: 2,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "the candidate: a file with ModelNew, or a bare kernel (docs/prompts.md)"
    parser.add_argument("--code", type=Path, required=True, metavar="C", help=what)
    parser.add_argument(
        "--problem", type=Path, required=True, metavar="P", help="the problem's file, or JSON that describes one"
    )
    parser.add_argument("--output", type=Path, metavar="R.json", help="write the whole verdict as JSON")
    add_build_only(parser, "")
    add_device(parser)
    add_evaluation(parser)


def run(options: argparse.Namespace) -> int:
    """Print a short verdict, writes the whole one, returns its exit code."""
    if not options.code.is_file():
        raise InputMissing(f"{options.code}: there is no such file; name the candidate with --code")
    check_build_only(options)
    configure(options)
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise InputMissing(f"{options.output.parent}: there is no such folder for --output; make it first")
    check_machine(options)
    with problem_file(options.problem) as options.problem, Steps(sys.stderr) as steps:
        verdict = asyncio.run(_verdict(options, steps))
    if options.output is not None:
        write_atomic(options.output, verdict.model_dump_json(indent=2) + "\n")
    print(describe(verdict))
    return EXIT[verdict.status]


async def _verdict(options: argparse.Namespace, steps: Steps) -> Verdict:
    problem = load_problem(options.problem)
    with temporary_folder() as scratch:
        if options.build_only:
            settings = evaluation_settings(options)
            arch = options.arch or DEFAULT_ARCH
            steps.say(f"compile for {arch}")
            return await compile_only(
                problem, options.code, scratch, options.backend or BUILD_ONLY_BACKEND, arch, settings,
                chosen_sizes(options) or SizeSet.FULL,
            )  # fmt: skip
        sizes = chosen_sizes(options)
        steps.say("start the device")
        async with factory.local_evaluator(
            device_kind(options), evaluation_settings(options), sizes, indices=options.device_index
        ) as evaluator:
            backend = chosen_backend(options, evaluator.device.kind)
            code, note = await _candidate(options.code, problem, backend, evaluator, scratch)
            if note is not None:
                steps.say(note)
            evaluated = await evaluator.evaluate(
                problem, code, scratch / "build", backend, steps.on_stage, on_step=steps.on_step
            )
    assert evaluated.verdict is not None
    return evaluated.verdict if code is options.code else with_note(evaluated.verdict, note)


async def _candidate(
    code: Path, problem: Problem, backend: BackendName, evaluator: LocalEvaluator, scratch: Path
) -> tuple[Path, str | None]:
    """Return the file to be judged, and what became of a kernel without `ModelNew`: where it is bound, another file."""
    if not is_bare(code, backend):
        return code, None
    found = bind_file(code, problem, await evaluator.problem_facts(problem), backend)
    if found.source is None:
        return code, found.note
    bound = scratch / "bound.py"
    bound.write_text(found.source, encoding="utf-8")
    return bound, found.note
