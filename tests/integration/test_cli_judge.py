"""run_batch.py --strategy judge as a user runs it: recorded replies of both models, and a real server."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from support import doors
from support.model_server import ModelServer, Request, Scripted, environment, prompt_of, script

from hkbench.records import AdviceReceived, AnswerForm, Decided, PromptRendered, QuestionKind, Status, VerdictReached
from hkbench.store.layout import RunPaths

NAME = "1_Loop"
REPAIR = {"critical_issue": "the comparison", "why_it_matters": "it adds one", "minimal_fix_hint": "drop x > 3"}
OPTIMISE = {"bottleneck": "the loop", "optimisation_method": "one pass", "modification_plan": "return at once"}


def advise(folder: Path, attempt: int, call: int, text: str) -> None:
    path = folder / NAME / f"attempt_{attempt}" / f"judge_{call}" / "response.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    """Wrong, repaired but slow, fast, then a regression."""
    folder = tmp_path / "replies"
    for attempt, source in enumerate((doors.wrong(1), doors.slow(1), doors.fast(1), doors.wrong(1)), start=1):
        doors.reply(folder, NAME, attempt, 1, doors.fenced(source))
    advise(folder, 2, 1, "It looks wrong to me.")
    advise(folder, 2, 2, f"```json\n{json.dumps(REPAIR)}\n```")
    advise(folder, 3, 1, json.dumps(OPTIMISE).replace('"', "'"))
    advise(folder, 4, 1, "No idea.")
    advise(folder, 4, 2, "{}")
    return folder


def arguments(tmp_path: Path, *more: object) -> tuple[object, ...]:
    problem = tmp_path / "problems" / "level1" / f"{NAME}.py"
    fixed = ("--problems", problem, "--results", tmp_path / "results", "--device", "cpu", *doors.QUICK)
    return (*fixed, "--strategy", "judge", *more)


def test_repair_optimise_and_go_without(tmp_path: Path, replies: Path) -> None:
    doors.problem(tmp_path / "problems", NAME, 1)
    done = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--replay", replies))
    assert done.returncode == 0, done.stderr
    events = doors.events(tmp_path / "results")
    verdicts = [event.status for event in events if isinstance(event, VerdictReached)]
    assert verdicts == [Status.INCORRECT, Status.SLOW, Status.FAST, Status.INCORRECT]
    advice = [event for event in events if isinstance(event, AdviceReceived)]
    assert [(event.key.attempt, event.key.call, event.kind, event.form) for event in advice] == [
        (2, 1, QuestionKind.REPAIR, AnswerForm.UNUSABLE),
        (2, 2, QuestionKind.REPAIR, AnswerForm.JSON),
        (3, 1, QuestionKind.OPTIMISE, AnswerForm.MENDED),
        (4, 1, QuestionKind.OPTIMISE, AnswerForm.UNUSABLE),
        (4, 2, QuestionKind.OPTIMISE, AnswerForm.UNUSABLE),
    ]
    assert all(event.about.attempt == event.key.attempt - 1 for event in advice)
    (decided,) = [event for event in events if isinstance(event, Decided)]
    assert (decided.attempt, decided.what) == (4, "advice")
    paths = RunPaths(tmp_path / "results").problem(NAME)
    assert "drop x > 3" in paths.prompt(2).read_text()
    assert "return at once" in paths.prompt(3).read_text()
    assert "A reviewer" not in paths.prompt(4).read_text()
    question = paths.advice(3, 1).prompt.read_text()
    assert f"for _ in range({4 * doors.WORK})" in question and "Speed-up" in question, "of the kernel that it shows"
    assert (
        "One profiled forward pass" in question and "One profiled forward pass" in paths.advice(4, 1).prompt.read_text()
    )
    assert "That cannot be used: it holds no JSON object" in paths.advice(2, 2).prompt.read_text()

    check_what_the_run_leaves(RunPaths(tmp_path / "results"))

    before = (tmp_path / "results" / "journal.jsonl").read_text()
    again = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--replay", replies))
    assert again.returncode == 0, again.stderr
    added = (tmp_path / "results" / "journal.jsonl").read_text().removeprefix(before)
    assert "advice" not in added and "verdict" not in added

    other = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--replay", replies, "--from", "best"))
    assert other.returncode == 64 and "start last -> best" in other.stderr


def check_what_the_run_leaves(run: RunPaths) -> None:
    """advice.json, evaluations, score curve, usage, and what the reports say of it."""
    paths = run.problem(NAME)
    assert json.loads(paths.advice(2, 2).advice.read_text())["said"] == REPAIR
    assert json.loads(paths.advice(4, 2).advice.read_text())["said"] is None
    seed, repaired, faster, worse = [json.loads(paths.evaluation(number).read_text()) for number in range(4)]
    assert not paths.evaluation(4).exists()
    assert [one["mode"] for one in (seed, repaired, faster, worse)] == ["seed", "repair", "optimise", "optimise"]
    assert (seed["starts_from"], worse["starts_from"]) == (None, {"attempt": 3, "sample": 1})
    assert repaired["advice"]["said"] == REPAIR and worse["advice"]["said"] is None
    assert faster["metrics_shown"] and "time share" in faster["metrics_shown"][0]
    assert worse["best_so_far"] == {"attempt": 3, "sample": 1} and worse["speedup"] is None
    assert paths.score.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(run.usage.read_text().splitlines()))
    assert [(row["attempt"], row["role"]) for row in rows] == [
        ("1", "coder"), ("2", "judge"), ("2", "judge"), ("2", "coder"), ("3", "judge"), ("3", "coder"),
        ("4", "judge"), ("4", "judge"), ("4", "coder"),
    ]  # fmt: skip
    report = json.loads(run.report_json.read_text())
    assert report["overall"]["calls"]["replayed"] == 9
    assert [role["calls"]["replayed"] for role in report["overall"]["roles"]] == [4, 5]
    assert [one["what"] for one in report["problems"][0]["decisions"]] == ["advice"]
    page = run.report_page.read_text()
    assert "drop x &gt; 3" in page and 'id="scores"' in page and "only slow kernels are" not in page
    shown = doors.hkbench("show", run.root, "1/3")
    assert "judge 1 on 2/1, optimise" in shown.stdout and "bottleneck: the loop" in shown.stdout, shown.stderr
    bare = {path: path.read_bytes() for path in run.root.rglob("*") if path.is_file()}
    assert doors.call("generate_report", run.root).returncode == 0
    assert {path: path.read_bytes() for path in bare} == bare, "the same folder gives the same bytes"


def test_a_run_can_be_replayed_step_for_step_from_its_own_folder(tmp_path: Path, replies: Path) -> None:
    doors.problem(tmp_path / "problems", NAME, 1)
    first = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--replay", replies))
    assert first.returncode == 0, first.stderr
    old = tmp_path / "results"
    old.rename(tmp_path / "old")
    second = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--replay", tmp_path / "old"))
    assert second.returncode == 0, second.stderr

    def steps(results: Path) -> list[object]:
        kinds = (AdviceReceived, PromptRendered, VerdictReached)
        found = [event for event in doors.events(results) if isinstance(event, kinds)]
        return [
            (event.event, getattr(event, "form", None), getattr(event, "status", None), getattr(event, "parent", None))
            for event in found
        ]

    assert steps(old) == steps(tmp_path / "old")


def test_the_judge_is_another_model(tmp_path: Path) -> None:
    doors.problem(tmp_path / "problems", NAME, 1)

    def handler(request: Request) -> Scripted:
        if request["model"] == "sage":
            return Scripted(text=json.dumps(REPAIR if "does not pass" in prompt_of(request) else OPTIMISE))
        return Scripted(text=doors.fenced(doors.fast(1) if "A reviewer" in prompt_of(request) else doors.wrong(1)))

    with ModelServer(handler) as server:
        settings = {"OPENAI_BASE_URL": server.base_url, "LLM_GATEWAY_KEY": "sk-test-0123456789"}
        done = doors.call(
            "run_batch", *arguments(tmp_path, "--model", "smith", "--judge-model", "sage", "--rounds", 1), env=settings
        )
    assert done.returncode == 0, done.stderr
    assert [request["model"] for request in server.requests] == ["smith", "sage", "smith"]
    assert "response_format" in server.requests[1]
    exchange = json.loads(RunPaths(tmp_path / "results").problem(NAME).advice(2, 1).exchange.read_text())
    assert exchange["model"] == "sage"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--strategy", "reflect", "--rounds", 2), "--rounds belongs to --strategy judge"),
        (("--strategy", "reflect", "--from", "best"), "--from belongs to --strategy judge"),
        (("--attempts", 2, "--rounds", 2), "give one of them"),
        (("1", "2"), "leave out what chooses"),
    ],
)
def test_contradictions_cost_nothing(tmp_path: Path, more: tuple[object, ...], said: str) -> None:
    doors.problem(tmp_path / "problems", NAME, 1)
    done = doors.call("run_batch", *arguments(tmp_path, "--dry-run", *more))
    assert done.returncode == 64 and said in done.stderr


def test_the_plan_counts_the_judge(tmp_path: Path) -> None:
    doors.problem(tmp_path / "problems", NAME, 1)
    with ModelServer(script(Scripted())) as server:
        done = doors.call("run_batch", *arguments(tmp_path, "--rounds", 3, "--dry-run"), env=environment(server))
    assert "strategy judge, 1 sample, up to 4 attempts: 7 to 10 model calls" in done.stdout, done.stderr
