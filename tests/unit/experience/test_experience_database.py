"""The file: whole runs or nothing, one writer at a time, versions, and other people's files."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from support.experience_runs import MENDED, judged, mended_run, traits
from support.run_folder import correct

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.experience import schema
from hkbench.experience.database import Added, Database
from hkbench.experience.extract import extract
from hkbench.experience.feed import add_run, check
from hkbench.experience.rows import TABLES, RunRows
from hkbench.store.layout import RunPaths

NAME = "1_ReLU"
WRITERS, RUNS = 8, 3
TRAITS = {NAME: traits()}


def opened(path: Path) -> Database:
    return Database(path, create=True)


def test_a_run_is_kept_once_however_often_and_under_whatever_name_it_is_added(tmp_path: Path) -> None:
    run = mended_run(tmp_path / "run")
    with opened(tmp_path / "e.db") as database:
        assert [add_run(database, run.root, TRAITS) for _ in range(2)] == [Added.NEW, Added.SAME]
        before = database.facts()
        run.root.rename(tmp_path / "moved")
        assert add_run(database, tmp_path / "moved", TRAITS) is Added.REPLACED
        assert database.rows("SELECT name FROM run") == [("moved",)]
        assert (database.facts().runs, before.runs) == (1, 1)


def test_a_run_that_grew_takes_the_place_of_what_was_known_of_it(tmp_path: Path) -> None:
    run = mended_run(tmp_path / "run", outcomes=(False,))
    with opened(tmp_path / "e.db") as database:
        add_run(database, run.root, TRAITS)
        digest = database.facts().digest
        run.start(resumed=True)
        judged(run, NAME, 2, 2, correct(NAME, 2.0), MENDED)
        assert add_run(database, run.root, TRAITS) is Added.REPLACED
        assert database.rows("SELECT COUNT(*) FROM sample") == [(3,)]
        assert database.rows("SELECT SUM(helped), SUM(tried) FROM remedy WHERE kind = 'advice'") == [(1, 2)]
        assert database.facts().digest != digest


def test_what_it_holds_is_what_the_folders_say(tmp_path: Path) -> None:
    runs = [mended_run(tmp_path / f"run{n}", at=n) for n in range(3)]
    named = [(run.root, TRAITS) for run in runs]
    with opened(tmp_path / "e.db") as database:
        for run in runs[:2]:
            add_run(database, run.root, TRAITS)
        assert check(database, named[:2]).proved
        assert len(check(database, named[:1]).unnamed) == 1
        assert check(database, named).missing == (str(runs[2].root),)
        database.connection.execute("UPDATE remedy SET helped = 9 WHERE run = ?", (database.run_ids()[0],))
        found = check(database, named[:2])
        assert not found.proved and len(found.differ) == len(found.same) == 1


def test_a_verdict_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    run = mended_run(tmp_path / "run", outcomes=(True, True))
    run.paths.problem(NAME).sample(2, 1).result.write_text("{")
    assert sum(TABLES[type(row)] == "sample" for row in extract(run.paths, TRAITS)) == 2


def test_every_column_is_that_of_its_table(tmp_path: Path) -> None:
    with opened(tmp_path / "e.db") as database:
        for kind, table in TABLES.items():
            columns = [name for (name,) in database.rows("SELECT name FROM pragma_table_info(?)", table)]
            assert list(kind._fields) == columns
            assert database.rows("SELECT strict FROM pragma_table_list WHERE name = ?", table) == [(1,)]


def test_a_file_of_an_older_version_is_brought_to_the_present_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e.db"
    with opened(path) as database:
        add_run(database, mended_run(tmp_path / "run").root, TRAITS)
    more = (*schema.MIGRATIONS, "ALTER TABLE run ADD COLUMN place TEXT")
    monkeypatch.setattr("hkbench.experience.database.MIGRATIONS", more)
    monkeypatch.setattr("hkbench.experience.database.VERSION", len(more))
    with Database(path) as database:
        assert database.rows("SELECT place, name FROM run") == [(None, "run")]
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="newer"):
        Database(path)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.db"
    opened(path).close()
    more = (*schema.MIGRATIONS, "ALTER TABLE run ADD COLUMN place TEXT; ALTER TABLE nothing ADD COLUMN x TEXT")
    monkeypatch.setattr("hkbench.experience.database.MIGRATIONS", more)
    monkeypatch.setattr("hkbench.experience.database.VERSION", len(more))
    with pytest.raises(ConfigurationError):
        Database(path)
    monkeypatch.undo()
    with Database(path) as database:
        assert ("place",) not in database.rows("SELECT name FROM pragma_table_info('run')")


def test_what_is_not_ours_is_refused_and_stays(tmp_path: Path) -> None:
    with pytest.raises(InputMissing):
        Database(tmp_path / "missing.db")
    with pytest.raises(InputMissing):
        opened(tmp_path / "no" / "folder.db")
    text, foreign = tmp_path / "text.db", tmp_path / "foreign.db"
    text.write_text("not a database, but long enough to look at" * 100)
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = text.read_bytes()
    for path in (text, foreign):
        with pytest.raises(ConfigurationError):
            opened(path)
    assert text.read_bytes() == before
    with sqlite3.connect(foreign) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    other.close()


def _write(path: Path, rows: list[RunRows], begun: Barrier) -> None:
    begun.wait()
    with Database(path, create=True) as database:
        for run in rows:
            database.add(run)


def _numbered(run: RunRows, number: int) -> RunRows:
    name = f"{number:016}"
    parts = tuple(row._replace(run=name) for row in run.parts)
    return RunRows(run.run._replace(id=name, digest=name), parts)


def test_eight_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    one = extract(RunPaths(mended_run(tmp_path / "run").root), TRAITS)
    context = multiprocessing.get_context("fork")
    begun = context.Barrier(WRITERS)
    path = tmp_path / "e.db"
    shares = [[_numbered(one, writer * RUNS + n) for n in range(RUNS)] for writer in range(WRITERS)]
    writers = [context.Process(target=_write, args=(path, share, begun)) for share in shares]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    with Database(path) as database:
        assert len(database.run_ids()) == WRITERS * RUNS
        assert database.rows("PRAGMA integrity_check") == [("ok",)]


def _write_for_ever(path: Path, one: RunRows, told: int) -> None:
    with Database(path, create=True) as database:
        for number in range(100_000):
            database.add(_numbered(one, number))
            os.write(told, b"x")  # committed


def test_kill_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    one = extract(RunPaths(mended_run(tmp_path / "run").root), TRAITS)
    path = tmp_path / "e.db"
    told, tell = os.pipe()
    writer = multiprocessing.get_context("fork").Process(target=_write_for_ever, args=(path, one, tell))
    writer.start()
    os.close(tell)
    committed = len(os.read(told, 1))
    time.sleep(0.1)
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    while more := os.read(told, 65536):
        committed += len(more)
    os.close(told)
    with Database(path) as database:
        kept = database.run_ids()
        assert len(kept) >= committed > 0
        for name in kept:
            assert len(database.content(name)) == len(one.parts) + 1, "a run is there as a whole"
        assert database.rows("PRAGMA integrity_check") == [("ok",)]
