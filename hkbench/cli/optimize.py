"""hkbench optimize: kernels of specs are made faster by a search."""

from __future__ import annotations

import argparse
from pathlib import Path

from hkbench.cli import batch
from hkbench.cli.arguments import add_build_only, add_device, add_model, add_prompts, not_negative, positive
from hkbench.cli.budgets import add_budgets
from hkbench.cli.experience_use import add_experience
from hkbench.cli.fields import add_field, description, with_default
from hkbench.cli.parser import Parser
from hkbench.cli.settings import add_evaluation
from hkbench.errors import UsageError
from hkbench.specs import KernelSpec, load_specs, problem
from hkbench.store.files import write_atomic
from hkbench.strategies.graph import GraphOptions

DESCRIPTION = """Make kernels faster: a search over edits of each, by rules and by a model (--no-llm: by rules alone).

Kernels are described by specs (docs/optimize.md); each becomes a problem, which is judged as any other is. The same
command again resumes what is unfinished, and repeats no evaluation and no paid call.

Exit code: as of run_batch.py."""

BUDGET = 40
SEARCH = ("seed", "in_flight", "whole_budget", "min_pred_gain", "learn_from")  #: options of the strategy that are given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", type=Path, required=True, metavar="PATH", help="a kernel spec, or a folder of them")
    parser.add_argument("--outdir", type=Path, default=Path("out"), metavar="DIR", help="where all goes (default: out)")
    parser.add_argument(
        "--budget-builds",
        type=positive,
        default=BUDGET,
        metavar="N",
        help=f"kernels that are judged for each spec, the first one among them (default: {BUDGET})",
    )
    parser.add_argument("--no-llm", action="store_true", help="edit by rules alone, without a model")
    for name in SEARCH:
        field = GraphOptions.model_fields[name]
        add_field(parser, name, field, with_default(description(GraphOptions, name), field.default))
    parser.add_argument(
        "--ncu-every",
        dest="profile_every",
        type=not_negative,
        metavar="N",
        help="profile every Nth kernel, by the device's own profiler; 0: none (default: 1)",
    )
    batch.add_work(parser)
    add_prompts(parser)
    add_device(parser)
    add_build_only(parser, ": for machines without an AMD GPU; registers and spills are what is made fewer")
    add_evaluation(parser)
    add_model(parser)
    add_experience(parser)
    add_budgets(parser)


def run(options: argparse.Namespace) -> int:
    """Write the problems of the specs, and run a batch over them."""
    specs = load_specs(options.input)
    language = _language(options, specs)
    folder = options.outdir / "problems"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number}_{spec.name}" for number, spec in enumerate(specs, start=1)]
    for name, spec in zip(names, specs, strict=True):
        write_atomic(folder / f"{name}.py", problem(spec))
    parser = Parser()
    batch.add_arguments(parser)
    told = parser.parse_args([])
    same = {name: value for name, value in vars(options).items() if hasattr(told, name)}
    vars(told).update(
        same,
        problems=folder,
        match=f"^({'|'.join(names)})$",
        results=options.outdir / "run",
        strategy="graph",
        moves="rules" if options.no_llm else "both",
        samples=1,  # a spec has the kernel that the search starts from
        attempts=options.budget_builds,
        backend=language,
    )
    return batch.run(told)


def _language(options: argparse.Namespace, specs: list[KernelSpec]) -> str:
    """Return the language of all specs: a run has one. Raises UsageError where they have several."""
    found = sorted({spec.language for spec in specs})
    if options.backend is not None and options.backend in found:
        specs[:] = [spec for spec in specs if spec.language == options.backend]
        return str(options.backend)
    if len(found) > 1:
        raise UsageError(f"{options.input} has specs in {', '.join(found)}: say with --backend which to work on")
    return found[0]
