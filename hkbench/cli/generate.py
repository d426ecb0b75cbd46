"""generate.py: one model call, one kernel file."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from hkbench.cli.arguments import add_device, add_model, add_prompts, chosen_backend, chosen_sizes, device_kind
from hkbench.cli.budgets import add_outage
from hkbench.cli.configuration import configure
from hkbench.cli.models import check_model, make_client
from hkbench.cli.preflight import check_service
from hkbench.cli.problem_file import problem_file
from hkbench.engine import factory
from hkbench.errors import InputMissing
from hkbench.lab.found import found_in
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import Always, Retry
from hkbench.problems import load_problem
from hkbench.prompts import PromptBook, load_prompts
from hkbench.records import EvaluationSettings, Extraction, Problem, Reply, SampleKey
from hkbench.store.files import write_atomic

DESCRIPTION = """Ask a model once for a kernel and write the code of its reply to a file.

Exit code: 0 a kernel was found in the reply, 2 the reply holds none; 64 and above: there was no reply."""


class Telling(Always):
    """The permit of the one call: each failed try is reported on standard error."""

    def retrying(self, retry: Retry) -> None:
        print(f"hkbench: {retry.cause}; trying again in {retry.wait:.0f} s", file=sys.stderr)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--problem", type=Path, required=True, metavar="P", help="the problem's file")
    parser.add_argument("--output", type=Path, required=True, metavar="CODE", help="where the kernel file goes")
    parser.add_argument(
        "--prompt",
        type=Path,
        metavar="FILE",
        help="a prompt of your own in place of config.json's choice: a plain text is the system message, before the "
        "problem, the rules and the answer format; a jinja2 template (name.jinja, or {# template #} as its first line) "
        "is the whole prompt",
    )
    parser.add_argument("--response-file", type=Path, metavar="F", help="keep the whole reply here")
    add_prompts(parser)
    add_device(parser)
    add_model(parser)
    add_outage(parser, "1m")


def run(options: argparse.Namespace) -> int:
    """Call the model, keeps the reply, writes the code; say which rule found it."""
    configure(options)
    check_model(options)
    for path in (options.output, options.response_file):
        if path is not None and not path.absolute().parent.is_dir():
            raise InputMissing(f"{path.parent}: there is no such folder; make it first")
    with problem_file(options.problem) as options.problem:
        return _generated(options)


def _generated(options: argparse.Namespace) -> int:
    problem = load_problem(options.problem)
    book = load_prompts(options.prompts)
    if options.prompt is not None:
        book = book.with_file(options.prompt)
    check_service(options)
    reply, extraction = asyncio.run(_reply(options, problem, book))
    if options.response_file is not None:
        write_atomic(options.response_file, reply.text)
    if extraction.source is None:
        print(f"no kernel in the reply of {reply.model}: {extraction.note}")
        return 2
    write_atomic(options.output, extraction.source)
    print(f"{options.output}: {len(extraction.source.splitlines())} lines from {reply.model} (rule: {extraction.rule})")
    return 0


async def _reply(options: argparse.Namespace, problem: Problem, book: PromptBook) -> tuple[Reply, Extraction]:
    """Return the reply and what is found in it. The problem's tensors are known from the prompt."""
    settings = EvaluationSettings()
    sizes = chosen_sizes(options)
    async with factory.local_evaluator(
        device_kind(options), settings, sizes, indices=options.device_index
    ) as evaluator:
        backend = chosen_backend(options, evaluator.device.kind)
        template = None if options.prompt is None else str(options.prompt)
        prompter = Prompter(book, backend, evaluator, settings, template)
        prompt = await prompter.render(problem, None)
    client = make_client(options, backend)
    try:
        key = SampleKey(problem=problem.name, attempt=1, sample=1)
        reply = await client.complete(key, prompt.text, permit=Telling(), system=prompt.system)
        return reply, await found_in(reply, None, problem, prompter)
    finally:
        await client.close()
