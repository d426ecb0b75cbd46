"""generate_report.py of several runs."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.compared_runs import compared_run
from support.doors import ROOT

from hkbench.cli.main import main
from hkbench.records import SizeSet


def test_the_users_way(tmp_path: Path) -> None:
    a, b = (compared_run(tmp_path / name, speeds).root for name, speeds in (("a", [2.0, None]), ("b", [1.0, 3.0])))

    def report(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "generate_report.py", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    done = report(str(a), str(b))
    assert done.returncode == 0, done.stderr
    page = a / "comparison.html"
    assert done.stdout.splitlines()[-1] == f"comparison for a browser: {page}"
    assert "solved in B only: 2_P" in done.stdout
    assert "<title>test-model (a), test-model (b)</title>" in page.read_text()
    data = json.loads(page.with_suffix(".json").read_text())
    compared = subprocess.run(
        [sys.executable, "-c", "import sys; from hkbench.cli.main import main; sys.exit(main())", "compare", str(a),
         str(b), "--json"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(compared.stdout) == data
    elsewhere = tmp_path / "ab.html"
    quiet = report(str(a), str(b), "--quiet", "--output", str(elsewhere))
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert elsewhere.is_file() and elsewhere.with_suffix(".json").is_file()
    assert not (a / "report.html").exists()


def test_other_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = compared_run(tmp_path / "a", [2.0]).root, compared_run(tmp_path / "b", [2.0], sizes=SizeSet.FULL).root
    assert main(["report", str(a), str(b)]) == 64
    assert "sizes: cpu in A, full in B" in capsys.readouterr().err
    assert not (a / "comparison.html").exists()
    assert main(["report", str(a), str(b), "--force"]) == 0
    page = (a / "comparison.html").read_text()
    assert "not measured alike (sizes: cpu in test-model (a), full in test-model (b))" in page


@pytest.mark.parametrize("more", [["--output", "x.html"], ["--force"]])
def test_what_is_for_several_is_refused_of_one(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    a = compared_run(tmp_path / "a", [2.0]).root
    assert main(["report", str(a), *more]) == 64
    assert "for several runs" in capsys.readouterr().err


def test_a_missing_run_is_66(tmp_path: Path) -> None:
    assert main(["report", str(compared_run(tmp_path / "a", [2.0]).root), str(tmp_path / "none")]) == 66


def test_a_folder_that_may_not_be_written_is_66(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = compared_run(tmp_path / "a", [2.0]).root

    def refuse(_: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "summary.json")

    monkeypatch.setattr("hkbench.cli.report.write_reports", refuse)
    assert main(["report", str(run)]) == 66
    assert "(Read-only file system)" in capsys.readouterr().err


def test_a_run_that_cannot_be_read_is_66(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = compared_run(tmp_path / "a", [2.0]).paths
    run.run.unlink()
    run.run.mkdir()
    assert main(["show", str(run.root)]) == 66
    assert "Traceback" not in capsys.readouterr().err
