from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from support.run_folder import RunFolder, compiled, correct, run_config, sample_run

from hkbench.report.build import detail
from hkbench.report.page.figures import _ks, figures
from hkbench.store.reader import read_run


def test_tables_hold_the_reports_numbers(tmp_path: Path) -> None:
    made = figures(detail(read_run(sample_run(tmp_path).paths)))
    assert list(made) == ["fast-p", "attempts", "samples", "scores"]
    assert made["fast-p"].rows[3] == ("1", "50.0 %")
    assert made["attempts"].rows[1] == ("2", "3", "2", "+1", "3", "1.14x")


def test_one_attempt_of_one_sample_has_no_curves(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU",), samples=1, attempts=1))
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    assert list(figures(detail(read_run(run.paths)))) == ["fast-p"]


def test_what_samples_gained_by_hand(tmp_path: Path) -> None:
    found = figures(detail(read_run(sample_run(tmp_path).paths)))["samples"]
    # attempt 1: one of two 2x; two incorrect; two of two slow; two incorrect. Best of one: mean log is ln 2 / 2 / 4.
    assert found.rows == (
        ("1", "4", "37.5 %", "12.5 %", f"{math.exp(math.log(2) / 8):.2f}x"),
        ("2", "4", "50.0 %", "25.0 %", f"{math.exp(math.log(2) / 4):.2f}x"),
    )


def test_many_samples_get_few_points() -> None:
    assert _ks(1) == [1]
    assert _ks(3) == [1, 2, 3]
    assert _ks(100) == [*range(1, 17), 32, 64, 100]


def test_without_numbers_there_is_no_figure(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert figures(detail(read_run(run.paths))) == {}
    run.sample("1_ReLU", 1, 1, compiled("1_ReLU"))
    assert figures(detail(read_run(run.paths))) == {}


@pytest.mark.parametrize("module", ["matplotlib", "pygments.lexers.python"])
def test_other_commands_do_not_pay_for_the_page(module: str) -> None:
    code = f"import sys, hkbench.cli.main, hkbench.cli.batch, hkbench.cli.report; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
