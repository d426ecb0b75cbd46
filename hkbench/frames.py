"""Runs as data for notebooks and scripts: settings, figures, and tables as pandas DataFrames.

    import hkbench

    run = hkbench.load_run("results")  # the newest run below the folder
    run.samples.groupby("problem").speedup.max()
    hkbench.load_runs("results").sort_values("speedup", ascending=False)

The tables have the columns of samples.csv, summary.csv and usage.csv. docs/results.md has examples.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pandas as pd

from hkbench.cli.address import find_address
from hkbench.errors import HkbenchError, InputMissing, UsageError
from hkbench.headline import device_name
from hkbench.records import Outcome, RunConfig, RunFacts, Verdict
from hkbench.report.build import detail, summary_of
from hkbench.report.model import Overall, Report, ReportRecord, SummaryRow
from hkbench.report.sample import diff_lines
from hkbench.report.samples import SampleRow, sample_rows
from hkbench.report.usage import CallRow, call_rows
from hkbench.store.find import holds_run, named_run, runs_below
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run
from hkbench.store.sample import WholeSample, read_sample


def load_run(path: str | Path = "results") -> Run:
    """Load the run in the folder `path`, or the newest one below it.

    Raises:
        InputMissing: there is no run.
        ConfigurationError: its run.json cannot be read.
    """
    root = Path(path)
    if holds_run(root):
        return Run(named_run(root))
    found = runs_below(root)
    if not found:
        raise InputMissing(f"{root} holds no run, and neither does a folder in it: name the folder of a run")
    return Run(found[0])


def load_runs(root: str | Path = "results") -> pd.DataFrame:
    """Load all runs below `root`, a row a run, the newest first. A run that cannot be read has its `error` only."""
    folder = Path(root)
    paths = [named_run(folder)] if holds_run(folder) else runs_below(folder)
    return _frame(RunRow, map(_run_row, paths))


class Run:
    """One run folder, as it stands when it is loaded. Nothing is ever written to it."""

    def __init__(self, folder: Path) -> None:
        self._view = read_run(RunPaths(folder))

    def __repr__(self) -> str:
        return f"<hkbench run {self.path}: {self.report.title}>"

    @property
    def path(self) -> Path:
        return self._view.paths.root

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self._view.config

    @property
    def facts(self) -> RunFacts:
        """Where and with what it was made: time, versions, hardware, prices."""
        return self._view.facts

    @cached_property
    def report(self) -> Report:
        """Everything that detailed_report.json holds."""
        return detail(self._view)

    @property
    def complete(self) -> bool:
        return self.report.complete

    @property
    def overall(self) -> Overall:
        """The headline figures, with their intervals."""
        return self.report.overall

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row a sample, with the columns of samples.csv."""
        return _frame(SampleRow, sample_rows(self._view))

    @cached_property
    def problems(self) -> pd.DataFrame:
        """A row a problem, with the columns of `problems` in summary.json."""
        return _frame(SummaryRow, summary_of(self.report).problems)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """A row an answered call of a model, with the columns of usage.csv."""
        return _frame(CallRow, call_rows(self._view))

    def sample(self, address: str) -> Sample:
        """Return one sample by PROBLEM/ATTEMPT/SAMPLE, as "8/2/1"; PROBLEM is a number, a name or a part of one.

        Raises:
            UsageError: it is not written so, or several problems answer to it.
            InputMissing: the run has no such sample; the message lists those it has.
        """
        key = find_address(self._view, address).key
        if key is None:
            raise UsageError(f"{address!r} names no sample: name it as PROBLEM/ATTEMPT/SAMPLE, as 3/2/1")
        view = self._view
        return Sample(read_sample(view.paths, key, view.state), view.paths.problem(key.problem).reference)


