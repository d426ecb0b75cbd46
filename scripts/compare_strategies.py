#!/usr/bin/env python3
"""Strategies side by side at an equal number of model calls a problem (--calls N).

Each strategy is a run_batch.py of its own, into RESULTS/STRATEGY, one after the other. It gets as many attempts as N
calls are enough for in any case, also where each answer of a model that reads kernels has to be asked for twice, so
that a run that goes well leaves calls over (--attempts S=K gives it K, --samples S=K K samples an attempt):

    reflect   samples x attempts = N, --exhaust: all of them are made
    judge     one sample a round, and the judge before each but the first
    staged    one sample an attempt; a rule may end a problem earlier
    graph     its first samples, then one edit by the model an attempt (--moves model --whole-budget); none where no
              first sample is right
    agents    one sample an attempt, a reasoner before each but the first, and two changes by the correctness reasoner

Then generate_report.py compares the runs with the first of --strategies, and a table says how many calls each really
made. What follows `--` goes to each run_batch.py (--model, --device, --track, ...).

Recorded replies: --replay PATH for all strategies, --replay STRATEGY=PATH for one; of a folder that has a file
STRATEGY.toml that file. A strategy for which replies are lacking stops a problem where they end: what it is sure to ask
for and is not there is listed before the runs and again after the table, and where one was asked for in vain the exit
code is 1. --made writes replies for any problem from its own file: sample 1 of attempt 1 is the reference with its
result half as large again, every other one the reference itself, the answers of models that read kernels are one fixed
text; judged in track any. They show that the machinery works at equal calls, and nothing else: no table made from them
is a result.

Exit code: 0 all runs are complete; 1 one is not; 64 and above as of run_batch.py where the comparison failed.

    .venv/bin/python scripts/compare_strategies.py 1 2 --calls 7 --made --results /tmp/compared
    .venv/bin/python scripts/compare_strategies.py 1 8 --calls 6 --samples reflect=2 --replay examples/replies \\
        --results /tmp/compared -- --device cpu
    .venv/bin/python scripts/compare_strategies.py 1 40 --calls 12 --results /tmp/compared -- --model NAME
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.replies import Kind, made  # noqa: E402
from hkbench.cli.arguments import positive  # noqa: E402
from hkbench.errors import HkbenchError, UsageError  # noqa: E402
from hkbench.lab.advice import CALLS  # noqa: E402
from hkbench.llm.replay import ReplayClient  # noqa: E402
from hkbench.llm.replies import call_name  # noqa: E402
from hkbench.llm.structured import read_answer  # noqa: E402
from hkbench.problems import chosen_problems  # noqa: E402
from hkbench.records import (  # noqa: E402
    FORMS,
    AdviceKey,
    AdviceReceived,
    CallKey,
    Problem,
    ReplyReceived,
    Role,
    SampleKey,
)
from hkbench.registry import backend_names  # noqa: E402
from hkbench.store.events import read_events  # noqa: E402
from hkbench.store.layout import RunPaths  # noqa: E402
from hkbench.strategies import STRATEGIES, Agents, Graph  # noqa: E402
from hkbench.strategies.agents import AgentsOptions  # noqa: E402

MAX_SAMPLES = 3  #: of an attempt of reflect, where N divides so, and of the first of graph
SHOWN = 4  #: replies listed before it says how many more there are
PLUMBING = "made from the problems' own files: this shows that the machinery works, and is no result"
#: Serves whatever is asked of a model that reads a kernel.
CANNED = {
    "critical_issue": "the result is half as large again as it should be",
    "why_it_matters": "every value is wrong",
    "minimal_fix_hint": "return what the reference returns",
    "bottleneck": "not looked at: this answer is a fixed text",
    "optimisation_method": "none",
    "modification_plan": "leave the code as it is",
    "cause": "not looked at: this answer is a fixed text",
    "fix": "return what the reference returns",
    "diagnosis": "the result is half as large again as it should be",
    "hint": "return what the reference returns",
    "change": "leave the code as it is",
}
#: Options that make a strategy spend its calls.
SPENDING = {"reflect": ("--exhaust",), "graph": ("--moves", "model", "--whole-budget")}
READERS = {
    "judge": (Role.JUDGE,),
    "agents": (Role.COMPILE_REASONER, Role.CORRECTNESS_REASONER, Role.PERFORMANCE_REASONER),
}
#: What these ask for after their first attempt depends on the verdicts: rules may end a problem of staged there.
FREE = ("staged", "graph", "agents")


@dataclass(frozen=True)
class Shape:
    """How a strategy spends the calls of a problem."""

    strategy: str
    samples: int
    attempts: int

    @property
    def words(self) -> list[str]:
        words = ["--strategy", self.strategy, "--samples", str(self.samples), "--attempts", str(self.attempts)]
        return [*words, *SPENDING.get(self.strategy, ())]

    @property
    def described(self) -> str:
        """Samples times attempts; of graph the samples that it starts from, and the edits."""
        if self.strategy == Graph.name:
            return f"{self.samples}+{self.attempts - 1}"
        return f"{self.samples}x{self.attempts}"

    @property
    def max_calls(self) -> int:
        strategy = STRATEGIES[self.strategy]
        return strategy.max_calls(strategy.Options(samples=self.samples, attempts=self.attempts))

    def keys(self, problem: str) -> list[CallKey]:
        """Return every reply that the strategy may ask for, but second answers of a model that reads kernels.

        The attempts of agents are more than it is told: a change by a reasoner is one as well.
        """
        tuned = AgentsOptions().max_tuning if self.strategy == Agents.name else 0
        steps, samples = range(1, self.attempts * (1 + tuned) + 1), range(1, self.samples + 1)
        keys: list[CallKey] = [SampleKey(problem=problem, attempt=k, sample=n) for k in steps for n in samples]
        readers = READERS.get(self.strategy, ())
        return keys + [AdviceKey(problem=problem, attempt=k, call=1, role=role) for k in steps[1:] for role in readers]

    def sure_keys(self, problem: str) -> list[CallKey]:
        """Return those that it asks for whatever the verdicts are."""
        if self.strategy not in FREE:
            return self.keys(problem)
        return [SampleKey(problem=problem, attempt=1, sample=n) for n in range(1, self.samples + 1)]


def samples(name: str, calls: int) -> int:
    """Return the samples of an attempt; of graph those of the first."""
    if name == "reflect":
        return next(n for n in range(MAX_SAMPLES, 0, -1) if calls % n == 0)
    return max(1, min(MAX_SAMPLES, calls - 1)) if name == "graph" else 1


def shape(name: str, calls: int, each: int) -> Shape:
    """Return the shape of a strategy with the most attempts of `each` samples for which `calls` do in any case.

    Raises:
        UsageError: `calls` are not enough for what makes the strategy another one than the rest.
    """
    least = 1 if name in ("reflect", "agents") else 2
    most = STRATEGIES[name].Options().attempts if name == "staged" else calls
    for attempts in range(most, least - 1, -1):
        found = Shape(name, each, attempts)
        if found.max_calls <= calls:
            return found
    needed = Shape(name, each, least).max_calls
    raise UsageError(f"--calls {calls}: {name} may take {needed}; give more, or --attempts {name}={least}")


def shapes(strategies: Sequence[str], calls: int, attempts: Mapping[str, int], each: Mapping[str, int]) -> list[Shape]:
    """Return how each strategy spends at most `calls` model calls of a problem.

    Those of `attempts` and `each` (the samples of an attempt) make as many as it says.
    """
    drawn = {name: each.get(name, samples(name, calls)) for name in strategies}
    return [
        Shape(name, drawn[name], attempts[name]) if name in attempts else shape(name, calls, drawn[name])
        for name in strategies
    ]


def main() -> int:
    options = parse()
    try:
        path, level = options.problems, options.level
        chosen = chosen_problems(path, os.environ, level=level, numbers=((options.first, options.last),))
        problems = chosen.problems
    except HkbenchError as error:
        print(f"compare_strategies: {error}", file=sys.stderr)
        return error.exit_code
    planned = options.planned
    options.results.mkdir(parents=True, exist_ok=True)
    replay = folders(options, planned, problems)
    lacking = [line for shape in planned for line in lacks(shape, replay.get(shape.strategy), options, problems)]
    for line in lacking:
        print(line)
    codes = {shape.strategy: batch(shape, replay.get(shape.strategy), options) for shape in planned}
    failed = subprocess.run(comparison(options, planned), check=False).returncode
    print()
    for line in table(options, planned, codes, [problem.name for problem in problems]):
        print(line)
    for line in (*lacking, *([f"replies {PLUMBING}"] if options.made else [])):
        print(line)
    return failed or int(any(codes.values()))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=positive, metavar="FIRST", help="number of the first problem")
    parser.add_argument("last", type=positive, metavar="LAST", help="number of the last problem")
    parser.add_argument("--calls", type=positive, required=True, metavar="N", help="model calls of a problem")
    parser.add_argument(
        "--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES), metavar="S", help="which"
    )
    parser.add_argument(
        "--attempts", nargs="+", type=assigned, default=[], metavar="S=K", help="of a strategy, which may then exceed N"
    )
    parser.add_argument(
        "--samples", nargs="+", type=assigned, default=[], metavar="S=K", help="of each attempt of a strategy"
    )
    parser.add_argument("--problems", type=Path, metavar="PATH", help="as of run_batch.py")
    parser.add_argument("--level", type=positive, metavar="N", help="of the problems (default: 1)")
    parser.add_argument("--backend", default="cpp", choices=backend_names(), help="(default: cpp)")
    replies = parser.add_mutually_exclusive_group()
    replies.add_argument(
        "--replay", nargs="+", default=[], metavar="[S=]PATH", help="run folders, or files of recorded replies"
    )
    replies.add_argument("--made", action="store_true", help="replies made from the problems' own files")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="a folder for the runs")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.more = words[at + 1 :]
    try:
        attempts, each = dict(options.attempts), dict(options.samples)
        options.planned = shapes(options.strategies, options.calls, attempts, each)
    except UsageError as error:
        parser.error(str(error))
    if sum("=" not in one for one in options.replay) > 1:
        parser.error("--replay: one folder for all strategies; name the others STRATEGY=PATH")
    named = {one.partition("=")[0]: "--replay" for one in options.replay if "=" in one}
    named |= dict.fromkeys(attempts, "--attempts") | dict.fromkeys(each, "--samples")
    for unknown in sorted(set(named) - set(options.strategies)):
        parser.error(f"{named[unknown]} {unknown}=...: {unknown} is none of {', '.join(options.strategies)}")
    return options


def assigned(text: str) -> tuple[str, int]:
    """Read STRATEGY=NUMBER."""
    name, _, number = text.partition("=")
    return name, positive(number)


def folders(options: argparse.Namespace, planned: Sequence[Shape], problems: Sequence[Problem]) -> dict[str, Path]:
    """Return whose replies lie where; empty where a model is asked."""
    if options.made:
        root = options.results / "replies"
        write_made(root, planned, problems)
        return {shape.strategy: root for shape in planned}
    for_all = [Path(one) for one in options.replay if "=" not in one]
    found = {shape.strategy: for_all[-1] for shape in planned if for_all}
    found |= {name: Path(folder) for name, _, folder in (one.partition("=") for one in options.replay) if folder}
    files = {name: folder / f"{name}.toml" for name, folder in found.items()}
    return {name: files[name] if files[name].is_file() else folder for name, folder in found.items()}


def write_made(root: Path, planned: Sequence[Shape], problems: Sequence[Problem]) -> None:
    """Write a collection for all strategies. No two candidates of a problem are alike, so that each is judged."""
    most = max(shape.samples for shape in planned)
    for problem in problems:
        for key in dict.fromkeys(key for shape in planned for key in shape.keys(problem.name)):
            if isinstance(key, AdviceKey):
                text = json.dumps(CANNED, indent=2) + "\n"
            else:
                kind = Kind.SCALED if key.attempt == key.sample == 1 else Kind.EQUAL
                text = f"```python\n{made(problem, kind, most * (key.attempt - 1) + key.sample)}```\n"
            path = root / call_name(key) / "response.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            record = {"model": "plumbing", "finish_reason": "stop"}
            path.with_name("exchange.json").write_text(json.dumps(record) + "\n", encoding="utf-8")


def lacks(shape: Shape, folder: Path | None, options: argparse.Namespace, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield a line for each problem of which the strategy asks for replies that are not recorded."""
    if folder is None:
        return
    client = ReplayClient(folder, options.backend)
    for problem in problems:
        missing = client.missing([*shape.sure_keys(problem.name), *again(shape, client, problem.name)])
        if missing:
            names = [f"attempt_{key.attempt}/{key.folder}" for key in missing]
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            what = f"{shape.strategy}: {folder} lacks {len(names)} replies that {problem.name} asks for"
            yield f"{what}: {', '.join(names[:SHOWN])}{more}"


