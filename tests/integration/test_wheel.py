"""The wheel, built and installed into an environment of its own: a batch runs there with nothing of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from support import doors

pytestmark = pytest.mark.slow

ROOT = doors.ROOT
SOURCES = ("hkbench", "hipkittens_build", "prompts", "problems")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE")


def done(command: list[str | Path], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command that has to succeed; its output."""
    ended = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=doors.LIMIT, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packaged, so that no earlier build has a part in the wheel."""
    folder = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel, and finds what hkbench depends on beside this one."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    done([*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, "."], source)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    done([*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", *folder.glob("*.whl")], folder)
    packages = done([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip()
    Path(packages, "dependencies.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n"
    )  # its own .pth count for nothing
    return python


def environment() -> dict[str, str]:
    """The user's environment; ninja, which pip would install beside the wheel, is found on PATH."""
    kept = {name: value for name, value in doors.environment().items() if name != "PYTHONPATH"}
    return kept | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def test_the_source_distribution_holds_what_a_wheel_needs(source: Path, tmp_path: Path) -> None:
    make = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    done([sys.executable, "-c", make, tmp_path], source)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {*FILES, "prompts/config.json", "problems/level1/1_Scaled_residual_bf16.py"} <= names
    assert "hkbench/py.typed" in names and "hipkittens_build/launcher.h" in names


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("g++") is None, reason="the candidate is C++")
def test_a_batch_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    replies = shutil.copy(ROOT / "examples" / "replies" / "reflect.toml", tmp_path)
    hkbench = installed.with_name("hkbench")
    call: list[str | Path] = [hkbench, "run", "1", "--device", "cpu", "--attempts", "1", "--samples", "1"]
    call += ["--replay", replies, "--results", "first", "--timing-runs", "3", "--trials", "2", "--warmup", "1"]
    done(call, tmp_path, environment())
    read = (
        "import hkbench, pathlib; from hkbench.problems import SHIPPED; "
        "from hkbench.prompts.config import SHIPPED as P; home = pathlib.Path(hkbench.__file__).parent; "
        "run = hkbench.load_run('first'); "
        "print(home, SHIPPED.is_relative_to(home), P.is_relative_to(home), run.samples.status[0])"
    )
    home, *found = done([installed, "-c", read], tmp_path, environment()).split()
    assert Path(home).is_relative_to(installed.parents[1])
    assert found[:2] == ["True", "True"] and found[2] in {"fast", "slow"}
