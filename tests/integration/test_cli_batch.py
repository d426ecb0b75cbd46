"""run_batch.py and the scripts around it as a user runs them, with recorded replies."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
from support import doors
from support.model_server import ModelServer, Scripted, environment, script as scripted

from hkbench.records import (
    AttemptClosed,
    FailureKind,
    GenerationStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunStarted,
    Status,
    Verdict,
)
from hkbench.report.write import SCHEMA
from hkbench.store.layout import RunPaths

Done = subprocess.CompletedProcess[str]
FAST, MENDED, LOST = "1_Fast", "2_Mended", "3_Lost"
WORDS = "the seventh gear is missing"


@dataclass(frozen=True)
class Bench:
    """Three problems, and replies for two attempts of two samples."""

    problems: Path
    replies: Path

    def arguments(self, results: Path, *more: object) -> tuple[object, ...]:
        fixed = (1, 3, "--problems", self.problems, "--replay", self.replies, "--results", results, "--device", "cpu")
        return (*fixed, "--attempts", 2, *doors.QUICK, *more)

    def run(self, results: Path, *more: object) -> Done:
        return doors.call("run_batch", *self.arguments(results, *more))


def make_bench(root: Path) -> Bench:
    problems, replies = root / "problems", root / "replies"
    for addend, name in enumerate((FAST, MENDED, LOST), start=1):
        doors.problem(problems, name, addend)
    doors.reply(replies, FAST, 1, 1, doors.fenced(doors.wrong(1)))
    doors.reply(replies, FAST, 1, 2, doors.fenced(doors.fast(1)))
    doors.reply(replies, MENDED, 1, 1, doors.fenced(doors.raising(WORDS)))
    doors.reply(replies, MENDED, 1, 2, "I cannot do that.")
    doors.reply(replies, MENDED, 2, 1, doors.fenced(doors.fast(2)))
    doors.reply(replies, MENDED, 2, 2, doors.fenced(doors.slow(2)))
    doors.reply(replies, LOST, 1, 1, doors.fenced("class ModelNew(:\n"))
    doors.reply(replies, LOST, 1, 2, doors.fenced(doors.raising("no")))
    doors.reply(replies, LOST, 2, 1, doors.fenced(doors.wrong(3)))
    doors.reply(replies, LOST, 2, 2, "<think>It is hard.</think>")
    return Bench(problems, replies)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


@dataclass(frozen=True)
class Story:
    """A run with one reply missing, and the same command again once it was there."""

    bench: Bench
    results: Path
    first: Done
    first_started: int
    first_verdicts: dict[str, str]
    second: Done


def verdict_files(results: Path) -> dict[str, str]:
    found = sorted(results.glob("*/attempt_*/sample_*/result.json"))
    return {str(path.relative_to(results)): path.read_text() for path in found}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("story")
    bench, results = make_bench(root), root / "results"
    missing = bench.replies / MENDED / "attempt_2" / "sample_2" / "response.txt"
    text = missing.read_text()
    missing.unlink()
    first = bench.run(results)
    started = sum(isinstance(event, GenerationStarted) for event in doors.events(results))
    verdicts = verdict_files(results)
    missing.write_text(text)
    return Story(bench, results, first, started, verdicts, bench.run(results))


def verdict(results: Path, problem: str, attempt: int, sample: int) -> Verdict:
    return Verdict.model_validate_json(RunPaths(results).problem(problem).sample(attempt, sample).result.read_text())


def test_a_missing_reply_ends_its_problem_only(story: Story) -> None:
    assert story.first.returncode == 66
    assert f"{MENDED} is not finished" in story.first.stderr
    assert "attempt 2, sample 2" in story.first.stderr
    assert "the same command resumes the run" in story.first.stderr
    judged = Counter(name.split("/")[0] for name in story.first_verdicts)
    assert judged == {FAST: 2, MENDED: 2, LOST: 4}


def test_the_same_command_finishes_and_repeats_nothing(story: Story) -> None:
    assert story.second.returncode == 0, story.second.stderr
    now = verdict_files(story.results)
    assert {name: now[name] for name in story.first_verdicts} == story.first_verdicts
    events = doors.events(story.results)
    asked = Counter(
        (event.key.problem, event.key.attempt, event.key.sample)
        for event in events
        if isinstance(event, GenerationStarted)
    )
    assert asked.pop((MENDED, 2, 2)) == 2  # the one that had failed
    assert set(asked.values()) == {1}
    assert sum(asked.values()) == 9 == story.first_started - 1
    shown = story.second.stdout.splitlines()  # the plain display
    assert shown[0].endswith("starting the device")
    assert shown[1].endswith(" the run resumes")
    ended = [line.partition(": ")[0] for line in shown[-6:]]
    assert ended[0] == "result" and ended[-3:] == ["spent", "time", "report"]
    assert f"{MENDED}: solved" in story.second.stdout
    assert not [line for line in shown if f" {LOST}" in line and not line.startswith("best: ")], (
        "it was finished before, and is left alone"
    )
    assert not [line for line in shown if "stage" in line]
    assert [event.resumed for event in events if isinstance(event, RunStarted)] == [False, True]
    assert [event.complete for event in events if isinstance(event, RunClosed)] == [False, True]


def test_the_verdicts_are_what_the_replies_deserve(story: Story) -> None:
    results = story.results
    assert verdict(results, FAST, 1, 2).status is Status.FAST
    assert verdict(results, MENDED, 2, 1).status is Status.FAST
    assert verdict(results, MENDED, 2, 2).status is Status.SLOW
    kinds = {
        (FAST, 1, 1): FailureKind.WRONG_VALUES,
        (MENDED, 1, 1): FailureKind.RUNTIME_ERROR,
        (MENDED, 1, 2): FailureKind.NO_CODE,
        (LOST, 1, 1): FailureKind.SYNTAX_ERROR,
        (LOST, 1, 2): FailureKind.RUNTIME_ERROR,
        (LOST, 2, 1): FailureKind.WRONG_VALUES,
        (LOST, 2, 2): FailureKind.NO_CODE,
    }
    found = {key: verdict(results, *key).failure for key in kinds}
    assert {key: failure.kind if failure else None for key, failure in found.items()} == kinds


def test_the_tree_is_exactly_the_layout(story: Story) -> None:
    paths = RunPaths(story.results)
    expected = {
        paths.run, paths.journal, paths.log, paths.lock, paths.summary_json, paths.summary_csv, paths.samples,
        paths.report_json, paths.report_text, paths.report_page, paths.usage,
    }  # fmt: skip
    without_code = {(MENDED, 1, 2), (LOST, 2, 2)}
    for name, attempts in ((FAST, 1), (MENDED, 2), (LOST, 2)):
        problem = paths.problem(name)
        expected |= {problem.reference, problem.best_prompt, problem.best_code, problem.best_result}
        for attempt in range(1, attempts + 1):
            expected |= {problem.prompt(attempt), problem.response(attempt), problem.code(attempt)}
            expected.add(problem.result(attempt))
            for number in (1, 2):
                sample = problem.sample(attempt, number)
                expected |= {sample.response, sample.exchange, sample.extraction, sample.result}
                if (name, attempt, number) not in without_code:
                    expected.add(sample.code)
    found = {path for path in story.results.rglob("*") if not path.is_dir()}
    assert found == expected
    assert not list(story.results.rglob("build"))


def test_the_best_stands_where_people_look_first(story: Story) -> None:
    problem = RunPaths(story.results).problem(MENDED)
    best = problem.sample(2, 1)
    assert problem.best_code.read_text() == problem.code(2).read_text() == best.code.read_text() == doors.fast(2)
    assert problem.best_result.read_text() == problem.result(2).read_text() == best.result.read_text()
    assert problem.response(2).read_text() == best.response.read_text()
    assert problem.best_prompt.read_text() == problem.prompt(2).read_text()
    assert problem.code(1).read_text() == problem.sample(1, 1).code.read_text()
    # LOST: of a failure to parse and one while running, the one that came further goes on
    lost = RunPaths(story.results).problem(LOST)
    assert lost.code(1).read_text() == lost.sample(1, 2).code.read_text()
    assert lost.best_code.read_text() == lost.sample(2, 1).code.read_text()


def test_the_second_prompt_reflects_on_the_first_attempt(story: Story) -> None:
    problem = RunPaths(story.results).problem(MENDED)
    first, second = problem.prompt(1).read_text(), problem.prompt(2).read_text()
    assert WORDS not in first
    assert WORDS in second
    hint = json.loads((doors.ROOT / "prompts" / "config.json").read_text())["reflection_hints"]["runtime_error"][0]
    assert hint not in first
    assert hint in second
    assert f"raise RuntimeError({WORDS!r})" in second.replace("&#39;", "'")  # the parent's code
    rendered = [event for event in doors.events(story.results) if isinstance(event, PromptRendered)]
    assert Counter(event.problem for event in rendered) == {FAST: 1, MENDED: 2, LOST: 2}


def test_the_reports_agree_with_the_verdicts(story: Story) -> None:
    paths = RunPaths(story.results)
    report = json.loads(paths.report_json.read_text())
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    by_name = {problem["problem"]: problem for problem in report["problems"]}
    assert {name: problem["solved"] for name, problem in by_name.items()} == {FAST: True, MENDED: True, LOST: False}
    summary = json.loads(paths.summary_json.read_text())
    with paths.summary_csv.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["problem"] for row in rows] == [FAST, MENDED, LOST, "all"]
    assert [row["problem"] for row in summary["problems"]] == [FAST, MENDED, LOST]
    for path in [*summary["files"].values(), *summary["problem_files"][FAST].values()]:
        assert (story.results / path).exists()
    with paths.samples.open(newline="") as file:
        samples = list(csv.DictReader(file))
    keys = [(one["problem"], one["attempt"], one["sample"]) for one in samples]
    assert keys[:2] == [(FAST, "1", "1"), (FAST, "1", "2")] and len(keys) == 10
    for one in samples:
        its = verdict(story.results, one["problem"], int(one["attempt"]), int(one["sample"]))
        assert one["status"] == its.status
        assert (one["code"] == "") is (one["kind"] == "no_code")
        assert one["code_sha256"] == (its.conditions.candidate_sha256 or "")
    speedup = verdict(story.results, MENDED, 2, 1).speedup
    assert speedup is not None
    assert str(speedup.value) in rows[1].values()
    assert rows[2]["solved"] == "false"
    text = paths.report_text.read_text()
    assert all(name in text for name in (FAST, MENDED, LOST))
    assert "report:" in story.second.stdout


def test_a_finished_run_run_again_changes_no_result(story: Story) -> None:
    paths = RunPaths(story.results)
    before = verdict_files(story.results)
    asked = sum(isinstance(event, GenerationStarted) for event in doors.events(story.results))
    done = story.bench.run(story.results, "--display", "json")
    assert done.returncode == 0
    assert verdict_files(story.results) == before
    events = doors.events(story.results)
    assert sum(isinstance(event, GenerationStarted) for event in events) == asked
    shown = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    whole = [json.loads(line) for line in paths.journal.read_text().splitlines()]
    assert shown == whole[-len(shown) :]
    assert shown[0]["event"] == "run_started" and shown[-1]["event"] == "run_closed"


def test_other_settings_are_refused_with_the_difference(story: Story) -> None:
    before = RunPaths(story.results).journal.read_bytes()
    done = story.bench.run(story.results, "--exhaust", "--temperature", "0.5")
    assert done.returncode == 64
    assert "exhaust false -> true" in done.stderr
    assert "temperature not set -> 0.5" in done.stderr
    assert "attempts" not in done.stderr
    assert RunPaths(story.results).journal.read_bytes() == before


def test_generate_report_writes_the_same_again(story: Story) -> None:
    paths = RunPaths(story.results)
    paths.summary_csv.unlink()
    before = paths.report_json.read_bytes()
    done = doors.call("generate_report", story.results, "--definitions")
    assert done.returncode == 0
    assert done.stdout == f"{paths.report_text.read_text()}\nreport for a browser: {paths.report_page}\n"
    assert paths.report_json.read_bytes() == before
    assert paths.summary_csv.exists()


def test_monitor_shows_a_frame(story: Story) -> None:
    done = doors.call("monitor", story.results, "--once")
    assert done.returncode == 0
    assert all(name in done.stdout for name in (FAST, MENDED, LOST))


def test_readers_of_a_folder_without_a_run_are_66(tmp_path: Path) -> None:
    for script, more in (("generate_report", ()), ("monitor", ("--once",))):
        done = doors.call(script, tmp_path / "nowhere", *more)
        assert done.returncode == 66
        assert "holds no run" in done.stderr


def test_a_run_serves_as_the_recording_of_another(story: Story, tmp_path: Path) -> None:
    """Also --match and --samples, and a log on standard output."""
    results = tmp_path / "results"
    arguments = list(story.bench.arguments(results, "--match", "Fast$", "--samples", "1", "--display", "log"))
    arguments[arguments.index("--replay") + 1] = story.results
    done = doors.call("run_batch", *arguments, "--exhaust", "--attempts", "1")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in results.iterdir() if path.is_dir()] == [FAST]
    assert verdict(results, FAST, 1, 1).status is Status.INCORRECT  # sample 1 of that run
    lines = [line for line in done.stdout.splitlines() if "model asked" in line]
    assert len(lines) == 1 and lines[0].startswith("20")
    assert lines[0] in RunPaths(results).log.read_text()


def test_exhaust_goes_on_after_a_success(bench: Bench, tmp_path: Path) -> None:
    doors.reply(bench.replies, FAST, 2, 1, doors.fenced(doors.slow(1)))
    doors.reply(bench.replies, FAST, 2, 2, doors.fenced(doors.wrong(1)))
    results = tmp_path / "results"
    done = bench.run(results, "--exhaust", "--limit", "1", "--display", "plain")
    assert done.returncode == 0, done.stderr
    closed = [event for event in doors.events(results) if isinstance(event, AttemptClosed)]
    assert [(event.attempt, event.status) for event in closed] == [(1, Status.FAST), (2, Status.SLOW)]
    best = RunPaths(results).problem(FAST).best_code
    assert best.read_text() == doors.fast(1)  # the second attempt was no better
    assert "1_Fast: solved" in done.stdout


def dry(bench: Bench, *more: object, env: dict[str, str] | None = None) -> Done:
    words = (1, 3, "--problems", bench.problems, "--device", "cpu", "--dry-run", *more)
    return planned(*words, env=env)


def planned(*words: object, env: dict[str, str] | None = None) -> Done:
    """A dry run with a model service, which is asked for its list of models only."""
    with ModelServer(scripted(Scripted())) as server:
        done = doors.call("run_batch", *words, env=environment(server) | (env or {}))
        assert server.count == 0
    return done


def test_dry_run_finds_the_device_by_itself(bench: Bench) -> None:
    done = planned(1, 1, "--problems", bench.problems, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "1 problem, backend " in done.stdout


def test_dry_run_prints_the_plan_and_spends_nothing(bench: Bench, tmp_path: Path) -> None:
    done = dry(bench, "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert f"{LOST}  " in done.stdout.replace(LOST.ljust(len(MENDED)), LOST)
    assert ".txt" in done.stdout
    assert "model: test-model" in done.stdout and "service: http://127.0.0.1" in done.stdout
    assert f"folder: new: {tmp_path / 'results'}" in done.stdout
    assert "prompts: about " in done.stdout and "cost: not known" in done.stdout
    assert "3 problems, backend cpp, strategy reflect, 3 samples, up to 3 attempts: 9 to 27 model calls" in done.stdout
    assert not (tmp_path / "results").exists()


def test_the_number_of_samples(bench: Bench) -> None:
    """The option, else NUM_SAMPLES, else what the recording has, else 3."""
    replay = ("--limit", "1", "--replay", bench.replies)
    assert "1 problem, backend cpp, strategy reflect, 2 samples" in dry(bench, *replay).stdout
    assert ", 5 samples" in dry(bench, *replay, env={"NUM_SAMPLES": "5"}).stdout
    assert ", 4 samples" in dry(bench, "--limit", "1", "--samples", "4", env={"NUM_SAMPLES": "5"}).stdout
    done = dry(bench, env={"NUM_SAMPLES": "1.5"})
    assert done.returncode == 64
    assert "NUM_SAMPLES" in done.stderr


def test_the_choice_of_problems(bench: Bench) -> None:
    words = (1, 5, "--problems", bench.problems, "--device", "cpu", "--dry-run", "--match", "st$")
    chosen = planned(*words, "--attempts", "2", "--exhaust").stdout
    assert chosen.startswith(FAST)
    assert MENDED not in chosen
    assert "no problem has number 4, 5" in chosen
    assert "2 problems, backend cpp, strategy reflect, 3 samples, up to 2 attempts: 12 to 12 model calls" in chosen
    limited = dry(bench, "--match", "st$", "--limit", "1").stdout
    assert "1 problem, " in limited and LOST not in limited
    for bad in (["--match", "("], ["--match", "Nothing"]):
        assert dry(bench, *bad).returncode == 64
    assert planned(7, 9, "--problems", bench.problems, "--device", "cpu", "--dry-run").returncode == 66


def test_without_key_or_model_nothing_is_made(bench: Bench, tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = (1, 3, "--problems", bench.problems, "--device", "cpu", "--results", results)
    done = doors.call("run_batch", *words, "--model", "m")
    assert done.returncode == 64
    assert "LLM_GATEWAY_KEY" in done.stderr
    done = doors.call("run_batch", *words, env={"LLM_GATEWAY_KEY": "sk-test-0123456789"})
    assert done.returncode == 64
    assert "--model" in done.stderr
    assert "sk-test-0123456789" not in done.stderr
    done = doors.call("run_batch", *words, "--replay", tmp_path / "nowhere")
    assert done.returncode == 66
    assert not results.exists()


def test_a_folder_that_is_no_run_is_left_alone(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("\\documentclass{book}")
    done = bench.run(other)
    assert done.returncode == 64
    assert "thesis.tex" in done.stderr
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_a_second_batch_in_the_same_folder_is_refused(bench: Bench, tmp_path: Path) -> None:
    results = tmp_path / "results"
    doors.reply(bench.replies, FAST, 1, 2, doors.fenced(doors.candidate("import time; time.sleep(100)")))
    words = bench.arguments(results, "--limit", "1", "--run-timeout", "60")
    process = doors.start("run_batch", *words)
    try:
        doors.wait_for(RunPaths(results).journal, "generation_started", process)
        second = doors.call("run_batch", *words)
        assert second.returncode == 64
        assert "in use by another hkbench" in second.stderr
        family = doors.family(process)
        process.terminate()
        process.communicate(timeout=doors.LIMIT)
        assert doors.outliving(family) == []
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_is_130_with_a_report(bench: Bench, tmp_path: Path) -> None:
    results = tmp_path / "results"
    doors.reply(bench.replies, FAST, 1, 2, doors.fenced(doors.candidate("import time; time.sleep(100)")))
    process = doors.start("run_batch", *bench.arguments(results, "--limit", "1", "--run-timeout", "60"))
    doors.wait_for(RunPaths(results).journal, '"run"', process)
    family = doors.family(process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=doors.LIMIT)
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert "Traceback" not in said
    assert doors.outliving(family) == []
    last = doors.events(results)[-1]
    assert isinstance(last, RunClosed)
    assert (last.complete, last.reason) == (False, "interrupted")
    assert RunPaths(results).report_text.exists()


@pytest.mark.slow
def test_the_run_goes_on_when_nobody_reads(bench: Bench, tmp_path: Path) -> None:
    """`run_batch.py ... | head -1`: what is under way may have been paid for."""
    results = tmp_path / "results"
    process = doors.start("run_batch", *bench.arguments(results, "--limit", "1"))
    assert process.stdout is not None
    assert process.stdout.readline().endswith("starting the device\n")
    process.stdout.close()
    assert process.wait(timeout=doors.LIMIT) == 141
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == ""
    last = doors.events(results)[-1]
    assert isinstance(last, RunClosed)
    assert last.complete


def test_generate_with_a_template_of_ones_own(bench: Bench, tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("Write {{ problem.name }} for {{ backend }}.\n")
    output, response = tmp_path / "kernel.py", tmp_path / "reply.txt"
    words = ("--problem", bench.problems / "level1" / f"{FAST}.py", "--replay", bench.replies, "--device", "cpu")
    done = doors.call("generate", *words, "--prompt", template, "--output", output, "--response-file", response)
    assert done.returncode == 0, done.stderr
    assert output.read_text() == doors.wrong(1)
    assert response.read_text() == doors.fenced(doors.wrong(1))
    assert "only_block" in done.stdout
    template.write_text("{{ no_such_thing }}")
    done = doors.call("generate", *words, "--prompt", template, "--output", output)
    assert done.returncode == 64
    assert "no_such_thing" in done.stderr
    done = doors.call("generate", *words, "--prompt", tmp_path / "gone.txt", "--output", output)
    assert done.returncode == 66
    assert "gone.txt" in done.stderr and "--prompt" in done.stderr


def test_generate_says_when_a_reply_holds_no_code(bench: Bench, tmp_path: Path) -> None:
    doors.reply(bench.replies, FAST, 1, 1, "I would rather not.")
    words = ("--problem", bench.problems / "level1" / f"{FAST}.py", "--replay", bench.replies, "--device", "cpu")
    done = doors.call("generate", *words, "--output", tmp_path / "kernel.py")
    assert done.returncode == 2
    assert "no kernel" in done.stdout
    assert not (tmp_path / "kernel.py").exists()


def test_replies_are_marked_as_replayed(story: Story) -> None:
    received = [event for event in doors.events(story.results) if isinstance(event, ReplyReceived)]
    assert received and all(event.replayed for event in received)
