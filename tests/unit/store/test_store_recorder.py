"""The writer of a run folder: what a second run finds there, and what it refuses."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.run_folder import FACTS, PRICED, correct, incorrect, run_config

from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.records import (
    AdviceKey,
    AnyEvent,
    Candidate,
    Extraction,
    ExtractionRule,
    ProblemStarted,
    Prompt,
    Reply,
    RunSources,
    RunStarted,
    SampleKey,
    Usage,
)
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile, read_run_file
from hkbench.store.recorder import Recorder

NAME = "1_ReLU"
KEY = SampleKey(problem=NAME, attempt=1, sample=2)
REPLY = Reply(text="here: \ud800 é", model="m", usage=Usage(input=3), seconds=1.5, tries=2)
SHA = "0" * 64  # what the verdicts of run_folder.py carry


def opened(root: Path, **changes: object) -> Recorder:
    recorder = Recorder(RunPaths(root), lambda _: None)
    try:
        recorder.begin(run_config().model_copy(update=changes), FACTS)
    except BaseException:
        recorder.close()
        raise
    return recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    one = opened(tmp_path / "run")
    yield one
    one.close()


def test_first_begins_and_then_resumes(tmp_path: Path) -> None:
    for resumed in (False, True, True):
        recorder = Recorder(RunPaths(tmp_path), lambda _: None)
        assert recorder.begin(run_config(), FACTS) is resumed
        recorder.close()


def test_a_new_price_takes_the_place_of_the_old_one_and_nothing_else_changes(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    for facts in (FACTS, PRICED.model_copy(update={"started": "later"}), FACTS):
        recorder = Recorder(paths, lambda _: None)
        recorder.begin(run_config(), facts)
        recorder.close()
    assert read_run_file(paths).facts == PRICED


def test_events_are_written_before_they_are_told(tmp_path: Path) -> None:
    told: list[int] = []
    paths = RunPaths(tmp_path)
    recorder = Recorder(paths, lambda _: told.append(len(list(read_events(paths.journal)))))
    recorder.begin(run_config(), FACTS)
    events: list[AnyEvent] = [RunStarted(time=1.0, resumed=False), ProblemStarted(time=2.0, problem=NAME)]
    for event in events:
        recorder.event(event)
    recorder.close()
    assert told == [1, 2]
    assert list(read_events(paths.journal)) == events


def test_a_reply_is_found_again(recorder: Recorder) -> None:
    assert recorder.reply(KEY, "m") is None
    recorder.save_reply(KEY, REPLY)
    found = recorder.reply(KEY, "other")
    assert found is not None
    assert found.text == "here: \\ud800 é"  # UTF-8 has no lone surrogates
    assert found.model_copy(update={"text": REPLY.text}) == REPLY
    assert REPLY.text not in recorder.sample(KEY).exchange.read_text()


@pytest.mark.parametrize("torn", [None, "", '{"model": "m", "us', "[]", '{"model": 7}'])
def test_a_reply_whose_exchange_is_torn_is_still_paid_for(recorder: Recorder, torn: str | None) -> None:
    recorder.save_reply(KEY, REPLY)
    exchange = recorder.sample(KEY).exchange
    if torn is None:
        exchange.unlink()
    else:
        exchange.write_text(torn)
    found = recorder.reply(KEY, "model")
    assert found is not None
    assert found.text == "here: \\ud800 é"
    assert found.usage == Usage()
    assert found.model == "model"


def test_a_verdict_is_found_again_for_the_same_source_only(recorder: Recorder) -> None:
    recorder.save_reply(KEY, REPLY)
    verdict = correct(NAME, 2.0)
    sha256 = verdict.conditions.candidate_sha256
    assert recorder.verdict(KEY, sha256) is None
    recorder.save_verdict(KEY, verdict)
    assert recorder.verdict(KEY, sha256) == verdict
    assert recorder.verdict(KEY, "1" * 64) is None
    assert recorder.verdict(KEY, None) is None


@pytest.mark.parametrize("torn", ["", '{"problem": "1_ReLU", "sta', "{}", "\udcff"])
def test_a_torn_verdict_is_none(recorder: Recorder, torn: str) -> None:
    recorder.save_reply(KEY, REPLY)
    recorder.sample(KEY).result.write_bytes(torn.encode(errors="surrogateescape"))
    assert recorder.verdict(KEY, SHA) is None


def test_a_prompt_is_found_again(recorder: Recorder) -> None:
    assert recorder.prompt(NAME, 1) is None
    recorder.save_prompt(NAME, 1, Prompt(text="é\r\n", template="t", sha256="0"))
    assert recorder.prompt(NAME, 1) == "é\r\n"
    assert recorder.prompt(NAME, 2) is None


def test_best_copies(recorder: Recorder) -> None:
    problem = recorder.paths.problem(NAME)
    recorder.save_prompt(NAME, 1, Prompt(text="p", template="t", sha256="0"))
    recorder.save_reply(KEY, REPLY)
    extraction = Extraction(rule=ExtractionRule.ONLY_BLOCK, source="code")
    recorder.save_extraction(KEY, extraction, Candidate(source="code", sha256=SHA, key=KEY))
    recorder.save_verdict(KEY, incorrect(NAME))
    recorder.copy_best(KEY)
    recorder.close_attempt(KEY, incorrect(NAME))
    assert problem.best_code.read_text() == problem.code(1).read_text() == "code"
    assert problem.best_prompt.read_text() == "p"
    assert (
        problem.best_result.read_bytes() == problem.result(1).read_bytes() == recorder.sample(KEY).result.read_bytes()
    )
    assert problem.response(1).read_bytes() == recorder.sample(KEY).response.read_bytes()


def test_other_settings_are_refused_with_the_differences(tmp_path: Path) -> None:
    before = begun_with_a_reply(tmp_path)
    names = (NAME, *(f"{i}_A_long_name" for i in range(2, 50)))
    with pytest.raises(RunMismatch) as refused:
        opened(tmp_path, samples=1, model="other", problems=names, problem_hashes=("0" * 64,) * 49)
    message = str(refused.value)
    assert "samples 2 -> 1" in message
    assert "model test-model -> other" in message
    assert "problems: adds 2 to 49" in message
    assert "attempts" not in message
    assert f"run_batch.py --resume {tmp_path}" in message
    assert read_run_file(RunPaths(tmp_path)) == before
    opened(tmp_path).close()  # the lock was given back


def begun_with_a_reply(root: Path) -> RunFile:
    recorder = opened(root)
    recorder.save_prompt(NAME, 1, Prompt(text="p", template="t", sha256="0"))
    recorder.save_reply(KEY, REPLY)
    recorder.close()
    return read_run_file(RunPaths(root))


def test_a_run_without_a_reply_makes_way_for_other_settings(tmp_path: Path) -> None:
    recorder = opened(tmp_path)
    recorder.event(RunStarted(time=1.0, resumed=False))
    recorder.save_prompt(NAME, 1, Prompt(text="to the wrong model", template="t", sha256="0"))
    recorder.close()
    recorder = Recorder(RunPaths(tmp_path), lambda _: None)
    assert recorder.begin(run_config().model_copy(update={"model": "right"}), PRICED) is False
    assert recorder.prompt(NAME, 1) is None
    recorder.close()
    found = read_run_file(RunPaths(tmp_path))
    assert (found.config.model, found.facts) == ("right", PRICED)
    assert list(read_events(RunPaths(tmp_path).journal)) == []


def test_an_answer_of_a_judge_is_kept(tmp_path: Path) -> None:
    recorder = opened(tmp_path)
    recorder.save_reply(AdviceKey(problem=NAME, attempt=2, call=1), REPLY)
    recorder.close()
    with pytest.raises(RunMismatch):
        opened(tmp_path, model="other")


def test_problems_samples_and_attempts_may_be_added(tmp_path: Path) -> None:
    before = begun_with_a_reply(tmp_path)
    more = {"problems": (NAME, "2_GELU"), "problem_hashes": ("0" * 64,) * 2}
    weak = FACTS.model_copy(update={"weak": {"2_GELU": ("zeros",)}})
    for changes in (more, more | {"samples": 3}, more | {"samples": 3, "attempts": 4}):
        recorder = Recorder(RunPaths(tmp_path), lambda _: None)
        assert recorder.begin(run_config().model_copy(update=changes), weak) is True
        recorder.close()
        now = read_run_file(RunPaths(tmp_path))
        assert now.config == before.config.model_copy(update=changes)
        assert (now.extended is None) == (changes == more)  # more problems leave the finished ones finished
    with pytest.raises(RunMismatch, match="leaves out 2"):
        opened(tmp_path, samples=3, attempts=4)


def test_the_address_may_change_and_is_recorded(tmp_path: Path) -> None:
    begun_with_a_reply(tmp_path)
    opened(tmp_path, base_url="http://127.0.0.1:9/v1").close()
    assert read_run_file(RunPaths(tmp_path)).config.base_url == "http://127.0.0.1:9/v1"


def test_where_the_inputs_lie_is_kept(tmp_path: Path) -> None:
    sources = RunSources(problems=("/problems/level1",), prompts="/prompts")
    recorder = Recorder(RunPaths(tmp_path), lambda _: None)
    recorder.begin(run_config(), FACTS, sources)
    recorder.close()
    opened(tmp_path, attempts=3).close()
    assert read_run_file(RunPaths(tmp_path)).sources == sources


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """Another process holds the folder; the moment it is gone, however it went, the folder is free."""
    script = (
        "import sys, pathlib; from hkbench.store.recorder import Recorder; from hkbench.store.layout import RunPaths\n"
        "r = Recorder(RunPaths(pathlib.Path(sys.argv[1])), lambda _: None); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="in use by another hkbench"):
            opened(tmp_path)
        holder.kill()
    opened(tmp_path).close()


def test_a_folder_of_something_else_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_runs_is_refused_with_their_names(tmp_path: Path) -> None:
    opened(tmp_path / "one").close()
    with pytest.raises(UsageError, match="holds 1 run in folders of their own"):
        opened(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(InputMissing, match="not a folder"):
        opened(tmp_path / "run")


def test_a_run_killed_in_its_first_moment_can_begin_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.json.123.abcd.tmp").write_text("{")
    opened(tmp_path).close()
    assert RunPaths(tmp_path).run.exists()


def test_a_cut_line_is_ended_and_spoils_no_other(tmp_path: Path) -> None:
    recorder = opened(tmp_path)
    recorder.event(RunStarted(time=1.0, resumed=False))
    recorder.close()
    journal = RunPaths(tmp_path).journal
    with journal.open("a") as file:
        file.write('{"event": "problem_star')
    recorder = opened(tmp_path)
    recorder.event(RunStarted(time=2.0, resumed=True))
    recorder.close()
    found = list(read_events(journal))
    assert [type(item) for item in found] == [RunStarted, CorruptEntry, RunStarted]
    assert isinstance(found[2], RunStarted) and found[2].resumed


def test_what_a_killed_run_was_writing_is_swept_up(tmp_path: Path) -> None:
    recorder = opened(tmp_path)
    recorder.save_reply(KEY, REPLY)
    recorder.close()
    folder = recorder.sample(KEY).root
    (folder / ".result.json.123.abcd.tmp").write_text("{")
    opened(tmp_path).close()
    assert sorted(path.name for path in folder.iterdir()) == ["exchange.json", "response.txt"]


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    """The system takes a part of the line and no more."""
    recorder = opened(tmp_path)
    room = RunPaths(tmp_path).journal.stat().st_size + 20
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="the disk is full"):
            recorder.event(RunStarted(time=1.0, resumed=False))
        with pytest.raises(OSError):
            recorder.save_reply(KEY, Reply(text="x" * 1000, model="m"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        recorder.close()
    assert not recorder.sample(KEY).response.exists()
    recorder = opened(tmp_path)  # there is room again
    recorder.event(RunStarted(time=2.0, resumed=True))
    recorder.close()
    assert [type(item) for item in read_events(RunPaths(tmp_path).journal)] == [CorruptEntry, RunStarted]
