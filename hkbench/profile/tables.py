"""CSV files that a profiler wrote, read by their header. They lie where a candidate could write, so all is checked."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hkbench.errors import InputMissing, Unavailable

MAX_BYTES = 64 << 20  #: of one file; a pass of some kernels has kilobytes
MAX_ROWS = 500_000
MAX_NUMBER = 1e24


class ProfileUnreadable(Unavailable):
    """A profiler's output is not what its documentation says: cut off, damaged, or of a version that is not known."""


@dataclass(frozen=True)
class Row:
    """One line of a table, with the place that an error names."""

    values: Mapping[str, str]
    path: Path
    line: int

    def text(self, *names: str) -> str | None:
        """Return the first of the named columns that there is and that is not empty."""
        for name in names:
            value = self.values.get(name)
            if value:
                return value
        return None

    def needed(self, *names: str) -> str:
        """Return what `text` does. Raises `ProfileUnreadable` where there is none."""
        value = self.text(*names)
        if value is None:
            raise unreadable(self.path, f"line {self.line} has no {' or '.join(names)}")
        return value

    def number(self, *names: str) -> float | None:
        """Return a number of at least 0; None where no such column is there.

        Raises `ProfileUnreadable` for anything else.
        """
        value = self.text(*names)
        return None if value is None else self.as_number(value, names[0])

    def whole(self, *names: str) -> int | None:
        """Return a whole number of at least 0, likewise."""
        value = self.number(*names)
        return None if value is None else round(value)

    def as_number(self, value: str, name: str) -> float:
        """Return `value` as a finite number of at least 0; commas between thousands are taken out."""
        try:
            number = float(value.replace(",", ""))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and 0 <= number < MAX_NUMBER):
            raise unreadable(self.path, f"line {self.line}: {name} is {value[:40]!r}, not a number of at least 0")
        return number


def unreadable(path: Path, what: str) -> ProfileUnreadable:
    """Return the error for a damaged file: names it and the next step."""
    return ProfileUnreadable(
        f"{path.name}: {what}; the profiler was interrupted or is a version that is not known. "
        f"Look at {path}, then profile again into an empty folder, or use torch's profiler"
    )


def read_text(path: Path) -> str:
    """Return the file's text.

    `InputMissing` where there is none, `ProfileUnreadable` where it is a link or too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputMissing(
            f"{path}: the profiler wrote no such file; read what it printed, then profile again"
        ) from None
    except OSError as error:
        raise unreadable(path, f"cannot be opened ({error.strerror})") from None
    with os.fdopen(handle, "rb") as file:
        try:
            content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise unreadable(path, f"cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise unreadable(path, f"is larger than {MAX_BYTES >> 20} MiB")
    return content.decode("utf-8", "replace")


def read_table(path: Path, needed: Iterable[str]) -> list[Row]:
    """Return all rows of a CSV file whose first line that is no remark names the columns.

    Lines that begin with `#` (no profiler writes them) and empty ones are passed over. Raises `InputMissing` without
    the file, `ProfileUnreadable` when a needed column is missing, when the last line has no end or a row another number
    of cells than the header (both are marks of a cut-off file), or when there is no row.
    """
    return table(read_text(path), path, needed)


def table(text: str, path: Path, needed: Iterable[str]) -> list[Row]:
    """Return the rows of a text that came from `path`, as `read_table` does."""
    if text and not text.endswith("\n"):
        raise unreadable(path, "ends within a line")
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    header: list[str] | None = None
    rows: list[Row] = []
    try:
        for cells in reader:
            if not cells or cells[0].lstrip().startswith("#"):
                continue
            if header is None:
                header = [cell.strip().strip('"') for cell in cells]
                _check_header(header, path, needed)
                continue
            if len(cells) == len(header) + 1 and not cells[-1]:
                cells.pop()  # rocprofv2 ends its lines with a comma
            if len(cells) != len(header):
                raise unreadable(path, f"line {reader.line_num} has {len(cells)} of {len(header)} cells")
            values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
            rows.append(Row(values, path, reader.line_num))
            if len(rows) > MAX_ROWS:
                raise unreadable(path, f"has more than {MAX_ROWS} rows")
    except csv.Error as error:
        raise unreadable(path, f"line {reader.line_num} is not CSV ({error})") from None
    if not rows:
        raise unreadable(path, "holds no kernel" if header else "is empty")
    return rows


def _check_header(header: list[str], path: Path, needed: Iterable[str]) -> None:
    while header and not header[-1]:
        header.pop()
    missing = [name for name in needed if name not in header]
    if missing:
        raise unreadable(path, f"has no column {', '.join(missing)}")
    if len(set(header)) != len(header):
        raise unreadable(path, "names a column twice")