class Sample:
    """One sample of a run. What the folder does not hold is `None`."""

    def __init__(self, whole: WholeSample, reference: Path) -> None:
        self._whole = whole
        self._reference = reference

    def __repr__(self) -> str:
        key = self._whole.key
        status = self.verdict.status if self.verdict is not None else "no verdict"
        return f"<hkbench sample {key.problem}/{key.attempt}/{key.sample}: {status}>"

    @property
    def prompt(self) -> str | None:
        """The prompt, with the system message before it, where one was sent."""
        return self._whole.prompt

    @property
    def reply(self) -> str | None:
        return self._whole.reply

    @property
    def code(self) -> str | None:
        return self._whole.code

    @property
    def reference(self) -> str | None:
        """The problem's own file; `None` in a run that did not keep it."""
        return self._reference.read_text(encoding="utf-8-sig") if self._reference.is_file() else None

    @property
    def verdict(self) -> Verdict | None:
        return self._whole.verdict

    @property
    def parent(self) -> str | None:
        """The sample that the prompt tells of, as an address."""
        found = self._whole.parent
        return f"{found.problem}/{found.attempt}/{found.sample}" if found is not None else None

    @property
    def diff(self) -> str | None:
        """The unified diff from the parent's code; empty where the code is the same."""
        if self._whole.code is None or self._whole.parent_code is None:
            return None
        return "\n".join(diff_lines(self._whole)) if self._whole.code != self._whole.parent_code else ""


class RunRow(ReportRecord):
    """One run of `load_runs`. `None`: not known."""

    path: str
    started: str | None = None  #: ISO 8601, UTC
    model: str | None = None
    strategy: str | None = None
    backend: str | None = None
    device: str | None = None
    device_name: str | None = None
    level: int | None = None
    sizes: str | None = None
    track: str | None = None
    samples: int | None = None  #: of an attempt
    attempts: int | None = None
    complete: bool | None = None
    problems: int | None = None
    judged: int | None = None
    correct: int | None = None
    solved: int | None = None
    faster: int | None = None  #: problems by outcome, as the eight that follow
    on_par: int | None = None
    slower: int | None = None
    unsettled: int | None = None
    wrong: int | None = None
    refused: int | None = None
    emulated: int | None = None
    compiled: int | None = None
    not_judged: int | None = None
    fast_1: float | None = None  #: share of the judged problems with a speed-up > 1
    speedup: float | None = None  #: geometric mean over the correct problems
    low: float | None = None  #: its 95 % interval
    high: float | None = None
    pass_1: float | None = None  #: pass@1
    tokens_input: int | None = None
    tokens_output: int | None = None
    cost: float | None = None
    currency: str | None = None
    wall_seconds: float | None = None
    hkbench: str | None = None  #: version
    error: str | None = None  #: why the run cannot be read


def _run_row(path: Path) -> RunRow:
    try:
        run = Run(path)
    except HkbenchError as error:
        return RunRow(path=str(path), error=str(error))
    config, overall, mean = run.config, run.overall, run.overall.geometric_mean_speedup
    return RunRow(
        path=str(path),
        started=run.facts.started,
        model=config.model,
        strategy=config.strategy.name,
        backend=config.backend,
        device=config.device,
        device_name=device_name(run.report.device_name) if run.report.device_name else None,
        level=config.level,
        sizes=config.sizes,
        track=config.evaluation.track,
        samples=config.samples,
        attempts=config.attempts,
        complete=run.complete,
        problems=overall.problems,
        judged=overall.judged,
        correct=overall.correct,
        solved=overall.solved,
        **{outcome.value: overall.outcomes.get(outcome, 0) for outcome in Outcome},
        fast_1=overall.fast_p["1"] if overall.fast_p is not None else None,
        speedup=mean.value if mean is not None else None,
        low=mean.low if mean is not None else None,
        high=mean.high if mean is not None else None,
        pass_1=next((one.value for one in overall.pass_at_k if one.k == 1), None),
        tokens_input=overall.tokens.input.total,
        tokens_output=overall.tokens.output.total,
        cost=overall.cost.total,
        currency=overall.cost.currency,
        wall_seconds=overall.wall_seconds,
        hkbench=run.facts.hkbench,
    )


def _frame(columns: type[ReportRecord], rows: Iterable[ReportRecord]) -> pd.DataFrame:
    """Return a table whose types are those of the fields, whatever its rows hold: also one without rows."""
    found = [row.model_dump(mode="json") for row in rows]
    return pd.DataFrame(
        {
            name: pd.Series([row[name] for row in found], dtype=_dtype(field.annotation))
            for name, field in columns.model_fields.items()
        }
    )


def _dtype(annotation: Any) -> str:
    """Return pandas' type of a field: nullable integers and truth values, floats with NaN, else text."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return {bool: "boolean", int: "Int64", float: "float64"}.get(annotation, "string")
