"""hkbench rerun: which samples are meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, sample_run

from hkbench.cli.main import main
from hkbench.cli.recorded import matching, parse_where
from hkbench.errors import UsageError
from hkbench.store.reader import read_run

NAMES = ("1_ReLU", "2_Sum")


def test_where() -> None:
    assert parse_where(["kind=timeout,crash", "problem=relu"], NAMES) == {
        "kind": {"timeout", "crash"},
        "problem": {"1_ReLU"},
    }
    assert parse_where(["attempt=1,2", "attempt=2,3"], NAMES) == {"attempt": {"2"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("timeout", "FIELD=VALUE"),
        ("kind=", "FIELD=VALUE"),
        ("speed=1", "status, kind, stage, problem, attempt, sample"),
        ("kind=slowish", "kind is never 'slowish'; it is one of"),
        ("attempt=one", "attempt is a number"),
    ],
)
def test_where_that_nothing_can_match(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_where([text], NAMES)


def _with_code(root: Path) -> RunFolder:
    run = sample_run(root)
    for problem in read_run(run.paths).problems:
        for sample in problem.samples:
            folder = run.paths.problem(problem.name).sample(sample.key.attempt, sample.key.sample)
            folder.code.write_text("x = 1\n")
    return run


def test_matching(tmp_path: Path) -> None:
    run = _with_code(tmp_path)
    view = read_run(run.paths)

    def found(*where: str) -> list[tuple[str, int, int]]:
        keys = matching(view, parse_where(where, view.config.problems))
        return [(key.problem, key.attempt, key.sample) for key in keys]

    assert found("kind=build_error") == [("1_ReLU", 1, 2), ("2_Sum", 1, 2)]
    assert found("kind=build_error", "problem=sum") == [("2_Sum", 1, 2)]
    assert found("status=slow", "attempt=2", "problem=2") == [("2_Sum", 2, 2)]
    run.paths.problem("2_Sum").sample(2, 2).code.unlink()
    assert found("status=slow", "attempt=2", "problem=2") == []


def test_a_run_under_way_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _with_code(tmp_path / "run")
    run.start(resumed=True)
    arguments = ["rerun", str(run.root), "--where", "kind=crash", "--results", str(tmp_path / "new")]
    assert main(arguments) == 64
    assert "under way" in capsys.readouterr().err
