"""scripts/code_figures.py on a small package, at a commit and as it lies on the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WORK = '''"""Do the work."""

import os
from typing import Any

from hkbench.records import Backend, DeviceKind


def work(backend: Backend, kind: DeviceKind) -> Any:
    """Return something."""
    if backend is Backend.HIP or kind in (DeviceKind.ROCM, DeviceKind.CUDA):
        return _once()
    match backend:
        case Backend.CPP:
            return _twice() + _twice()
    return {DeviceKind.CPU: Backend.TRITON}[kind]


def _once() -> int:
    """Whether it is once."""
    try:
        return 1
    except (ValueError, Exception):
        return 0


def _twice() -> int:
    return 2


def _recursive(depth: int) -> int:
    return _recursive(depth - 1)


class Box:
    @property
    def size(self) -> int:
        """The size."""
        try:
            return 0
        except ValueError:
            return 1


if __name__ == "__main__":
    os.fork()
'''
ENGINE = 'server = ForkServer("hkbench.runner.main", {})\n' + "x = 1\n" * 39
PROMPT = '{% if backend == "hip" %}a{% elif device.kind %}b{% endif %}{% if other %}c{% endif %}'


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The package at commit `before`, and a module less and a branch more on the disk."""
    write(
        tmp_path,
        {
            "hkbench/__init__.py": "",
            "hkbench/room/work.py": WORK,
            "hkbench/room/engine.py": ENGINE,
            "hkbench/small.py": "from typing import Any\nx: Any = 1\n",
            "hkbench/devices/base.py": "x = kind is DeviceKind.CPU\n",
            "prompts/_base.txt": PROMPT,
            "tests/test_it.py": "y = 1\n" * 1000,
        },
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "room: begin")
    git(tmp_path, "tag", "before")
    (tmp_path / "hkbench/small.py").unlink()
    write(tmp_path, {"hkbench/room/more.py": "x = kind is DeviceKind.CPU\n"})
    return tmp_path


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "code_figures.py"), "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line]
    return {name: values for name, *values in cells}


def test_a_commit_and_the_tree_stand_side_by_side(repository: Path) -> None:
    done = run(repository, "--ref", "before")
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(done.stdout)
    lines = len(WORK.splitlines()) + 41
    assert found == {
        "figure": ["before", "working tree"],
        "---": ["---:", "---:"],
        "lines of hkbench/": [str(lines + 2), str(lines + 1)],
        "modules": ["4", "4"],
        "lines of a module: median, 95 %, largest": ["21, 46, 46 (`room/work.py`)", "20, 46, 46 (`room/work.py`)"],
        "modules under 30 lines": ["2", "2"],
        "functions": ["5"] * 2,
        "lines of a function: median, 95 %, largest": ["6, 8, 8 (`room/work.py:work`)"] * 2,
        "one-caller helpers": ["1"] * 2,
        "one-caller helpers of at most 4 lines": ["0"] * 2,
        "broad excepts": ["1"] * 2,
        "`Any` per thousand lines": ["before", "working tree"],
        "imperative docstrings of functions": ["50 % of 2"] * 2,
        "branches on Backend: places, files": ["2 in 1"] * 2,
        "branches on DeviceKind: places, files": ["3 in 1", "4 in 2"],
        "branches on backend or device in prompts": ["2"] * 2,
        "process entry points": ["2"] * 2,
        "small": ["500.0", "-"],
        "room": [f"{1000 / (lines - 1):.1f}", f"{1000 / lines:.1f}"],
    }


def test_a_commit_that_git_does_not_know_is_named(repository: Path) -> None:
    done = run(repository, "--ref", "nowhere")
    assert done.returncode == 66
    assert "nowhere" in done.stderr