def again(shape: Shape, client: ReplayClient, problem: str) -> Iterator[CallKey]:
    """Return second answers of the judge that are sure to be asked for: the first fits neither form."""
    for key in shape.sure_keys(problem):
        if isinstance(key, AdviceKey):
            if client.missing([key]):
                continue
            text = client.reply(key).text
            if not any(read_answer(text, form).advice for form in FORMS.values()):
                yield key.model_copy(update={"call": CALLS})


def batch(shape: Shape, folder: Path | None, options: argparse.Namespace) -> int:
    """Run a strategy; the exit code."""
    words = [sys.executable, str(ROOT / "run_batch.py"), str(options.first), str(options.last), *shape.words]
    words += ["--backend", options.backend, "--results", str(options.results / shape.strategy)]
    words += ["--problems", str(options.problems)] if options.problems else []
    words += ["--level", str(options.level)] if options.level else []
    words += ["--replay", str(folder)] if folder else []
    words += ["--track", "any"] if options.made else []
    print(f"\n== {shape.strategy}: {' '.join(shape.words)}", flush=True)
    return subprocess.run([*words, *options.more], check=False).returncode


def comparison(options: argparse.Namespace, planned: Sequence[Shape]) -> list[str]:
    runs = [str(options.results / shape.strategy) for shape in planned]
    if len(runs) == 1:
        return [sys.executable, str(ROOT / "generate_report.py"), *runs]
    page = options.results / "comparison.html"
    return [sys.executable, str(ROOT / "generate_report.py"), *runs, "--output", str(page)]


