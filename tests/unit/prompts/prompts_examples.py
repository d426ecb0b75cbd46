"""The code that the shipped prompts show, taken from what is really sent, and the build it is checked with."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prompts_samples import DEVICES, PROMPTS, context

from hkbench.analysis.facts import problem_facts
from hkbench.compile_only.build_only import compile_only
from hkbench.problems import SHIPPED, find_problems
from hkbench.prompts import load_prompts, render
from hkbench.records import BackendName, EvaluationSettings, KernelResources, Problem, ProblemFacts, SizeSet, Verdict
from hkbench.registry import backend_names
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.hipkittens import Dialect, find_checkout
from hkbench.toolchain.process import ToolResult, run_tool
from hkbench.toolchain.resources import demangled, parse_resources

SETTINGS = EvaluationSettings(build_timeout=400)
_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """One fenced block of a prompt that is not the problem's own source."""

    name: str  #: the file in prompts/ that holds it, without its suffix
    backend: BackendName
    dialect: Dialect | None
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.backend}-{self.name.removeprefix('_')}"


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return ((found["language"], found["text"]) for found in _BLOCK.finditer(text))


@cache
def problems() -> tuple[tuple[Problem, ProblemFacts], ...]:
    """The shipped problems with what their own code says of their tensors at full size."""
    return tuple((one, problem_facts(one, SizeSet.FULL)) for one in find_problems(SHIPPED, 1))


@cache
def shipped_examples() -> tuple[Example, ...]:
    """Every block of every template, and of what each problem is sent, for every backend and device, each once."""
    book = load_prompts(PROMPTS)
    found: dict[tuple[BackendName, Dialect | None, str], Example] = {}
    for backend, device in ((one, device) for one in backend_names() for device in DEVICES[one]):
        for number, (problem, facts) in enumerate(problems()):
            for template in [book.choose(problem.name, backend)] if number else book.kernel_templates:
                known = context(problem, backend, device).model_copy(update={"facts": facts})
                dialect = Dialect(known.dialect) if known.dialect else None
                for language, text in blocks(render(book, template, known).text):
                    if text.rstrip() == problem.source.rstrip() or (backend, dialect, text) in found:
                        continue
                    holder = next((name for name, body in book.templates.items() if text in body), template)
                    example = Example(Path(holder).stem, backend, dialect, language, text)
                    found[backend, dialect, text] = example
    return tuple(found.values())


def built(source: str, backend: BackendName, arch: str, folder: Path, problem: Problem) -> Verdict:
    """What `eval.py --build-only` says of a candidate file with this text; `folder` is new."""
    folder.mkdir(parents=True)
    code = folder / "candidate.py"
    code.write_text(source)
    return asyncio.run(compile_only(problem, code, folder / "scratch", backend, arch, SETTINGS))


def kernels_of(text: str, dialect: Dialect, folder: Path) -> tuple[tuple[KernelResources, ...], ToolResult]:
    """The kernels of a source without a binding, compiled as device source alone, and what the compiler said.

    HipKittens is the tree that a run would find; see `support.kittens.checkout`.
    """
    tree, hip = find_checkout(), find_hip()
    tree.require(dialect, hip, folder / "headers")
    source = folder / "kernel.hip"
    source.write_text(text)
    command = hip.compile_command(source, folder / "kernel.o", dialect.arch, tree.compile_flags(dialect, hip))
    done = run_tool(command, folder, SETTINGS.build_timeout)
    return demangled(parse_resources(done.output, dialect.arch)), done
