"""hkbench classify on problem files."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path

from support import doors
from support.small_problems import AFFINE, LINEAR

ENDLESS = AFFINE.replace("return 2.0 * x + 1.0", "import time; time.sleep(600); return x")


def classify(*arguments: object) -> subprocess.CompletedProcess[str]:
    return doors.hkbench("classify", "--device", "cpu", *arguments)


def problems(root: Path) -> Path:
    folder = root / "level1"
    folder.mkdir()
    large = LINEAR.replace("torch.randn(8, 12)", "torch.randn(4096, 4096)").replace("[12, 5]", "[4096, 4096]")
    for name, source in (("1_Affine", AFFINE), ("2_Linear", large), ("3_Matmul_endless", ENDLESS)):
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
    (folder / "4_Broken.py").write_text(textwrap.dedent(AFFINE.replace("torch.randn(16, 24)", "1 / 0")))
    return root


def test_a_folder_of_problems(tmp_path: Path) -> None:
    done = classify("--problems", problems(tmp_path), "--limit-seconds", 10, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["problem"]: row for row in json.loads(done.stdout)}
    found = {name: (row["classification"]["category"], row["classification"]["by"]) for name, row in rows.items()}
    assert found == {
        "1_Affine": ("fusion-memory", "graph"),
        "2_Linear": ("compute-intensive", "graph"),
        "3_Matmul_endless": ("compute-intensive", "name"),
        "4_Broken": ("generic", "generic"),
    }
    assert rows["2_Linear"]["graph"]["products"] == [{"batch": 1, "m": 4096, "n": 4096, "k": 4096, "calls": 1}]
    assert "no answer within 10 s" in rows["3_Matmul_endless"]["error"]
    assert "get_inputs() raised" in rows["4_Broken"]["error"]


def test_a_range_as_a_table(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    done = classify(1, 2, "--problems", problems(tmp_path), "--markdown", table)
    assert done.returncode == 0, done.stderr
    assert "2_Linear  compute-intensive  graph    matmul; 683 FLOP/byte" in done.stdout
    assert "2 problems at cpu sizes: 1 fusion-memory, 1 compute-intensive; 0 doubtful" in done.stdout
    assert "| 1_Affine | fusion-memory | graph | 2 elementwise;" in table.read_text()


def test_a_file_that_is_wrong_is_64(tmp_path: Path) -> None:
    path = tmp_path / "categories.toml"
    path.write_text("[ridge.full]\nfloat32 = -1\n")
    done = classify("--categories", path)
    assert done.returncode == 64
    assert f"{path}: 'ridge.full.float32'" in done.stderr