def table(
    options: argparse.Namespace, planned: Sequence[Shape], codes: dict[str, int], problems: Sequence[str]
) -> Iterator[str]:
    """Yield what each strategy came to, and the calls that it really made."""
    head = f"model calls, at most {options.calls} a problem"
    yield f"{head}  attempts  coder  reader  a problem  finished  solved  correct"
    for shape in planned:
        coder, reader = calls_made(options.results / shape.strategy)
        each = [coder[name] + reader[name] for name in problems]
        between = f"{min(each)} to {max(each)}" if min(each) < max(each) else str(max(each))
        overall = overall_of(options.results / shape.strategy)
        figures = "  ".join(f"{overall.get(name, '-'):>{len(name)}}" for name in ("finished", "solved", "correct"))
        made_of = f"{shape.strategy:{len(head)}}  {shape.described:>8}"
        yield f"{made_of}  {coder.total():>5}  {reader.total():>6}  {between:>9}  {figures}"
    for shape in planned:
        coder, reader = calls_made(options.results / shape.strategy)
        beyond = [name for name in problems if coder[name] + reader[name] > options.calls]
        if beyond:
            yield f"{shape.strategy} took more than {options.calls} calls for {', '.join(beyond)}"
        if codes[shape.strategy]:
            code = codes[shape.strategy]
            yield f"{shape.strategy} is not complete (exit code {code}): its figures are not comparable"


def calls_made(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Count answered calls by problem, of the model that writes kernels and of those that read them.

    One that a resume asked for twice counts twice.
    """
    coder, reader = Counter[str](), Counter[str]()
    journal = RunPaths(folder).journal
    for event in read_events(journal) if journal.exists() else ():
        if isinstance(event, ReplyReceived):
            coder[event.key.problem] += 1
        elif isinstance(event, AdviceReceived):
            reader[event.key.problem] += 1
    return coder, reader


def overall_of(folder: Path) -> dict[str, object]:
    report = folder / "detailed_report.json"
    if not report.is_file():
        return {}
    overall: dict[str, object] = json.loads(report.read_text(encoding="utf-8"))["overall"]
    return overall


if __name__ == "__main__":
    sys.exit(main())
