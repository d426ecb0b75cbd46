from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folder import RunFolder, sample_run

from hkbench.records import ProblemStarted, RunStarted, VerdictReached
from hkbench.store.events import CorruptEntry, JournalTail, read_events, read_history


def test_every_event_of_a_run_comes_back(tmp_path: Path) -> None:
    run = sample_run(tmp_path / "r")
    lines = run.paths.journal.read_text().splitlines()
    events = list(read_events(run.paths.journal))
    assert [event.model_dump_json() for event in events if not isinstance(event, CorruptEntry)] == lines


def test_a_missing_journal_has_no_events(tmp_path: Path) -> None:
    assert list(read_events(tmp_path / "journal.jsonl")) == []


def test_a_torn_last_line_is_named_as_such(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.begin("1_ReLU")
    data = run.paths.journal.read_bytes()
    run.paths.journal.write_bytes(data[:-20])
    first, torn = read_events(run.paths.journal)
    assert isinstance(first, RunStarted)
    assert torn == CorruptEntry("journal.jsonl", 2, "the last line was cut in the middle of a write")


def test_a_whole_last_line_without_its_newline_is_an_event(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.paths.journal.write_bytes(run.paths.journal.read_bytes()[:-1])
    (event,) = read_events(run.paths.journal)
    assert isinstance(event, RunStarted)


def test_corrupt_lines_are_numbered_and_passed_over(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    with run.paths.journal.open("ab") as file:
        file.write(b'{"time": 1, "event": "from_the_future"}\n')
        file.write(b"\n")
        file.write(b"\xff\x00\xfe junk\n")
        file.write(b'{"time": "NaN", "event": "run_started", "resumed": false}\n')
        file.write(b"[1, 2]\n")
    run.begin("1_ReLU")
    found = list(read_events(run.paths.journal))
    assert [item.line for item in found if isinstance(item, CorruptEntry)] == [2, 4, 5, 6]
    assert read_history(run.paths.journal) == [item for item in found if not isinstance(item, CorruptEntry)]
    assert isinstance(found[-1], ProblemStarted)


def test_tail_gives_only_what_is_new(tmp_path: Path) -> None:
    tail = JournalTail(tmp_path / "journal.jsonl")
    assert tail.poll().events == ()
    run = RunFolder(tmp_path)
    run.start()
    assert [type(event) for event in tail.poll().events] == [RunStarted]
    assert tail.poll().events == ()
    run.begin("1_ReLU")
    news = tail.poll()
    assert [type(event) for event in news.events] == [ProblemStarted]
    assert not news.restarted


@pytest.mark.parametrize("most", [1, 100, 300, 1 << 20])
def test_tail_in_pieces_gives_every_event_once(tmp_path: Path, most: int) -> None:
    run = sample_run(tmp_path / "r")
    tail, found = JournalTail(run.paths.journal), []
    while (news := tail.poll(most)).events:
        assert not news.corrupt and not news.restarted
        found += [event.model_dump_json() for event in news.events]
    assert found == run.paths.journal.read_text().splitlines()


def test_tail_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    whole = run.paths.journal.read_bytes()
    tail = JournalTail(run.paths.journal)
    run.paths.journal.write_bytes(whole[:30])
    news = tail.poll()
    assert (news.events, news.corrupt) == ((), ())
    with run.paths.journal.open("ab") as file:
        file.write(whole[30:])
    assert len(tail.poll().events) == 1


def test_tail_numbers_corrupt_lines_across_polls(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    tail = JournalTail(run.paths.journal)
    run.start()
    tail.poll()
    with run.paths.journal.open("ab") as file:
        file.write(b"junk\rjunk\n")
    (entry,) = tail.poll().corrupt
    assert entry.line == 2


def test_tail_starts_anew_when_the_journal_is_cut(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    tail = JournalTail(run.paths.journal)
    run.start()
    first = run.paths.journal.read_bytes()
    run.begin("1_ReLU")
    assert len(tail.poll().events) == 2
    with run.paths.journal.open("r+b") as file:
        file.truncate(len(first))
    news = tail.poll()
    assert news.restarted
    assert [type(event) for event in news.events] == [RunStarted]


def test_tail_survives_the_journal_vanishing(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    tail = JournalTail(run.paths.journal)
    run.start()
    tail.poll()
    run.paths.journal.unlink()
    gone = tail.poll()
    assert gone.restarted
    assert gone.events == ()
    assert not tail.poll().restarted
    run.start()
    back = tail.poll()
    assert len(back.events) == 1
    assert not back.restarted  # already told


def test_tail_notices_another_file_of_the_same_name(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    tail = JournalTail(run.paths.journal)
    run.start()
    tail.poll()
    run.paths.journal.rename(tmp_path / "old.jsonl")
    run.start()
    run.begin("1_ReLU")
    news = tail.poll()
    assert news.restarted
    assert len(news.events) == 2


def test_a_verdict_of_an_older_run_has_no_turns(tmp_path: Path) -> None:
    key = {"problem": "1_ReLU", "attempt": 1, "sample": 1}
    line = {"event": "verdict_reached", "time": 1.0, "key": key, "status": "slow", "kind": None, "stage": None,
            "speedup": 0.5, "seconds": 2.0}  # fmt: skip
    (tmp_path / "journal.jsonl").write_text(json.dumps(line) + "\n")
    (event,) = read_events(tmp_path / "journal.jsonl")
    assert isinstance(event, VerdictReached)
    assert event.turns is None
