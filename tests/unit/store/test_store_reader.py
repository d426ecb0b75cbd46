from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, run_config, sample_run

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.records import Reply, SampleKey, Usage
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run


def test_a_whole_run_in_plan_order(tmp_path: Path) -> None:
    run = read_run(sample_run(tmp_path).paths)
    assert [problem.name for problem in run.problems] == list(run.config.problems)
    assert run.corrupt == ()
    second = run.problems[1]
    assert [[s.key.sample for s in attempt] for attempt in second.attempts] == [[1, 2], [1, 2]]
    assert second.attempts[1][0].solved
    assert second.attempts[1][0].usage == Usage(input=100, output=50, reasoning=20)
    assert second.attempts[1][0].generation_seconds == 2.5
    assert second.attempts[1][0].evaluation_seconds == 4.0


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_without_a_run_is_missing_input(tmp_path: Path, exists: bool) -> None:
    root = tmp_path / "r"
    if exists:
        root.mkdir()
    with pytest.raises(InputMissing, match="holds no run"):
        read_run(RunPaths(root))


@pytest.mark.parametrize("name", ["../x", "/etc", "..", ".", "", "a/b", "a\0b"])
def test_a_problem_is_a_folder_in_its_run(tmp_path: Path, name: str) -> None:
    """Whoever edits run.json must not have reports written elsewhere."""
    sample_run(tmp_path)
    paths = RunPaths(tmp_path)
    run = json.loads(paths.run.read_text())
    run["config"]["problems"][0] = name
    paths.run.write_text(json.dumps(run))
    with pytest.raises(ConfigurationError, match=r"run\.json: config\.problems\.0: .*not the name of a folder"):
        read_run(paths)


def test_a_sample_elsewhere_is_corrupt(tmp_path: Path) -> None:
    sample_run(tmp_path)
    paths = RunPaths(tmp_path)
    lines = paths.journal.read_text().splitlines()
    line = next(line for line in lines if '"key"' in line)
    event = json.loads(line)
    event["key"]["problem"] = "../x"
    paths.journal.write_text("\n".join([*lines, json.dumps(event)]) + "\n")
    assert any("not the name of a folder" in str(entry) for entry in read_run(paths).corrupt)


@pytest.mark.parametrize("text", ["", "{}", '{"config": {}, "facts": {}}', "\x00"])
def test_a_corrupt_run_file_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    RunPaths(tmp_path).run.write_text(text)
    with pytest.raises(ConfigurationError, match=r"run\.json"):
        read_run(RunPaths(tmp_path))


def test_a_run_without_a_journal(tmp_path: Path) -> None:
    run = read_run(RunFolder(tmp_path).paths)
    assert run.problems[0].samples == ()
    assert not run.problems[0].started
    assert run.state.seconds is None


def test_a_corrupt_verdict_is_reported_and_not_judged(tmp_path: Path) -> None:
    folder = sample_run(tmp_path)
    result = folder.paths.problem("1_ReLU").sample(1, 1).result
    result.write_text(result.read_text()[:40])
    run = read_run(folder.paths)
    assert [entry.file for entry in run.corrupt] == ["1_ReLU/attempt_1/sample_1/result.json"]
    assert run.problems[0].attempts[0][0].status is None


def test_a_speedup_that_is_no_number_is_corrupt(tmp_path: Path) -> None:
    folder = sample_run(tmp_path)
    result = folder.paths.problem("1_ReLU").sample(1, 1).result
    data = json.loads(result.read_text())
    data["speedup"]["value"] = "Infinity"
    result.write_text(json.dumps(data))
    run = read_run(folder.paths)
    assert "finite" in run.corrupt[0].message
    assert run.problems[0].attempts[0][0].status is None


def test_a_verdict_whose_file_is_gone_is_reported(tmp_path: Path) -> None:
    folder = sample_run(tmp_path)
    folder.paths.problem("2_Sum").sample(1, 2).result.unlink()
    (entry,) = read_run(folder.paths).corrupt
    assert entry.file == "2_Sum/attempt_1/sample_2/result.json"
    assert "missing" in entry.message


def test_files_that_the_journal_never_heard_of_are_found(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    key = SampleKey(problem="1_ReLU", attempt=2, sample=1)
    reply = Reply(text="x", model="m", usage=Usage(output=7), seconds=1.0, tries=3)
    folder.store_exchange(key, reply)
    sample = folder.paths.problem("1_ReLU").sample(2, 1)
    sample.result.write_text(correct("1_ReLU", 2.0).model_dump_json())
    (tmp_path / "1_ReLU" / "attempt_x").mkdir()
    run = read_run(folder.paths)
    first, second = run.problems[0].attempts
    assert first == ()
    assert second[0].usage == Usage(output=7)
    assert second[0].tries == 3
    assert second[0].status is not None
    assert run.problems[0].started


@pytest.mark.parametrize("text", ["[]", "{", '{"model": 3}', "null"])
def test_a_corrupt_exchange_is_reported(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    sample = folder.paths.problem("1_ReLU").sample(1, 1)
    sample.root.mkdir(parents=True)
    sample.exchange.write_text(text)
    (entry,) = read_run(folder.paths).corrupt
    assert entry.file.endswith("exchange.json")


def test_events_of_a_problem_outside_the_plan_are_reported(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start()
    folder.begin("99_Other")
    run = read_run(folder.paths)
    assert "99_Other" in run.corrupt[0].message
    assert [problem.name for problem in run.problems] == ["1_ReLU"]


def test_the_time_between_a_crash_and_the_resume_is_not_counted(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, run_config(samples=1))
    folder.start()
    folder.begin("1_ReLU")
    folder.asked("1_ReLU", 1, 1)  # killed here: 2 s after the start, 1 s into the problem
    folder.tick(3600)
    folder.start(resumed=True)
    folder.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))  # five events
    folder.end("1_ReLU", solved=True)
    folder.close()
    run = read_run(folder.paths)
    assert run.state.sessions == 2
    assert run.state.seconds == pytest.approx(2 + 7)
    assert run.problems[0].seconds == pytest.approx(1 + 5)
    assert run.state.closed is not None


def test_a_clock_set_back_takes_no_time_away(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start()
    folder.begin("1_ReLU")
    folder.now -= 5000
    folder.close()
    assert read_run(folder.paths).state.seconds == pytest.approx(1.0)


def test_a_last_line_torn_by_a_crash_does_not_stop_the_reader(tmp_path: Path) -> None:
    folder = sample_run(tmp_path)
    data = folder.paths.journal.read_bytes()
    folder.paths.journal.write_bytes(data[:-10])
    run = read_run(folder.paths)
    assert run.state.closed is None
    assert "cut in the middle" in run.corrupt[0].message


def test_a_reply_stored_without_its_exchange_is_an_answer_of_unknown_usage(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    sample = folder.paths.problem("1_ReLU").sample(1, 1)
    sample.root.mkdir(parents=True)
    sample.response.write_text("paid for")
    found = read_run(folder.paths).problems[0].attempts[0][0]
    assert found.answered
    assert found.replayed is False
    assert found.usage == Usage()


def test_a_torn_line_that_a_resume_ended_costs_no_other_line(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.start()
    folder.begin("1_ReLU")
    data = folder.paths.journal.read_bytes()
    folder.paths.journal.write_bytes(data[:-15] + b"\n")
    folder.start(resumed=True)
    folder.close()
    run = read_run(folder.paths)
    assert [entry.line for entry in run.corrupt] == [2]
    assert run.state.sessions == 2
    assert run.state.closed is not None
