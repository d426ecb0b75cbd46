"""What stands in for a compiler, as the process that ninja starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.fastbuild.inside import compiler_wrapper


@pytest.mark.parametrize(("script", "status"), [("echo done", 0), ("echo wrong; exit 3", 3), ("kill -9 $$", 137)])
def test_a_command_without_a_quick_way_is_run_and_its_failure_marked(tmp_path: Path, script: str, status: int) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    words = [sys.executable, "-I", "-S", compiler_wrapper.__file__, "nvcc", str(compiler), "-c", "a.cu", "-o", "a.o"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    assert (tmp_path / f"a.o{compiler_wrapper.REFUSED}").exists() == (status != 0)
    if status == 3:
        assert done.stdout == "wrong\n"
