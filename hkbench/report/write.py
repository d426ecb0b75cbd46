"""The report files of a run folder."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from hkbench.records import Record
from hkbench.report.build import detail, summary_of
from hkbench.report.model import Report, Summary, SummaryRow
from hkbench.report.page import render_page
from hkbench.report.text import render_text
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.plain import one_line
from hkbench.store.reader import read_run

SCHEMA = Path(__file__).with_name("detailed_report.schema.json")


def write_reports(results: Path) -> Report:
    """Write summary.json, summary.csv, detailed_report.json, detailed_report.txt and report.html; return the report.

    The same folder gives the same bytes. `InputMissing` when `results` holds no run, `ConfigurationError`
    when its run.json cannot be read; `OSError` when a file cannot be written.
    """
    paths = RunPaths(results)
    report = detail(read_run(paths))
    summary = summary_of(report)
    write_atomic(paths.summary_json, json_text(summary))
    write_atomic(paths.summary_csv, csv_text(summary))
    write_atomic(paths.report_json, json_text(report))
    write_atomic(paths.report_text, render_text(report))
    write_atomic(paths.report_page, render_page(report, paths))
    return report


def json_text(record: Record) -> str:
    return record.model_dump_json(indent=2) + "\n"


def csv_text(summary: Summary) -> str:
    """A header and a row a problem; what is not known is an empty cell, truth values are true and false."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(SummaryRow.model_fields)
    for row in summary.problems:
        writer.writerow([_cell(value) for value in row.model_dump(mode="json").values()])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(value, 1000) if isinstance(value, str) else value


def schema_text() -> str:
    """JSON Schema of detailed_report.json, as checked in at `SCHEMA`."""
    return json.dumps(Report.model_json_schema(mode="serialization"), indent=2, sort_keys=True) + "\n"
