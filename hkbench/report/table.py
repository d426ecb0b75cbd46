"""Rows as CSV: how values are written in every .csv file of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from hkbench.report.model import ReportRecord
from hkbench.store.sanitize import one_line

_WIDTH = 1000  #: characters of a text


def csv_text(columns: Iterable[str], rows: Iterable[ReportRecord | Mapping[str, object]]) -> str:
    """Return a header and a line a row. A row may lack columns.

    An unknown value is an empty cell, truth values are true and false, text stands on one line.
    """
    names = list(columns)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        values = row.model_dump(mode="json") if isinstance(row, ReportRecord) else row
        writer.writerow([_cell(values.get(name)) for name in names])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(value, _WIDTH) if isinstance(value, str) else value
