"""--resume RUN: the options that give a run's recorded settings again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from support import doors
from support.run_folder import FACTS, run_config

from hkbench.cli.batch import add_arguments
from hkbench.cli.parser import Parser
from hkbench.cli.resume import choose_resumed, sources_of, take_recorded
from hkbench.cli.run_config import draft_of
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.problems import load_problem
from hkbench.prompts import load_prompts
from hkbench.records import (
    DeviceKind,
    EvaluationSettings,
    IsolationLevel,
    Problem,
    Races,
    RuleSet,
    RunConfig,
    RunSources,
    SizeSet,
    Track,
)
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile
from hkbench.store.recorder import Recorder

NAMES = ("1_A", "2_B", "3_C")

#: Nothing in it is a default, so that a setting without its option is noticed.
JUDGE = EvaluationSettings(
    trials=2,
    timing_runs=7,
    timing_seconds=11.5,
    warmups=4,
    build_timeout=13.0,
    load_timeout=17.0,
    run_timeout=19.0,
    evaluation_timeout=29.0,
    memory_gib=2.5,
    profile_slow=False,
    profile_timeout=23.0,
    keep_profile="/profiles",
    keep_assembly=True,
    track=Track.ANY,
    races=Races.WARN,
    rtol={"float32": 1e-3, "bfloat16": 0.1},
    require_isolation=IsolationLevel.PARTIAL,
    stock_builds=True,
    prepare_builds=True,
    host_copies=True,
    baseline="eager,compile",
    busy_wait=31.0,
    rules=RuleSet.KERNELBENCH,
    shapes=6,
    evaluations_per_gpu=3,
    require_shapes=True,
)


@pytest.fixture
def problems(tmp_path: Path) -> dict[str, Problem]:
    paths = [doors.problem(tmp_path / "problems", name, number) for number, name in enumerate(NAMES, start=1)]
    return {path.stem: load_problem(path) for path in paths}


def recorded(root: Path, chosen: list[Problem], *, keeps: bool = True, **changes: object) -> RunConfig:
    """A run in `root` without anything but its settings."""
    fields = run_config().model_dump() | {
        "problems": tuple(one.name for one in chosen),
        "problem_hashes": tuple(one.sha256 for one in chosen),
        "prompts_sha256": load_prompts(doors.ROOT / "prompts").sha256,
        **changes,
    }
    config = RunConfig.model_validate(fields)
    sources = RunSources(problems=(str(chosen[0].path.parent),), prompts=str(doors.ROOT / "prompts"))
    recorder = Recorder(RunPaths(root), lambda _: None)
    recorder.begin(config, FACTS, sources)
    for problem in chosen if keeps else ():
        recorder.save_reference(problem)
    recorder.close()
    return config


def parsed(root: Path, *words: str) -> tuple[argparse.Namespace, RunFile]:
    parser = Parser()
    add_arguments(parser)
    options = parser.parse_args(["--resume", str(root), *words])
    run = take_recorded(options)
    assert run is not None
    return options, run


@pytest.mark.parametrize(
    "changes",
    [
        {
            "model": "lab/kernel", "base_url": "http://127.0.0.1:9/v1", "api": "responses", "temperature": 0.25,
            "max_tokens": 99, "reasoning_effort": "high", "samples": 5, "attempts": 4,
            "strategy": "reflect", "exhaust": True,
            "backend": "triton", "device": DeviceKind.CUDA, "sizes": SizeSet.FULL, "judge": JUDGE,
        },
        {
            "strategy": "judge", "judge_model": "lab/reader", "from_best": True, "samples": 1, "attempts": 11,
            "sizes": SizeSet.FULL,
            "judge": JUDGE,
        },
        {
            "device": DeviceKind.ROCM, "backend": "hip", "sizes": SizeSet.FULL, "compiled_for": "gfx950",
            "model": "replay", "replay": "/recorded",
        },
        {"model": "lab/kernel", "replay": "/recorded", "sizes": SizeSet.FULL},
    ],
)  # fmt: skip
def test_the_recorded_settings_come_again(
    tmp_path: Path, problems: dict[str, Problem], changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_BASE_URL", "LLM_GATEWAY_URL", "LLM_MODEL", "NUM_SAMPLES"):
        monkeypatch.setenv(variable, "")
    if "replay" in changes:
        (tmp_path / "recorded").mkdir()
        changes = changes | {"replay": str(tmp_path / "recorded")}
    config = recorded(tmp_path / "run", list(problems.values()), **changes)
    options, run = parsed(tmp_path / "run")
    draft = draft_of(options, choose_resumed(options, run), load_prompts(options.prompts), None)
    assert draft.config == config
    assert draft.unknown == frozenset()


def test_no_setting_of_the_evaluator_is_forgotten() -> None:
    default = EvaluationSettings()
    derived = {"profile_fast"}  # from the strategy
    same = {name for name in type(default).model_fields if getattr(JUDGE, name) == getattr(default, name)}
    assert same == derived


def test_what_is_given_takes_the_place_of_what_is_recorded(tmp_path: Path, problems: dict[str, Problem]) -> None:
    recorded(tmp_path / "run", list(problems.values()), base_url="http://127.0.0.1:9/v1", temperature=0.5)
    options, _ = parsed(tmp_path / "run", "--attempts", "7", "--base-url", "http://127.0.0.1:10/v1", "--max-cost", "3")
    assert (options.attempts, options.samples, options.temperature, options.max_cost) == (7, 2, 0.5, 3.0)
    assert options.base_url == "http://127.0.0.1:10/v1"


def test_an_address_with_a_password_is_the_environments(
    tmp_path: Path, problems: dict[str, Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "run", list(problems.values()), base_url="http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@127.0.0.1:9/v1")
    assert parsed(tmp_path / "run")[0].base_url is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11/v1")
    assert parsed(tmp_path / "run")[0].base_url == "http://127.0.0.1:9/v1"


def names(options: argparse.Namespace, run: RunFile) -> list[str]:
    return [problem.name for problem in choose_resumed(options, run).problems]


def test_problems_are_added_from_where_the_others_lay(
    tmp_path: Path, problems: dict[str, Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELBENCH_DIR", raising=False)
    recorded(tmp_path / "run", [problems["2_B"]])
    for words in (("1-3",), ("1", "3"), ("1,3",)):
        assert names(*parsed(tmp_path / "run", *words)) == ["1_A", "2_B", "3_C"]
    assert names(*parsed(tmp_path / "run", "2")) == ["2_B"]
    assert names(*parsed(tmp_path / "run", "--match", "C$")) == ["2_B", "3_C"]
    recorded(tmp_path / "two", [problems["1_A"], problems["2_B"]])
    with pytest.raises(UsageError, match="goes on with all problems"):
        names(*parsed(tmp_path / "two", "2"))


def test_the_kept_files_serve_where_the_others_changed(tmp_path: Path, problems: dict[str, Problem]) -> None:
    for root, keeps in (("kept", True), ("older", False)):
        recorded(tmp_path / root, list(problems.values()), keeps=keeps)
    problems["2_B"].path.write_text(problems["2_B"].source + "\n# changed\n")
    problems["3_C"].path.unlink()
    assert names(*parsed(tmp_path / "kept")) == list(NAMES)
    with pytest.raises(InputMissing, match=r"3_C\.py is not in"):
        names(*parsed(tmp_path / "older"))
    problems["3_C"].path.write_text(problems["3_C"].source)
    with pytest.raises(RunMismatch, match="the files of 2"):
        names(*parsed(tmp_path / "older"))


def test_where_the_inputs_lie(tmp_path: Path, problems: dict[str, Problem]) -> None:
    recorded(tmp_path / "run", list(problems.values()))
    options, _ = parsed(tmp_path / "run")
    found = sources_of(options, tuple(problems.values()), None)
    assert found == RunSources(problems=(str(tmp_path / "problems" / "level1"),), prompts=str(doors.ROOT / "prompts"))
