"""The report files of a run folder, and those of several side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from hkbench.errors import InputMissing, UsageError
from hkbench.records import Record
from hkbench.report.build import detail, summary_of
from hkbench.report.compare import compare
from hkbench.report.comparison import Comparison, RankBy
from hkbench.report.evaluations import write_evaluations
from hkbench.report.index import problem_files, run_files
from hkbench.report.model import Report
from hkbench.report.page import render_comparison, render_page
from hkbench.report.samples import SampleRow, sample_rows
from hkbench.report.scores import write_scores
from hkbench.report.search import write_search
from hkbench.report.summary_csv import summary_text
from hkbench.report.table import csv_text
from hkbench.report.text import render_text
from hkbench.report.usage import CallRow, call_rows
from hkbench.store.collector import collector_paused
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

SCHEMA = Path(__file__).with_name("detailed_report.schema.json")
COMPARISON_SCHEMA = Path(__file__).with_name("comparison.schema.json")
COMPARISON = "comparison.html"


@collector_paused()
def write_reports(results: Path) -> Report:
    """Write summaries, detailed reports, report.html, tables and what a strategy has besides; return the report.

    The same folder gives the same bytes. `InputMissing` when `results` holds no run, `ConfigurationError`
    when its run.json cannot be read; `OSError` when a file cannot be written.
    """
    paths = RunPaths(results)
    run = read_run(paths)
    report = detail(run)
    summary = summary_of(report)
    write_atomic(paths.summary_csv, summary_text(summary))
    write_atomic(paths.samples, csv_text(SampleRow.model_fields, sample_rows(run)))
    write_atomic(paths.usage, csv_text(CallRow.model_fields, call_rows(run)))
    write_atomic(paths.report_json, json_text(report))
    write_atomic(paths.report_text, render_text(report))
    write_evaluations(run)
    write_search(run)
    write_scores(report, paths)
    write_atomic(paths.report_page, render_page(report, paths))
    files = {problem.problem: problem_files(paths, problem.problem) for problem in report.problems}
    indexed = summary.model_copy(update={"files": run_files(paths), "problem_files": files})
    write_atomic(paths.summary_json, json_text(indexed))  # last: it names what was written
    return report


def read_comparison(folders: Sequence[Path], *, force: bool = False, rank_by: RankBy = RankBy.FASTER) -> Comparison:
    """Return the runs of these folders, each against the first; errors as of `read_run` and `compare`."""
    return compare(
        [(str(folder), detail(read_run(RunPaths(folder)))) for folder in folders], force=force, rank_by=rank_by
    )


@collector_paused()
def write_comparison(
    folders: Sequence[Path], output: Path | None = None, *, force: bool = False, rank_by: RankBy = RankBy.FASTER
) -> tuple[Comparison, Path]:
    """Write the page of several runs and, under the same name, its data (.json); return both the data and the page.

    `output`: the page, by default comparison.html in the first folder. The folders themselves stay as they are.
    `UsageError` for a name that is not .html, or that a file of the run there has; else errors as of
    `read_comparison`.
    """
    page = output if output is not None else folders[0] / COMPARISON
    found = read_comparison(folders, force=force, rank_by=rank_by)
    _check_output(page)
    html = render_comparison(found, [_address(RunPaths(folder), page) for folder in folders])
    write_atomic(page.with_suffix(".json"), json_text(found))
    write_atomic(page, html)
    return found, page


def _check_output(page: Path) -> None:
    if page.suffix not in {".html", ".htm"}:
        raise UsageError(f"{page} cannot be the page: name it .html, its data lies beside it as .json")
    if not page.parent.is_dir():
        raise InputMissing(f"there is no folder {page.parent} for {page.name}")
    run = RunPaths(page.parent)
    kept = {run.run, run.report_page, run.report_json, run.summary_json}
    if run.run.exists() and {page, page.with_suffix(".json")} & kept:
        raise UsageError(f"{page} would replace a file of the run in {page.parent}; choose another name")


def _address(paths: RunPaths, page: Path) -> str | None:
    """Return where the page finds the run's own report, if there is one."""
    if not paths.report_page.is_file():
        return None
    return quote(os.path.relpath(paths.report_page.resolve(), page.parent.resolve()))


def json_text(record: Record) -> str:
    return record.model_dump_json(indent=2) + "\n"


def schema_text(record: type[Record] = Report) -> str:
    """Return detailed_report.json's JSON Schema, as checked in at `SCHEMA`; of `Comparison`, at `COMPARISON_SCHEMA`."""
    return json.dumps(record.model_json_schema(mode="serialization"), indent=2, sort_keys=True) + "\n"
