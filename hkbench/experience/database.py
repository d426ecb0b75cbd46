"""The file: opening it, bringing it to the present version, and putting whole runs in, one writer at a time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.experience import queries
from hkbench.experience.facts import Traits
from hkbench.experience.rows import LENGTH, PARTS, TABLES, Row, RunRow, RunRows
from hkbench.experience.schema import MIGRATIONS, VERSION
from hkbench.records import ExperienceFacts

BUSY_SECONDS = 60.0  #: that a writer waits for another one
APPLICATION = 0x686B6562  #: "hkeb": by which a file is recognised as ours


class Added(StrEnum):
    """What became of a run that was to be added."""

    NEW = "new"
    REPLACED = "replaced"
    SAME = "same"


class Database:
    """An open experience. It belongs to the thread that opened it."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the file, and bring it to the present version.

        Raises:
            InputMissing: there is no such file (unless `create`), or its folder is not there.
            ConfigurationError: it is something else, of a newer hkbench, or damaged.
        """
        self.path = path
        if not path.exists() and not create:
            raise InputMissing(f"there is no experience {path}: fill one with `hkbench experience add RUN --db {path}`")
        if not path.parent.is_dir():
            raise InputMissing(f"there is no folder {path.parent} for the experience {path.name}: make it first")
        try:
            self.connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise InputMissing(f"{path} cannot be opened ({error}): name a file that can") from None
        try:
            self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self) -> None:
        with self.faults():
            self._write_ahead()
            # A write is on disk when it returns: what is committed outlives the process and the machine.
            for pragma in ("synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY"):
                self.connection.execute(f"PRAGMA {pragma}")
            self.connection.execute(queries.HELD)
            if self._number("user_version") == VERSION and self._number("application_id") == APPLICATION:
                return
            with self.writing():
                self._migrate()

    def _write_ahead(self) -> None:
        """Make readers independent of the writer. Of several that open a new file at once, one is let through."""
        until = time.monotonic() + BUSY_SECONDS
        while self.connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:  # SQLite does not wait for this one by itself
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _migrate(self) -> None:
        version, application = self._number("user_version"), self._number("application_id")
        if version > VERSION:
            raise ConfigurationError(
                f"{self.path} was written by a newer hkbench (version {version} of its tables, known are {VERSION}): "
                "update hkbench, or name another file"
            )
        if application != APPLICATION and self.connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise ConfigurationError(f"{self.path} is a database of another program: name another file")
        for migration in MIGRATIONS[version:]:
            for statement in filter(str.strip, migration.split(";")):
                self.connection.execute(statement)
        self.connection.execute(f"PRAGMA user_version = {VERSION}")
        self.connection.execute(f"PRAGMA application_id = {APPLICATION}")

    def _number(self, pragma: str) -> int:
        return int(self.connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Turn SQLite's errors into ones that name the file and the next step."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                why = f"another process has written to {self.path} for {BUSY_SECONDS:.0f} s"
                raise ConfigurationError(f"{why}: wait for it and add the run again") from None
            raise ConfigurationError(f"{self.path}: {error}; name a file that can be written") from None
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(
                f"{self.path} is no experience, or damaged ({error}): name another file, and fill it from the runs "
                "(hkbench experience add)"
            ) from None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer; what is written within is there as a whole, or not at all."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query with its parameters."""
        with self.faults():
            return self.connection.execute(query, values).fetchall()

    def add(self, run: RunRows) -> Added:
        """Put a run in, in place of what is known of it; nothing is written where that is the same."""
        with self.faults(), self.writing():
            known = self.connection.execute("SELECT digest FROM run WHERE id = ?", (run.run.id,)).fetchone()
            if known is not None and known[0] == run.run.digest:
                return Added.SAME
            self.connection.execute("DELETE FROM run WHERE id = ?", (run.run.id,))
            self._insert(RunRow, [run.run])
            for kind in PARTS:
                self._insert(kind, [row for row in run.parts if isinstance(row, kind)])
        return Added.NEW if known is None else Added.REPLACED

    def _insert(self, kind: type[RunRow | Row], rows: Iterable[RunRow | Row]) -> None:
        columns, places = ", ".join(kind._fields), ", ".join("?" * len(kind._fields))
        # The names are those of our own classes.
        self.connection.executemany(f"INSERT INTO {TABLES[kind]} ({columns}) VALUES ({places})", rows)  # noqa: S608

    def version(self) -> int:
        """Return a number that changes whenever another connection has written."""
        return self._number("data_version")

    def hold(self, problems: Iterable[tuple[str, str]]) -> None:
        """Leave out what is known of these problems, each of a run, in all that the connection is asked from now on."""
        self.connection.execute("DELETE FROM held")
        self.connection.executemany("INSERT INTO held VALUES (?, ?)", problems)

    def run_ids(self) -> list[str]:
        return [str(name) for (name,) in self.rows("SELECT id FROM run ORDER BY id")]

    def content(self, run: str) -> list[str]:
        """Return all rows of a run, each as a line, in an order that does not depend on how they were added."""
        lines: list[str] = []
        for kind, table in TABLES.items():
            key = "id" if kind is RunRow else "run"
            columns = ", ".join(kind._fields)
            found = self.rows(f"SELECT {columns} FROM {table} WHERE {key} = ?", run)  # noqa: S608 - our own names
            lines += [json.dumps([table, *row]) for row in found]
        return sorted(lines)

    def known_traits(self) -> Mapping[tuple[str, str], Traits]:
        """Return what problems are compared by, as runs in the file have it: by the problem's sha256 and its sizes."""
        return {
            (digest, sizes): Traits(facts, json.loads(classes), dtype, elements)
            for digest, sizes, facts, classes, dtype, elements in self.rows(queries.TRAITS)
        }

    def facts(self) -> ExperienceFacts:
        """Return what a run that asks the file records of it."""
        known = self.rows("SELECT id, digest FROM run ORDER BY id")
        size = self._number("page_count") * self._number("page_size")
        digest = sha256(json.dumps(known).encode()).hexdigest()[:LENGTH]
        return ExperienceFacts(digest=digest, bytes=size, runs=len(known))

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()
