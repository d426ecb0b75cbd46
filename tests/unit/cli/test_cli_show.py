"""hkbench show, on a folder that the tests' helpers made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors
from support.run_folder import RunFolder, sample_run
from support.strategy_runs import judged_run, staged_run

from hkbench.cli.address import find_address, find_problem
from hkbench.cli.main import main
from hkbench.errors import InputMissing, UsageError
from hkbench.records import AttemptClosed, PromptRendered
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

NAMES = ("1_ReLU", "2_Sum", "11_ReLU_fp16", "3_Softmax")


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("1", "1_ReLU"), ("01", "1_ReLU"), ("11", "11_ReLU_fp16"), ("1_ReLU", "1_ReLU"), ("soft", "3_Softmax")],
)
def test_a_problem_by_number_name_or_part(wanted: str, name: str) -> None:
    assert find_problem(NAMES, wanted) == name


def test_a_problem_that_is_not_there_or_not_one() -> None:
    with pytest.raises(InputMissing, match=r"no problem '7'; it has 1_ReLU, 2_Sum, 11_ReLU_fp16, 3_Softmax"):
        find_problem(NAMES, "7")
    with pytest.raises(UsageError, match=r"any of 1_ReLU, 11_ReLU_fp16"):
        find_problem(NAMES, "relu")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("1/9", InputMissing, "1_ReLU has no attempt 9; it has 1"),
        ("1/0", InputMissing, "no attempt 0"),
        ("2/2/5", InputMissing, "no sample 5 in attempt 2; it has 1, 2"),
        ("1/a", UsageError, "3/2/1"),
        ("1//1", UsageError, "3/2/1"),
        ("1/1/1/1", UsageError, "3/2/1"),
    ],
)
def test_an_address_that_names_nothing(tmp_path: Path, text: str, error: type[Exception], words: str) -> None:
    view = read_run(RunPaths(sample_run(tmp_path).root))
    with pytest.raises(error, match=words):
        find_address(view, text)


def _whole_run(root: Path) -> RunFolder:
    """`sample_run` with the texts of sample 2/2/1, whose prompt was made from 2/1/1."""
    run = sample_run(root)
    name = "2_Sum"
    run.emit(
        AttemptClosed(time=run.tick(), problem=name, attempt=1, best_sample=1, status=None, speedup=None),
        PromptRendered(time=run.tick(), problem=name, attempt=2, template="t", sha256="0" * 64),
    )
    problem = run.paths.problem(name)
    problem.prompt(2).write_text("mend the sum\n")
    problem.sample(1, 1).code.write_text("x = 1\nclass ModelNew: pass\n")
    files = problem.sample(2, 1)
    files.response.write_text("done \x1b[2J\x1b]0;owned\x07[red]now[/red]\n")
    files.code.write_text("x = 2\nclass ModelNew: pass\n")
    return run


def test_the_users_way(tmp_path: Path) -> None:
    root = _whole_run(tmp_path / "run").root
    table = doors.hkbench("show", root)
    assert table.returncode == 0, table.stderr
    assert "Solved      2 of 4 judged problems" in table.stdout
    problem = doors.hkbench("show", root, "sum")
    assert "attempt 2, whose prompt shows sample 1/1" in problem.stdout
    sample = doors.hkbench("show", root, "2/2/1")
    assert sample.returncode == 0, sample.stderr
    assert "\x1b" not in table.stdout + problem.stdout + sample.stdout
    assert "done [red]now[/red]\n" in sample.stdout
    assert "-x = 1\n+x = 2\n" in sample.stdout
    assert "correct, at least as fast: speed-up 1.25x" in sample.stdout
    missing = doors.hkbench("show", root, "2/2/9")
    assert (missing.returncode, missing.stdout) == (66, "")
    assert "it has 1, 2" in missing.stderr


def test_one_part_is_bare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(_whole_run(tmp_path).root)
    assert main(["show", root, "2/2/1", "--part", "code"]) == 0
    assert capsys.readouterr().out == "x = 2\nclass ModelNew: pass\n"
    assert main(["show", root, "2/2/1", "--part", "prompt", "--part", "code"]) == 0
    assert capsys.readouterr().out.count("----") == 2


def test_a_part_needs_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(_whole_run(tmp_path).root), "2", "--part", "code"]) == 64
    assert "2_Sum has 1/1, 1/2, 2/1, 2/2" in capsys.readouterr().err


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(_whole_run(tmp_path).root)
    assert main(["show", root, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["solved"] == 2
    assert main(["show", root, "2/2", "--json"]) == 0
    samples = json.loads(capsys.readouterr().out)["samples"]
    assert [(one["sample"], one["parent"]) for one in samples] == [
        (1, {"attempt": 1, "sample": 1}),
        (2, {"attempt": 1, "sample": 1}),
    ]
    assert main(["show", root, "2/2/1", "--json"]) == 0
    sample = json.loads(capsys.readouterr().out)
    assert sample["verdict"]["status"] == "fast"
    assert sample["timing"]["candidate"]["histogram"][0]["count"] == 3
    assert sample["diff"].endswith("-x = 1\n+x = 2\n class ModelNew: pass")
    assert main(["show", root, "2/2/1", "--json", "--part", "code"]) == 0
    assert "verdict" not in json.loads(capsys.readouterr().out)


def test_a_problem_that_was_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = RunFolder(tmp_path).root
    assert main(["show", str(root), "1"]) == 0
    assert "no sample yet" in capsys.readouterr().out


def test_decisions_and_advice_at_their_attempt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(judged_run(tmp_path / "judge").root), "1"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    told = text[text.index("attempt 2, whose prompt shows sample 1/1") :].splitlines()
    assert told[1:] == [
        "  judge 1 on 1/1, repair: it holds no JSON object",
        "  judge 2 on 1/1, repair",
        "  critical issue: the mask",
        "  why it matters: it is off by one",
        "  minimal fix hint: use <",
        "  2/1  faster 2.00x [1.80, 2.20] 500 µs vs 1.00 ms for PyTorch; not profiled",
        "  advice: none, a reason",
    ]
    assert main(["show", str(staged_run(tmp_path / "staged").root), "2/2"]) == 0
    text = capsys.readouterr().out
    assert "stage: tiles, a reason" in text and "exit: before feeding, it trails" in text and "category" not in text
