"""hkbench compare on folders that the tests' helpers made."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from support import doors
from support.run_folder import RunFolder, correct, run_config

from hkbench.cli.main import main
from hkbench.records import SizeSet
from hkbench.report.write import COMPARISON_SCHEMA

NAMES = tuple(f"{n}_P" for n in range(1, 9))


def _run(root: Path, factor: float, sizes: SizeSet = SizeSet.CPU) -> Path:
    run = RunFolder(root, run_config(NAMES, samples=1, attempts=1).model_copy(update={"sizes": sizes}))
    run.start()
    for n, name in enumerate(NAMES):
        run.begin(name)
        run.sample(name, 1, 1, correct(name, (2.0 + 0.1 * n) * factor))
        run.end(name, solved=True)
    run.close()
    return root


def test_the_users_way(tmp_path: Path) -> None:
    a, b = _run(tmp_path / "a", 1.0), _run(tmp_path / "b", 0.75)
    plain = doors.hkbench("compare", a, b)
    assert plain.returncode == 0, plain.stderr
    assert "B's kernels are slower: 0.75x [0.75, 0.75] of A's speed-up over 8 problems" in " ".join(
        plain.stdout.split()
    )
    assert doors.hkbench("compare", a, b, "--fail-if-worse").returncode == 1
    assert doors.hkbench("compare", b, a, "--fail-if-worse").returncode == 0


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = _run(tmp_path / "a", 1.0), _run(tmp_path / "b", 0.75)
    assert main(["compare", str(a), str(b), "--json", "--fail-if-worse"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["worse"] is True
    (against,) = found["against"]
    assert against["whole"]["speedup"]["difference"]["value"] == pytest.approx(0.75)
    assert against["whole"]["conclusion"].endswith("an interval that leaves out 1.")
    jsonschema.validate(found, json.loads(COMPARISON_SCHEMA.read_text()))


def test_other_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = _run(tmp_path / "a", 1.0), _run(tmp_path / "b", 1.0, SizeSet.FULL)
    assert main(["compare", str(a), str(b)]) == 64
    assert "sizes: cpu in A, full in B" in capsys.readouterr().err
    assert main(["compare", str(a), str(b), "--force"]) == 0
    assert "sizes" in capsys.readouterr().out


def test_nothing_in_common_is_said_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = _run(tmp_path / "a", 1.0)
    b = RunFolder(tmp_path / "b", run_config(("1_P", "2_Q"))).root
    assert main(["compare", str(a), str(b)]) == 64
    said = capsys.readouterr().err
    assert "1_P: not judged in B" in said and "2_Q: only in B" in said


def test_a_missing_run_is_66(tmp_path: Path) -> None:
    assert main(["compare", str(_run(tmp_path / "a", 1.0)), str(tmp_path / "none")]) == 66


def test_several_are_each_compared_with_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = (_run(tmp_path / name, factor) for name, factor in (("a", 1.0), ("b", 1.25), ("c", 0.75)))
    runs = [str(a), str(b), str(c)]
    assert main(["compare", *runs]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 runs, each against A" in said
    assert "B's kernels are faster: 1.25x" in said and "C's kernels are slower: 0.75x" in said
    assert main(["compare", *runs, "--fail-if-worse"]) == 1
    assert main(["compare", *runs[:2], "--fail-if-worse"]) == 0
