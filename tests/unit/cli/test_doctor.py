"""hkbench doctor, and what refuses to run below a level of isolation."""

from __future__ import annotations

import argparse
import os
import stat
from pathlib import Path

import pytest

from hkbench.cli import doctor, main
from hkbench.cli.arguments import add_judge, judge_settings
from hkbench.engine.confinement import Cages, require, survey
from hkbench.errors import IsolationUnavailable
from hkbench.records import Isolation, IsolationLevel, Protection, Track

PARTIAL = Isolation(
    level=IsolationLevel.PARTIAL,
    layers=("bubblewrap", "landlock 4", "guard"),
    holds=(Protection.LIMITS, Protection.FILES),
    missing=("signals: they reach other processes",),
)


def test_it_prints_what_there_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main.main(["doctor", "--no-devices"]) == 0
    text = capsys.readouterr().out
    for word in ("isolation ", "layers ", "guard", "python ", "torch ", "g++:", "nvcc:", "ninja:", "ncu:", "GiB free"):
        assert word in text


def test_a_compiler_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "nvcc"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert doctor._program("compiler", "nvcc", "--version").endswith(
        f"nvcc: does not say its version (exit code 3) ({broken})"
    )
    assert doctor._program("compiler", "no-such-compiler", "--version").endswith("no-such-compiler: not found")


async def test_the_survey_is_an_isolation() -> None:
    found = await survey()
    assert found.layers[-1] == "guard"
    assert (found.level is IsolationLevel.FULL) == (set(found.holds) == set(Protection))


def test_a_level_that_is_not_reached() -> None:
    require(PARTIAL, IsolationLevel.LIMITS)
    require(PARTIAL, IsolationLevel.PARTIAL)
    with pytest.raises(IsolationUnavailable, match=r"`partial`.*\n  signals: they reach other") as caught:
        require(PARTIAL, IsolationLevel.FULL)
    assert caught.value.exit_code == 69


def test_each_runner_sees_its_own_code_only(tmp_path: Path) -> None:
    cage = Cages(PARTIAL).cage(tmp_path / "private", str(tmp_path / "code.py"))
    assert cage.layers == ("landlock 4",)
    assert cage.writable[0] == str(tmp_path / "private")
    assert str(tmp_path / "code.py") in cage.readable
    assert not any(Path(tmp_path / "other.py").is_relative_to(path) for path in cage.readable)


def test_the_flags() -> None:
    parser = argparse.ArgumentParser()
    add_judge(parser)
    settings = judge_settings(parser.parse_args(["--require-isolation", "full", "--track", "any"]))
    assert (settings.require_isolation, settings.track) == (IsolationLevel.FULL, Track.ANY)
    defaults = judge_settings(parser.parse_args([]))
    assert (defaults.require_isolation, defaults.track) == (IsolationLevel.LIMITS, Track.OWN)
