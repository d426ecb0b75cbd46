"""Dependencies point one way: the contracts of pyproject.toml hold, and each of them would notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Lints the package and the contracts in `folder`."""
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, check=False)


def broken(output: str) -> set[str]:
    return {line.partition(" BROKEN")[0] for line in output.splitlines() if " BROKEN" in line}


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


READERS = "readers of a run read it from the store only"
UNTRUSTED = "the untrusted runner and its cage use nothing of the harness"
VIOLATIONS = [
    ("records/base.py", "import hkbench.errors", "records stand alone"),
    ("store/files.py", "import hkbench.llm", "rooms"),
    ("evaluation/job.py", "import hkbench.engine", "rooms"),
    ("categories/rules.py", "import hkbench.prompts", "rooms"),
    ("report/write.py", "import hkbench.monitor", "rooms"),
    ("monitor/live.py", "import hkbench.prompts", READERS),
    ("evaluation/job.py", "import hipkittens_build", "what candidates import has no part in judging"),
    ("protocol/wire.py", "import hkbench.errors", UNTRUSTED),
    ("sandbox/linux.py", "import hkbench.stats", UNTRUSTED),
    ("analysis/tolerances.py", "import torch", "torch belongs to those who measure"),  # by way of the lab's prompts
    ("batch/plan.py", "import hkbench.cli", "rooms"),
]


def test_each_violation_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "hkbench", tmp_path / "hkbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    missed = []
    for name, line, contract in VIOLATIONS:
        path = tmp_path / "hkbench" / name
        text = path.read_text()
        path.write_text(f"{text}\n{line}\n")
        if contract not in broken(lint(tmp_path).stdout):
            missed.append((name, line, contract))
        path.write_text(text)
    assert missed == []


def test_a_new_room_has_to_find_its_place(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "hkbench", tmp_path / "hkbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "hkbench" / "attic").mkdir()
    (tmp_path / "hkbench" / "attic" / "__init__.py").touch()
    assert "rooms" in broken(lint(tmp_path).stdout)
