"""assembly.s: what a build left, as text, within bounds."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from support.compilers import needs_gcc

from hkbench.engine import assembly
from hkbench.engine.assembly import assembly_of
from hkbench.engine.confinement import Cages, survey
from hkbench.toolchain.process import run_tool

SOURCE = 'extern "C" int tripled(int x) { return 3 * x; }\n'


@pytest.fixture(scope="module")
def cages() -> Cages:
    return Cages(asyncio.run(survey()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "candidate"
    made.mkdir()
    return made


def read(folder: Path, cages: Cages) -> str | None:
    shutil.rmtree(folder.with_name("assembly"), ignore_errors=True)
    return asyncio.run(assembly_of(folder, folder.with_name("assembly"), None, cages))


def built(folder: Path) -> None:
    (folder / "ext.cpp").write_text(SOURCE)
    done = run_tool(["g++", "-O2", "-shared", "-fPIC", "ext.cpp", "-o", "ext.so"], folder, 60)
    assert done.returncode == 0, done.output


@needs_gcc
def test_a_library_is_disassembled_and_a_text_is_taken_as_it_is(folder: Path, cages: Cages) -> None:
    built(folder)
    (folder / "triton").mkdir()
    (folder / "triton" / "add.ptx").write_text(".visible .entry add()\n")
    (folder / "triton" / "cuda_utils.so").write_bytes(b"\x7fELF")
    text = read(folder, cages)
    assert text is not None
    assert "# ext.so\n" in text and "<tripled>:" in text and "# add.ptx\n.visible .entry add()" in text
    assert "cuda_utils" not in text


def test_where_nothing_was_built_there_is_no_text(folder: Path, cages: Cages) -> None:
    assert read(folder, cages) is None


def test_what_a_candidate_puts_there_is_bounded(
    folder: Path, cages: Cages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "outside.ptx").write_text("secret")
    (folder / "link.ptx").symlink_to(tmp_path / "outside.ptx")  # no link is followed
    (folder / "junk.so").write_bytes(b"\x7fELF and no more")
    (folder / "long.ptx").write_text("x" * 2000)
    monkeypatch.setattr(assembly, "LIMIT", 1000)
    text = read(folder, cages)
    assert text is not None and "secret" not in text
    assert "# junk.so: not disassembled: nm ended with code 1" in text
    assert "\n# cut: " in text and len(text) < 1100
    for number in range(4):
        (folder / f"{number}.ptx").write_text(f"kernel {number}\n")
    monkeypatch.setattr(assembly, "MAX_FILES", 3)
    text = read(folder, cages)
    assert text is not None and "kernel 2" in text and "kernel 3" not in text and "more than 3 files" in text


def test_a_missing_tool_is_said_there(folder: Path, cages: Cages, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "device.so").write_bytes(b"\x7fELF .nv_fatbin")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CUDA_HOME", str(folder))
    text = read(folder, cages)
    assert text is not None and "# device.so: not disassembled: there is no cuobjdump here" in text
