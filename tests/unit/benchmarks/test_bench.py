"""`make bench`: which benchmarks run on which machine, and what becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import bench
from benchmarks.bench import INTERRUPTED, Machine, Step, command, run_all, steps
from hkbench.records import DeviceKind

ROOT = Path(__file__).resolve().parents[3]
LAPTOP = Machine(DeviceKind.CPU, gpus=0, kernelbench=False, nvcc=False, no_hip="install hipcc")
NODE = Machine(DeviceKind.CUDA, gpus=6, kernelbench=True, nvcc=True, no_hip=None)


def reasons(machine: Machine) -> dict[str, str]:
    return {step.name: step.missing for step in steps(machine, 5) if step.missing is not None}


def words(machine: Machine, name: str) -> list[str]:
    return next(list(step.words) for step in steps(machine, 5) if step.name == name)


def test_each_step_is_a_script_with_the_options_it_is_given() -> None:
    for script in {step.words[0] for step in steps(NODE, 5)}:
        done = subprocess.run(
            [sys.executable, ROOT / "benchmarks" / script, "--help"], capture_output=True, text=True, check=True
        )
        for step in steps(NODE, 5):
            if step.words[0] == script:
                given = {word for word in command(step, Path("x"))[2:] if word.startswith("--")}
                assert {word for word in given if f"{word} " not in done.stdout} == set()


def test_all_run_where_there_is_everything() -> None:
    assert reasons(NODE) == {}
    assert words(NODE, "scale")[3:8] == ["--gpus", "4", "2", "1", "--problems"]
    assert words(NODE, "builds-nvcc")[-1] == words(NODE, "verdicts")[6] == "5"


def test_what_a_laptop_cannot_run_is_named_with_its_reason() -> None:
    found = reasons(LAPTOP)
    gpu, compilers = (
        {"verdicts", "verdicts-cold", "batch", "scale"},
        {"builds-hipcc", "builds-hipcc-torch", "builds-nvcc", "emulator"},
    )
    assert set(found) == gpu | compilers
    assert all("no GPU" in found[name] for name in gpu)
    assert found["builds-hipcc"] == "install hipcc" and "CUDA_HOME" in found["builds-nvcc"]
    assert words(LAPTOP, "equals")[1:3] == ["--device", "cpu"]


def test_what_wants_more_than_a_gpu() -> None:
    assert "KERNELBENCH_DIR" in reasons(replace(NODE, kernelbench=False))["verdicts"]
    assert reasons(replace(NODE, gpus=1)) == {"scale": "there is one GPU here"}
    amd = reasons(replace(NODE, kind=DeviceKind.ROCM))
    assert set(amd) == {"verdicts", "verdicts-cold", "builds-nvcc", "late-builds"} and "AMD" in amd["verdicts"]


def script(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Step:
    (folder / "benchmarks").mkdir(exist_ok=True)
    (folder / "benchmarks" / f"{name}.py").write_text(text)
    monkeypatch.setattr(bench, "ROOT", folder)
    return Step(name, "this, that", [f"{name}.py"])


def test_one_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = script(tmp_path, "bad", "import sys; sys.exit('no compiler')", monkeypatch)
    good = script(tmp_path, "good", "import sys; print('ratio 5', sys.argv[1:])", monkeypatch)
    absent = replace(good, name="absent", missing="there is none")
    assert run_all([bad, absent, good], tmp_path / "figures") == 1
    out, err = capfd.readouterr()
    assert "no compiler" in err and f"ratio 5 ['--json', '{tmp_path / 'figures' / 'good.json'}']" in out
    lines = out.splitlines()[-3:]
    assert lines[0].startswith("bad     FAILED with exit code 1, ") and lines[1] == "absent  not run: there is none"
    assert lines[2].startswith("good    done, ")
    assert run_all([absent, good]) == 0


def only_harness(folder: Path, text: str, ignored: signal.Signals) -> subprocess.Popen[str]:
    """`bench.py --only harness` with such a harness.py, in a process that ignores a signal from its start."""
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "harness.py").write_text(text)
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks import bench
bench.ROOT = bench.Path({str(folder)!r})
sys.exit(bench.main(["--only", "harness"]))
"""

    def handlers() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)

    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, preexec_fn=handlers)


@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGINT, signal.SIGHUP), (signal.SIGTERM, signal.SIGINT)],
    ids=["ctrl-c", "in the background"],
)
def test_interrupted_it_ends_what_runs_and_says_how_far_it_came(
    tmp_path: Path, number: signal.Signals, ignored: signal.Signals
) -> None:
    sleeper = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('child', child.pid, flush=True)\ntime.sleep(60)\n"
    )
    with only_harness(tmp_path, sleeper, ignored) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("child"))
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(30) == INTERRUPTED
    assert "interrupted: 1 of 1 did not end" in rest
    state = Path(f"/proc/{line.split()[1]}/stat")
    deadline = time.monotonic() + 10.0
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_with_nohup_it_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    with only_harness(tmp_path, "import time; print('up', flush=True); time.sleep(1)\n", signal.SIGHUP) as process:
        assert process.stdout is not None
        assert any(line == "up\n" for line in process.stdout)
        process.send_signal(signal.SIGHUP)
        assert "harness  done" in process.stdout.read()
        assert process.wait(30) == 0


def test_as_a_command_without_a_gpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "bench.py", "--only", "batch", "scale", "--json", tmp_path / "figures"],
        env=dict(os.environ) | {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == [
        "batch  not run: there is no GPU here that torch can use",
        "scale  not run: there is no GPU here that torch can use",
    ]
    assert (tmp_path / "figures").is_dir()


def test_the_figures_of_each_have_their_file(tmp_path: Path) -> None:
    for name, option in (("harness", "--json"), ("reference_times", "--output")):
        last = command(Step("it", "", [f"{name}.py"]), tmp_path)[-2:]
        assert last == [option, str(tmp_path / "it.json")]
