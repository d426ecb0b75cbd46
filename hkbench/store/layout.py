"""The run folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hkbench.records import Role


@dataclass(frozen=True)
class _Folder:
    root: Path


@dataclass(frozen=True)
class _Entry:
    """A file or folder of this name in a folder."""

    name: str

    def __get__(self, folder: _Folder, _owner: type[_Folder]) -> Path:
        return folder.root / self.name


class SamplePaths(_Folder):
    """One generation and its verdict.

    attempt_K/sample_N/
        response.txt      the reply's text, written before it is used
        exchange.json     request, usage, model, timing of the call (records.Reply without its text)
        code.py           the candidate, when the reply holds one
        extraction.json   which rule found it (records.Extraction without the source)
        result.json       records.Verdict
        candidate.diff    strategy graph: the code against that which it was made from
        assembly.s        what the compiler made of the code: strategy graph, and --keep-assembly
        build/            the private build folder; removed when the verdict is in
    """

    response = _Entry("response.txt")
    exchange = _Entry("exchange.json")
    code = _Entry("code.py")
    extraction = _Entry("extraction.json")
    result = _Entry("result.json")
    diff = _Entry("candidate.diff")
    assembly = _Entry("assembly.s")
    build = _Entry("build")


class AdvicePaths(_Folder):
    """One call of a model that reads a kernel, before the prompt of attempt K.

    attempt_K/judge_N/    with strategy agents compile_reasoner_N/, correctness_reasoner_N/, performance_reasoner_N/
        prompt.txt        what was asked: N = 1 the question, N = 2 to put the answer right
        response.txt      the answer, written before it is read
        exchange.json     as of a sample
        advice.json       what was read in the answer (records.AdviceRead)
    """

    prompt = _Entry("prompt.txt")
    response = _Entry("response.txt")
    exchange = _Entry("exchange.json")
    advice = _Entry("advice.json")


class ProblemPaths(_Folder):
    """One problem.

    PROBLEM/
        PROBLEM.py        the problem's file as the run was given it: reference, inputs, sizes
        prompt_K.txt      the prompt of attempt K
        system_K.txt      the system message that went before it, if one did
        response_K.txt    the reply, code and verdict of attempt K's best sample
        code_K.py
        result_K.json
        attempt_K/sample_N/   all samples (SamplePaths)
        attempt_K/judge_N/    what a judge was asked for attempt K's prompt (AdvicePaths)
        best_prompt.txt, best_code.py, best_result.json    of the whole problem (best_system.txt with a system message)
        evaluation/eval_XXXX.json    strategies judge and staged: the verdicts in order, with what led to each
        known_kernel.py       with --experience: the kernel of an earlier run that was recalled for this problem
        trace.md              strategy graph: the story of the search
        search_state.json     strategy graph: the states that were reached, and the edits between them
        score.png             the same strategies: the speed-up over the attempts
    """

    @property
    def reference(self) -> Path:
        return self.root / f"{self.root.name}.py"

    def prompt(self, attempt: int) -> Path:
        return self.root / f"prompt_{attempt}.txt"

    def system(self, attempt: int) -> Path:
        return self.root / f"system_{attempt}.txt"

    def response(self, attempt: int) -> Path:
        return self.root / f"response_{attempt}.txt"

    def code(self, attempt: int) -> Path:
        return self.root / f"code_{attempt}.py"

    def result(self, attempt: int) -> Path:
        return self.root / f"result_{attempt}.json"

    def sample(self, attempt: int, sample: int) -> SamplePaths:
        return SamplePaths(self.root / f"attempt_{attempt}" / f"sample_{sample}")

    def advice(self, attempt: int, call: int, role: Role = Role.JUDGE) -> AdvicePaths:
        return AdvicePaths(self.root / f"attempt_{attempt}" / f"{role}_{call}")

    best_prompt = _Entry("best_prompt.txt")
    best_system = _Entry("best_system.txt")
    best_code = _Entry("best_code.py")
    best_result = _Entry("best_result.json")

    def evaluation(self, number: int) -> Path:
        return self.root / "evaluation" / f"eval_{number:04}.json"

    score = _Entry("score.png")
    search = _Entry("search_state.json")
    trace = _Entry("trace.md")
    known_kernel = _Entry("known_kernel.py")


class RunPaths(_Folder):
    """The whole run.

    RESULTS/
        run.json              settings (RunConfig) and where it ran (RunFacts): {"config": ..., "facts": ...}
        journal.jsonl         every step, one event a line, append-only
        batch_run.log         the same for people
        summary.json, summary.csv
        detailed_report.json, detailed_report.txt, report.html
        samples.csv           a row a sample
        usage.csv             a row a model call
        global_tactic_graph.json    strategy graph: what each move brought, over all problems
        comparison.html, comparison.json    where it was compared with other runs
        PROBLEM/              one folder a problem, named as its file (ProblemPaths)
    """

    run = _Entry("run.json")
    journal = _Entry("journal.jsonl")
    log = _Entry("batch_run.log")
    lock = _Entry(".lock")
    summary_json = _Entry("summary.json")
    summary_csv = _Entry("summary.csv")
    samples = _Entry("samples.csv")
    report_json = _Entry("detailed_report.json")
    report_text = _Entry("detailed_report.txt")
    report_page = _Entry("report.html")
    usage = _Entry("usage.csv")
    moves = _Entry("global_tactic_graph.json")

    @property
    def written(self) -> tuple[Path, ...]:
        """All files of a run beside run.json, the lock and the problems' folders."""
        reports = (self.summary_json, self.summary_csv, self.report_json, self.report_text, self.report_page)
        return (self.journal, self.log, *reports, self.usage)

    def problem(self, name: str) -> ProblemPaths:
        return ProblemPaths(self.root / name)
