"""hkbench export and import: KernelBench's run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors
from support.doors import fast, problem
from support.run_folder import RunFolder, compiled, correct, incorrect, run_config

from hkbench.cli.imports import fenced, find_kernels, model_of
from hkbench.cli.main import main
from hkbench.errors import InputMissing, UsageError
from hkbench.llm.extract import extract
from hkbench.records import FailureKind, SampleKey, Stage
from hkbench.report.kernelbench import Which, eval_result, exported
from hkbench.store.reader import read_run

KEY = SampleKey(problem="1_ReLU", attempt=1, sample=2)
NAMES = ("1_ReLU", "2_Sum", "3_Softmax")


def _run(root: Path) -> RunFolder:
    """ReLU: the second sample is right; Sum: right in attempt 2, twice as fast; Softmax: never."""
    run = RunFolder(root, run_config(NAMES, samples=2, attempts=2))
    run.start()
    wrong = incorrect("1_ReLU", FailureKind.WRONG_VALUES, Stage.COMPARE, "output: expected 1.0, got 2.0")
    verdicts = {
        ("1_ReLU", 1, 1): wrong,
        ("1_ReLU", 1, 2): correct("1_ReLU", 2.0),
        ("2_Sum", 1, 1): correct("2_Sum", 0.5, baseline=3e-3),
        ("2_Sum", 1, 2): incorrect("2_Sum"),
        ("2_Sum", 2, 1): correct("2_Sum", 2.0, baseline=4e-3),
        ("3_Softmax", 1, 1): incorrect("3_Softmax"),
    }
    for (name, attempt, sample), verdict in verdicts.items():
        run.sample(name, attempt, sample, verdict)
        run.paths.problem(name).sample(attempt, sample).code.write_text(f"# {name} {attempt} {sample}\n")
    run.close()
    return run


def test_an_entry_has_their_fields() -> None:
    found = eval_result(1, KEY, correct("1_ReLU", 2.0))
    assert list(found) == ["sample_id", "compiled", "correctness", "metadata", "runtime", "runtime_stats"]
    assert (found["sample_id"], found["compiled"], found["correctness"]) == (1, True, True)
    assert found["runtime"] == pytest.approx(0.5)  # milliseconds
    assert found["runtime_stats"]["num_trials"] == 3
    assert found["metadata"]["hkbench"]["speedup"] == 2.0


@pytest.mark.parametrize(
    ("kind", "stage", "is_compiled", "named"),
    [
        (FailureKind.BUILD_ERROR, Stage.BUILD, False, "compilation_error_name"),
        (FailureKind.LOAD_ERROR, Stage.LOAD, False, "compilation_error_name"),
        (FailureKind.CRASH, Stage.RUN, True, "runtime_error_name"),
        (FailureKind.WRONG_VALUES, Stage.COMPARE, True, "correctness_issue_name"),
    ],
)
def test_a_failure(kind: FailureKind, stage: Stage, is_compiled: bool, named: str) -> None:
    found = eval_result(0, KEY, incorrect("1_ReLU", kind, stage))
    assert (found["compiled"], found["correctness"]) == (is_compiled, False)
    assert (found["runtime"], found["runtime_stats"]) == (-1.0, {})
    assert found["metadata"][named] == kind.value


def test_what_was_only_built_is_not_correct() -> None:
    found = eval_result(0, KEY, compiled("1_ReLU"))
    assert (found["compiled"], found["correctness"], found["runtime"]) == (True, False, -1.0)


def test_which_samples(tmp_path: Path) -> None:
    view = read_run(_run(tmp_path).paths)

    def keys(which: Which) -> list[tuple[int, int, int, int]]:
        found = exported(view, which)
        return [(one.problem, one.sample, one.key.attempt, one.key.sample) for one in found]

    assert keys("first") == [(1, 0, 1, 1), (1, 1, 1, 2), (2, 0, 1, 1), (2, 1, 1, 2), (3, 0, 1, 1)]
    assert keys("best") == [(1, 0, 1, 2), (2, 0, 2, 1), (3, 0, 1, 1)]
    assert keys("all")[2:5] == [(2, 0, 1, 1), (2, 1, 1, 2), (2, 2, 2, 1)]


def test_export_the_users_way(tmp_path: Path) -> None:
    run, folder = _run(tmp_path / "run"), tmp_path / "runs" / "mine"
    done = doors.hkbench("export", run.root, "--kernelbench", folder, "--samples", "best")
    assert done.returncode == 0, done.stderr
    assert "3 kernels, 3 results, 2 correct" in done.stdout
    assert (folder / "level_1_problem_2_sample_0_kernel.py").read_text() == "# 2_Sum 2 1\n"
    results = json.loads((folder / "eval_results.json").read_text())
    assert list(results) == ["1", "2", "3"]
    times = json.loads((folder / "baseline.json").read_text())["level1"]
    assert times["3_Softmax.py"]["mean"] == -1.0
    ratio = times["2_Sum.py"]["mean"] / results["2"][0]["runtime"]
    assert ratio == pytest.approx(2.0)
    assert times["1_ReLU.py"]["mean"] / results["1"][0]["runtime"] == pytest.approx(2.0)


def test_export_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _run(tmp_path / "run")
    assert main(["export", str(run.root), "--kernelbench", str(run.root)]) == 64
    assert "not an empty folder" in capsys.readouterr().err
    unnumbered = RunFolder(tmp_path / "odd", run_config(("relu",)))
    assert main(["export", str(unnumbered.root), "--kernelbench", str(tmp_path / "out")]) == 64
    assert not (tmp_path / "out").exists()
    no_level = RunFolder(tmp_path / "flat", run_config().model_copy(update={"level": None}))
    assert main(["export", str(no_level.root), "--kernelbench", str(tmp_path / "out")]) == 64
    assert "--level" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source",
    ["class ModelNew:\n    pass\n", 'class ModelNew:\n    """\n```python\nx = 1\n```\n````\n"""', "class ModelNew(:\n"],
)
def test_a_kernel_comes_back_as_it_was(source: str) -> None:
    assert (extract(fenced(source), None).source or "").strip() == source.strip()


def _theirs(root: Path, *names: str) -> Path:
    root.mkdir(parents=True)
    for name in names:
        (root / name).write_text(fast(1))
    return root


def test_import_the_users_way(tmp_path: Path) -> None:
    problems, replies = tmp_path / "problems", tmp_path / "replies"
    for number in (1, 2, 3):
        problem(problems, f"{number}_P", number)
    theirs = _theirs(
        tmp_path / "runs" / "gpt",
        "level_1_problem_1_sample_0_kernel.py",
        "level_1_problem_1_sample_1_kernel.py",
        "level_1_problem_3_sample_0_kernel.py",
    )
    (theirs / "generation_config.yaml").write_text("level: 1\nmodel_name: 'gpt/x'\n")
    (theirs / "eval_results.json").write_text("{}")
    done = doors.hkbench("import", "--kernelbench", theirs, replies, "--problems", problems)
    assert done.returncode == 0, done.stderr
    assert "3_P sample 1" in done.stdout and "2_P sample 0" in done.stdout
    assert "run_batch.py 1 3 --level 1" in done.stdout and "--samples 2 --attempts 1" in done.stdout
    first = replies / "1_P" / "attempt_1" / "sample_1"
    assert extract((first / "response.txt").read_text(), None).source == fast(1)
    assert json.loads((first / "exchange.json").read_text())["model"] == "gpt/x"
    hole = (replies / "3_P" / "attempt_1" / "sample_2" / "response.txt").read_text()
    assert extract(hole, None).source is None


def test_import_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem(tmp_path / "problems", "1_P", 1)
    theirs = _theirs(tmp_path / "gpt", "level_1_problem_7_sample_0_kernel.py")
    arguments = [
        "import",
        "--kernelbench",
        str(theirs),
        str(tmp_path / "out"),
        "--problems",
        str(tmp_path / "problems"),
    ]
    assert main(arguments) == 66
    assert "7" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_imported(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="not a folder"):
        find_kernels(tmp_path / "none")
    with pytest.raises(InputMissing, match="has no level_L"):
        find_kernels(tmp_path)
    two = _theirs(tmp_path / "two", "level_1_problem_1_sample_0_kernel.py", "level_2_problem_1_sample_0_kernel.py")
    with pytest.raises(UsageError, match="levels 1, 2"):
        find_kernels(two)


def test_the_model(tmp_path: Path) -> None:
    folder = _theirs(tmp_path / "sonnet")
    assert model_of(folder) == "KernelBench run sonnet"
    (folder / "generation_config.yaml").write_text("model_name: null\n")
    assert model_of(folder) == "KernelBench run sonnet"
    (folder / "generation_config.yaml").write_text("a: 1\nmodel_name: deepseek-r1\nb: 2\n")
    assert model_of(folder) == "deepseek-r1"
