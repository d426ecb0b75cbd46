"""eval.py as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from support import doors

from hkbench.records import FailureKind, Stage, Status, Verdict

QUICK = ("--device", "cpu", *doors.QUICK)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return doors.problem(tmp_path, "1_Twice", 1)


def code(folder: Path, source: str) -> Path:
    path = folder / "code.py"
    path.write_text(source)
    return path


def judged(folder: Path, problem: Path, source: str) -> tuple[subprocess.CompletedProcess[str], Verdict]:
    """What eval.py says and writes; nothing is left in the temporary folder."""
    output, scratch = folder / "verdict.json", folder / "scratch"
    scratch.mkdir()
    words = ("--code", code(folder, source), "--problem", problem, "--output", output, *QUICK)
    done = doors.call("eval", *words, env={"TMPDIR": str(scratch)})
    assert output.exists(), done.stderr
    assert list(scratch.iterdir()) == []
    return done, Verdict.model_validate_json(output.read_text())


def test_fast_is_0(tmp_path: Path, problem: Path) -> None:
    done, verdict = judged(tmp_path, problem, doors.fast(1))
    assert done.returncode == 0
    assert "correct, at least as fast" in done.stdout
    steps = [line.split(" s  ", 1)[1] for line in done.stderr.splitlines()]
    assert steps[0] == "start the device"
    assert [step for step in steps if ":" not in step][1:] == ["read", "load", "load", "compare", "time"]
    assert "compare: trial 1 of 2" in steps
    assert verdict.status is Status.FAST
    assert verdict.speedup is not None and verdict.speedup.value >= 1.0
    assert verdict.candidate is not None and len(verdict.candidate.samples) in (3, 6, 9)
    assert [trial.passed for trial in verdict.trials] == [True, True]
    assert len(set(verdict.conditions.seeds)) == 2


@pytest.mark.slow
def test_a_bare_kernel_is_bound_and_said_to_be(tmp_path: Path, problem: Path) -> None:
    file, output = tmp_path / "twice.cpp", tmp_path / "verdict.json"
    loop = "for (int64_t i = 0; i < n_elements; ++i) out[i] = 2 * x[i] + 1;"
    file.write_text(f"void twice(const float* x, float* out, int64_t n_elements) {{ {loop} }}\n")
    done = doors.call("eval", "--code", file, "--problem", problem, "--output", output, *QUICK)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    warnings = Verdict.model_validate_json(output.read_text()).conditions.warnings
    assert any("twice(x, out, n_elements) has no ModelNew" in warning for warning in warnings)


def test_device_and_warm_up_calls_are_chosen(tmp_path: Path, problem: Path) -> None:
    """What is asked for is recorded; a device that is not there ends the command, which names those that are."""
    output = tmp_path / "verdict.json"
    words = ("--code", code(tmp_path, doors.fast(1)), "--problem", problem, "--output", output, *QUICK)
    assert doors.call("eval", *words, "--device-index", "0", "--warmup", "1").returncode == 0
    verdict = Verdict.model_validate_json(output.read_text())
    assert verdict.conditions.warmups == 1
    assert verdict.candidate is not None and verdict.candidate.warmups == 1
    absent = doors.call("eval", *words, "--device-index", "0,3")
    assert absent.returncode == 69
    assert "device 3" in absent.stderr and "0 (" in absent.stderr
    assert absent.stdout == ""


def test_slow_is_1(tmp_path: Path, problem: Path) -> None:
    done, verdict = judged(tmp_path, problem, doors.slow(1))
    assert done.returncode == 1
    assert "correct, slower" in done.stdout
    assert verdict.status is Status.SLOW
    assert verdict.speedup is not None and verdict.speedup.value < 1.0
    assert verdict.profile is not None


def test_wrong_is_2_and_shows_where(tmp_path: Path, problem: Path) -> None:
    done, verdict = judged(tmp_path, problem, doors.candidate("y = x * 2 + 1; y[5, 7] = 1000.0; return y"))
    assert done.returncode == 2
    assert "not correct: wrong_values at stage compare" in done.stdout
    assert verdict.failure is not None and verdict.failure.mismatch is not None
    assert verdict.failure.mismatch.index == (5, 7)
    assert verdict.failure.mismatch.got == 1000.0
    assert verdict.failure.mismatch.wrong_elements == 1
    assert verdict.speedup is None
    assert verdict.conditions.warmups is None  # it was not timed


def test_syntax_error_is_2(tmp_path: Path, problem: Path) -> None:
    done, verdict = judged(tmp_path, problem, "class ModelNew(:\n")
    assert done.returncode == 2
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.stage) == (FailureKind.SYNTAX_ERROR, Stage.PARSE)


def test_escapes_of_a_candidate_do_not_reach_the_terminal(tmp_path: Path, problem: Path) -> None:
    done, _ = judged(tmp_path, problem, doors.raising("\x1b[31mred\x1b]0;title\x07 alarm"))
    assert done.returncode == 2
    assert "red alarm" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


def test_an_edited_file_is_judged_as_it_is_now(tmp_path: Path, problem: Path) -> None:
    """Also when its length and time stamp are those of before, by which Python would take its old bytecode."""
    words = ("--code", code(tmp_path, doors.fast(1)), "--problem", problem, *QUICK)
    stamp = (tmp_path / "code.py").stat().st_mtime_ns
    assert doors.call("eval", *words).returncode == 0
    os.utime(code(tmp_path, doors.fast(7)), ns=(stamp, stamp))
    assert doors.call("eval", *words).returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code.py", "level1"]


@pytest.mark.parametrize("missing", ["--code", "--problem", "--output"])
def test_a_missing_file_is_66(tmp_path: Path, problem: Path, missing: str) -> None:
    given = {"--code": code(tmp_path, doors.fast(1)), "--problem": problem, "--output": tmp_path / "out.json"}
    given[missing] = tmp_path / "nowhere" / "file.py"
    done = doors.call("eval", *(word for pair in given.items() for word in pair), *QUICK)
    assert done.returncode == 66
    assert "nowhere" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--code", "a.py", "--problem", "b.py", "--device", "abacus"],
        ["--code", "a.py", "--problem", "b.py", "--trials", "0"],
        ["--code", "a.py", "--problem", "b.py", "--run-timeout", "nan"],
        ["--unknown"],
    ],
)
def test_bad_arguments_are_64(arguments: list[str]) -> None:
    done = doors.call("eval", *arguments)
    assert done.returncode == 64
    assert "see eval.py --help" in done.stderr


def test_arch_without_build_only_is_64(tmp_path: Path, problem: Path) -> None:
    done = doors.call("eval", "--code", code(tmp_path, doors.fast(1)), "--problem", problem, "--arch", "gfx942")
    assert done.returncode == 64
    assert "--build-only" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_device_is_69(tmp_path: Path, problem: Path) -> None:
    done = doors.call("eval", "--code", code(tmp_path, doors.fast(1)), "--problem", problem, "--device", "cuda")
    assert done.returncode == 69
    assert "cuda" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_ctrl_c_is_130_and_leaves_nothing_running(tmp_path: Path, problem: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    source = doors.candidate("open('begun', 'w').close(); import time; time.sleep(60)")
    words = ("--code", code(tmp_path, source), "--problem", problem, "--device", "cpu", "--run-timeout", "100")
    process = doors.start("eval", *words, env={"TMPDIR": str(scratch)})
    doors.wait_for_file(scratch, "begun", process)
    family = doors.family(process)
    assert len(family) >= 4  # two fork servers, the evaluator, the runner
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=doors.LIMIT)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert doors.outliving(family) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_closed_pipe_is_not_a_good_verdict(tmp_path: Path, problem: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = doors.command("eval", "--code", code(tmp_path, doors.wrong(1)), "--problem", problem, *QUICK)
    done = subprocess.run(
        words,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=doors.environment(),
        timeout=doors.LIMIT,
        check=False,
        text=True,
    )
    os.close(writer)
    assert done.returncode >= 64
    assert "Traceback" not in done.stderr


def test_any_interpreter_from_any_folder(tmp_path: Path, problem: Path) -> None:
    """The system's Python, which has no torch, hands over to the project's own environment."""
    python = Path("/usr/bin/python3")
    if not python.exists() or not (doors.ROOT / ".venv" / "bin" / "python").exists():
        pytest.skip("needs /usr/bin/python3 and the project's .venv")
    code(tmp_path, doors.fast(1))
    words = ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", str(python), str(doors.ROOT / "eval.py")]
    words += ["--code", "code.py", "--problem", "level1/1_Twice.py", "--output", "out.json", *QUICK]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=doors.LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    assert Verdict.model_validate_json((tmp_path / "out.json").read_text()).status is Status.FAST


def test_help_says_the_exit_codes() -> None:
    done = doors.call("eval", "--help")
    assert done.returncode == 0
    assert "2 not correct" in " ".join(done.stdout.split())


def test_an_internal_error_is_not_a_verdict(tmp_path: Path, problem: Path) -> None:
    """Python's own exit code for an exception is 1, which here would mean "correct but slower"."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import asyncio\n\ndef run(*_):\n    raise ValueError('a fault of hkbench')\n\nasyncio.run = run\n"
    )
    done = doors.run(
        "eval", "--code", code(tmp_path, doors.fast(1)), "--problem", problem, *QUICK, env={"PYTHONPATH": str(broken)}
    )
    assert done.returncode == 70
    assert "a fault of hkbench" in done.stderr
