from __future__ import annotations

import csv
import json
from pathlib import Path

import jsonschema
import pytest
from support.compared_runs import compared_run
from support.run_folder import RunFolder, incorrect, run_config, sample_run

from hkbench.errors import InputMissing, UsageError
from hkbench.records import FailureKind, Stage
from hkbench.report.build import detail, summary_of
from hkbench.report.comparison import Comparison
from hkbench.report.format import WIDTH
from hkbench.report.write import COMPARISON_SCHEMA, SCHEMA, schema_text, write_comparison, write_reports
from hkbench.store.reader import read_run

GOLDEN = Path(__file__).parents[2] / "golden" / "detailed_report.txt"
FILES = ("summary.json", "summary.csv", "detailed_report.json", "detailed_report.txt", "report.html", "usage.csv")


def test_the_text_report_is_the_golden_one(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    write_reports(tmp_path)
    found = run.paths.report_text.read_text()
    assert found == GOLDEN.read_text(), f"if the change is meant, put the new text into {GOLDEN}:\n{found}"


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    sample_run(tmp_path)
    write_reports(tmp_path)
    first = {name: (tmp_path / name).read_bytes() for name in FILES}
    write_reports(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == first
    assert not list(tmp_path.glob(".*.tmp"))


def test_the_schema_is_up_to_date() -> None:
    assert SCHEMA.read_text() == schema_text(), "write hkbench.report.write.schema_text() to SCHEMA"
    assert COMPARISON_SCHEMA.read_text() == schema_text(Comparison), "write schema_text(Comparison) to it"


@pytest.mark.parametrize("kind", ["whole", "empty", "damaged"])
def test_reports_validate_against_the_schema(tmp_path: Path, kind: str) -> None:
    run = RunFolder(tmp_path) if kind == "empty" else sample_run(tmp_path)
    if kind == "damaged":
        run.paths.journal.write_bytes(b"junk\n" + run.paths.journal.read_bytes()[:-9])
        run.paths.problem("1_ReLU").sample(1, 1).result.write_text("{")
    report = write_reports(tmp_path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in the report")

    data = json.loads(run.paths.report_json.read_text(), parse_constant=refuse)
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    assert len(report.damage) == (3 if kind == "damaged" else 0)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**data, "surprise": 1}, schema)


def test_the_csv_has_a_row_a_problem_and_empty_cells_for_the_unknown(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    write_reports(tmp_path)
    rows = list(csv.DictReader(run.paths.summary_csv.read_text().splitlines()))
    assert [row["problem"] for row in rows] == [*run.config.problems, "all"]
    assert [row["state"] for row in rows] == ["finished"] * 4 + ["all"]
    assert (rows[0]["solved"], rows[0]["outcome"], rows[3]["failed_kind"]) == ("true", "faster", "crash")
    assert float(rows[1]["best_speedup"]) == 1.25
    assert rows[3]["best_speedup"] == ""
    assert rows[0]["tokens_cached_input"] == ""


def test_the_last_row_of_the_csv_has_means_and_sums(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    report = write_reports(tmp_path)
    *rows, whole = csv.DictReader(run.paths.summary_csv.read_text().splitlines())
    assert (whole["solved_share"], whole["correct_share"]) == ("0.5", "0.75")
    mean = report.overall.geometric_mean_speedup
    assert mean is not None
    assert [float(whole[f"best_speedup{end}"]) for end in ("", "_low", "_high")] == [mean.value, mean.low, mean.high]
    assert mean.value == pytest.approx((2.0 * 1.25 * 0.6) ** (1 / 3))
    for column in ("attempts", "samples_judged", "samples_correct", "calls_made", "tokens_input", "tokens_output"):
        assert int(whole[column]) == sum(int(row[column]) for row in rows)
    assert {row["solved_share"] for row in rows} == {whole["solved"]} == {""}


def test_the_summary_names_every_file_that_was_written(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    before = set(tmp_path.iterdir())
    write_reports(tmp_path)
    summary = json.loads(run.paths.summary_json.read_text())
    named = {tmp_path / path for path in summary["files"].values()}
    assert named == {*before, *tmp_path.iterdir()} - {run.paths.summary_json} - {p for p in before if p.is_dir()}
    assert summary["problem_files"]["1_ReLU"] == {"folder": "1_ReLU"}
    for path in (run.paths.problem("1_ReLU").reference, run.paths.problem("1_ReLU").best_code):
        path.write_text("x")
    write_reports(tmp_path)
    again = json.loads(run.paths.summary_json.read_text())
    found = again["problem_files"]["1_ReLU"]
    assert found == {"folder": "1_ReLU", "reference": "1_ReLU/1_ReLU.py", "best_code": "1_ReLU/best_code.py"}
    assert all((tmp_path / path).exists() for path in found.values())


def test_summary_agrees_with_the_detailed_report(tmp_path: Path) -> None:
    run = read_run(sample_run(tmp_path).paths)
    assert summary_of(detail(run)).overall == detail(run).overall
    assert [row.problem for row in summary_of(detail(run)).problems] == [p.problem for p in detail(run).problems]


def test_an_incomplete_run_says_so_at_the_top(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    run.close(complete=False, reason="the gateway refused the key")
    write_reports(tmp_path)
    assert run.paths.report_text.read_text().splitlines()[2] == "INCOMPLETE: the gateway refused the key"


def test_text_of_models_cannot_break_the_text_report(tmp_path: Path) -> None:
    name = "7_" + "very_long_name_" * 12
    run = RunFolder(tmp_path, run_config((name,)))
    evil = "\x1b]0;owned\x07\x1b[2J" + "w" * 250 + "\r\nnext\x9b31m" + " words" * 30
    run.start()
    run.sample(name, 1, 1, incorrect(name, FailureKind.LOAD_ERROR, Stage.LOAD, evil))
    run.end(name, error="tool said \x1b[5mblink")
    write_reports(tmp_path)
    text = run.paths.report_text.read_text()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 for c in text)
    assert "owned" not in text
    for table in (run.paths.summary_csv, run.paths.samples):
        assert "\x1b" not in table.read_text()


def test_no_run_is_missing_input(tmp_path: Path) -> None:
    with pytest.raises(InputMissing):
        write_reports(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_cut_at_any_byte_still_gives_a_report(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    whole = run.paths.journal.read_bytes()
    for cut in range(0, len(whole), 1009):
        run.paths.journal.write_bytes(whole[:cut])
        report = write_reports(tmp_path)
        torn = cut > 0 and b"\n" not in whole[cut - 1 : cut + 1]  # else a line ends at the cut
        assert sum("cut in the middle" in damage.message for damage in report.damage) == torn
        assert report.overall.solved == 2  # verdicts are files


def test_a_comparison_validates_and_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder, speeds in zip(folders, ([2.0, 0.5, None], [1.0, None, None], [None, 3.0, 1.0, 2.0]), strict=True):
        compared_run(folder, speeds)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    _, page = write_comparison(folders)
    data = page.with_suffix(".json").read_bytes()
    first = page.read_bytes()
    assert page == tmp_path / "a" / "comparison.html"
    write_comparison(folders)
    assert (page.read_bytes(), page.with_suffix(".json").read_bytes()) == (first, data)
    assert {path: path.read_bytes() for path in before} == before  # the runs stay as they are
    schema = json.loads(COMPARISON_SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    found = json.loads(data)
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "surprise": 1}, schema)
    assert [run["name"] for run in found["runs"]] == ["A", "B", "C"]
    assert [row["problem"] for row in found["problems"]] == ["1_P", "2_P", "3_P", "4_P"]
    assert (found["schema_version"], [one["run"] for one in found["against"]]) == (2, ["B", "C"])


@pytest.mark.parametrize("name", ["report.html", "run.html", "summary.html", "detailed_report.html", "x.json", "x"])
def test_a_comparison_replaces_no_file_of_a_run(tmp_path: Path, name: str) -> None:
    compared_run(tmp_path / "a", [2.0])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=name):
        write_comparison([tmp_path / "a", tmp_path / "a"], tmp_path / "a" / name)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(InputMissing, match="no folder"):
        write_comparison([tmp_path / "a", tmp_path / "a"], tmp_path / "none" / "x.html")
