"""`hkbench.load_run` and `load_runs`: tables, samples, and the examples of docs/results.md as they stand there."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.run_folder import RunFolder, correct, incorrect, run_config, sample_run

import hkbench
from hkbench.errors import InputMissing, UsageError
from hkbench.records import SampleKey, Status
from hkbench.report.write import write_reports

ROOT = Path(__file__).resolve().parents[2]


def with_texts(root: Path) -> RunFolder:
    """A run whose second problem has prompts, replies and code, one sample made from the other."""
    run = sample_run(root)
    problem = run.paths.problem("2_Sum")
    problem.reference.write_text("# the reference\n")
    for attempt in (1, 2):
        files = problem.sample(attempt, 1)
        files.code.write_text(f"x = 1\ny = {attempt}\n")
        files.response.write_text(f"reply {attempt}")
        problem.prompt(attempt).write_text(f"prompt {attempt}")
    run.prompted("2_Sum", "a.txt", 2, parent=SampleKey(problem="2_Sum", attempt=1, sample=1))
    write_reports(root)
    return run


def test_the_package_alone_imports_neither_pandas_nor_a_record() -> None:
    code = "import sys, hkbench; sys.exit(bool({'pandas', 'pydantic', 'hkbench.frames'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
    with pytest.raises(AttributeError, match="load_everything"):
        _ = getattr(hkbench, "load_everything")  # noqa: B009


def test_a_run_by_its_folder_and_the_newest_below_another(tmp_path: Path) -> None:
    run = with_texts(tmp_path / "a" / "run")
    for path in (run.root, tmp_path, str(tmp_path)):
        found = hkbench.load_run(path)
        assert (found.path, found.config, found.facts, found.complete) == (run.root, run.config, run.facts, True)
    assert found.overall.solved == 2
    assert str(run.root) in repr(found)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputMissing, match="holds no run"):
        hkbench.load_run(tmp_path / "empty")


def test_tables_have_the_columns_and_values_of_the_files(tmp_path: Path) -> None:
    run = with_texts(tmp_path)
    found = hkbench.load_run(tmp_path)
    for table, path in ((found.samples, run.paths.samples), (found.calls, run.paths.usage)):
        pd.testing.assert_frame_equal(table, pd.read_csv(path, dtype=dict(table.dtypes)))
    summary = pd.read_csv(run.paths.summary_csv).iloc[:-1]
    assert list(found.problems) == list(summary)[:-2]
    assert list(found.problems.best_speedup.dropna()) == list(summary.best_speedup.dropna())
    assert found.samples is found.samples


def test_types_are_those_of_the_columns_whatever_the_rows_hold(tmp_path: Path) -> None:
    full, empty = with_texts(tmp_path / "full"), RunFolder(tmp_path / "empty")
    tables = [hkbench.load_run(one.root) for one in (full, empty)]
    assert len(tables[1].samples) == len(tables[1].calls) == 0
    for name in ("samples", "problems", "calls"):
        first, second = (getattr(one, name).dtypes for one in tables)
        assert dict(first) == dict(second)
    samples = tables[0].samples
    assert samples.speedup.max() == 2.0 and samples.tokens_input.sum() == 1300
    assert list(samples[samples.outcome == "slower"].problem.unique()) == ["2_Sum", "3_Softmax"]


def test_a_sample_with_all_its_parts(tmp_path: Path) -> None:
    with_texts(tmp_path)
    run = hkbench.load_run(tmp_path)
    sample = run.sample("2/2/1")
    assert (sample.prompt, sample.reply, sample.code) == ("prompt 2", "reply 2", "x = 1\ny = 2\n")
    assert (sample.reference, sample.parent) == ("# the reference\n", "2_Sum/1/1")
    assert sample.verdict is not None and sample.verdict.status is Status.FAST
    assert sample.diff is not None and {"-y = 1", "+y = 2"} <= set(sample.diff.splitlines())
    assert "fast" in repr(sample)
    bare = run.sample("ReLU/1/2")
    assert (bare.prompt, bare.code, bare.diff, bare.parent, bare.reference) == (None,) * 5
    for address in ("2", "2/1", "nonsense/x"):
        with pytest.raises(UsageError):
            run.sample(address)
    with pytest.raises(InputMissing, match="attempt 7"):
        run.sample("2/7/1")


def test_runs_side_by_side(tmp_path: Path) -> None:
    sample_run(tmp_path / "a")
    other = RunFolder(tmp_path / "b" / "c", run_config(("1_A",)))
    other.sample("1_A", 1, 1, correct("1_A", 1.05))
    other.sample("1_A", 1, 2, incorrect("1_A"))
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{}")
    found = hkbench.load_runs(tmp_path).set_index("path")
    assert set(found.index) == {str(tmp_path / "a"), str(other.root), str(broken)}
    first = found.loc[str(tmp_path / "a")]
    assert (first.judged, first.faster, first.slower, first.wrong) == (4, 2, 1, 1)
    assert (first.fast_1, first.model, bool(first.complete)) == (0.5, "test-model", True)
    assert first.low < first.speedup < first.high
    second = found.loc[str(other.root)]
    assert (second.on_par, second.solved, bool(second.complete)) == (1, 1, False)
    assert "run.json" in found.loc[str(broken)].error and pd.isna(found.loc[str(broken)].model)
    assert len(hkbench.load_runs(tmp_path / "a")) == 1
    assert len(hkbench.load_runs(tmp_path / "nowhere")) == 0


def examples(language: str) -> list[str]:
    text = (ROOT / "docs" / "results.md").read_text()
    section = text.partition("\n## In Python\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_the_examples_in_python_run_as_they_stand(tmp_path: Path) -> None:
    with_texts(tmp_path / "results" / "run")
    for example in examples("python"):
        words = [sys.executable, "-c", example]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "2_Sum" in done.stdout or "test-model" in done.stdout


def test_the_examples_of_other_tools_run_as_they_stand(tmp_path: Path) -> None:
    run = with_texts(tmp_path)
    run.paths.problem("2_Sum").best_code.write_text("x = 1\n")
    write_reports(tmp_path)
    (commands,), (query,) = examples("sh"), examples("sql")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands.splitlines():
        if shutil.which(command.split()[0], path=path) is None:
            continue  # jq is no part of the project
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=dict(os.environ) | {"PATH": path}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0 and "2_Sum" in done.stdout, done.stderr
    duckdb = pytest.importorskip("duckdb")
    for one in filter(str.strip, query.split(";")):
        rows = duckdb.sql(re.sub(r"'(\w+\.csv)'", rf"'{tmp_path}/\1'", one)).fetchall()
        assert len(rows) == len(run.config.problems)
    with run.paths.samples.open(newline="") as file:
        assert max(float(row["speedup"] or 0) for row in csv.DictReader(file)) == 2.0
