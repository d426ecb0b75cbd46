from __future__ import annotations

from pathlib import Path

from support.report_page import page_run
from support.run_folder import RunFolder

from hkbench.report.build import detail
from hkbench.report.model import Report
from hkbench.report.page import sample as page_sample
from hkbench.report.page.sample import Content, chosen, conditions, read_content
from hkbench.store.reader import read_run


def report_of(run: RunFolder) -> Report:
    return detail(read_run(run.paths))


def content(run: RunFolder, problem: int, sample: int) -> Content:
    report = report_of(run)
    part = report.problems[problem]
    shown = part.samples[sample]
    return read_content(run.paths, part.problem, shown, part.attempts[shown.attempt - 1].parent)


def test_all_are_chosen_up_to_the_limit_then_best_and_last(tmp_path: Path) -> None:
    problems = report_of(page_run(tmp_path)).problems
    assert len(chosen(problems, 14)) == 14
    assert chosen(problems, 13) == {
        ("1_ReLU", 1, 1), ("1_ReLU", 1, 2), ("2_Sum", 2, 1), ("2_Sum", 2, 2), ("3_Softmax", 2, 1), ("3_Softmax", 2, 2),
        ("4_RMSNorm_fp32", 2, 2),
    }  # fmt: skip


def test_floor_code_and_files(tmp_path: Path) -> None:
    found = content(page_run(tmp_path), 0, 0)
    assert found.floor_share == 0.4
    assert found.code is not None and found.parent is None and found.diff is None
    assert [name for name, _ in found.files] == ["code.py", "result.json"]
    assert found.output is not None and "\x1b" not in found.output.text


def test_a_verdict_that_the_reader_refused_is_not_shown(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    result = run.paths.problem("1_ReLU").sample(1, 1).result
    result.write_text(result.read_text().replace('"median":{"value":0.0005', '"median":{"value":0.0'))
    found = content(run, 0, 0)
    assert found.verdict is None and found.floor_share is None and found.code is not None


def test_the_parent_is_the_sample_that_the_prompt_tells_of(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    changed, same, first = content(run, 1, 2), content(run, 1, 3), content(run, 1, 0)
    assert changed.parent == same.parent == "1.1" and first.parent is None
    assert changed.diff is not None and "2.0f" in changed.diff
    assert same.diff is None


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    log = content(run, 0, 1).log
    assert log is not None and log.left_out > 0
    assert log.text.startswith("first error") and log.text.endswith("last line")
    assert len(log.text) < page_sample.LOG_LIMIT + 50
    run.paths.problem("1_ReLU").sample(1, 1).code.write_text("x = 1\n" * 20_000)
    assert content(run, 0, 0).code_left_out == 120_000 - page_sample.CODE_LIMIT


def test_conditions_leave_out_what_is_not_known(tmp_path: Path) -> None:
    verdict = content(page_run(tmp_path), 0, 0).verdict
    assert verdict is not None
    rows = dict(conditions(verdict))
    assert rows["Timing"] == "500 µs vs 1.00 ms for PyTorch, medians of 3 runs of each side by perf_counter"
    assert rows["Floor"] == "200 µs by bytes"
    assert rows["Work"].startswith("own kernels 90.0 %")
    assert "Clocks" not in rows and "Reference" not in rows
