"""Mistakes in what run_batch.py is given: each is answered in a line or a few, with its exit code and the way out,
before a device is looked for, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import doors
from support.run_folder import FACTS, run_config

from hkbench.cli.main import door
from hkbench.errors import DeviceUnavailable
from hkbench.records import AdviceKey, Reply, SampleKey
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder

Said = tuple[int, str]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with problems 1 to 3 and 7, and replies for one; starting a device fails the test."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_BASE_URL", "NUM_SAMPLES", "KERNELBENCH_DIR", "LLM_GATEWAY_URL", "LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for number in (1, 2, 3, 7):
        doors.problem(tmp_path / "problems", f"{number}_Name", number)
    doors.reply(tmp_path / "replies", "1_Name", 1, 1, "No.")
    for evaluator in ("hkbench.engine.factory.local_evaluator", "hkbench.cli.batch.CompileOnlyEvaluator"):
        monkeypatch.setattr(evaluator, no_device)
    return tmp_path


def no_device(*_: object, **__: object) -> None:
    raise DeviceUnavailable("a device was looked for")


@pytest.fixture
def batch(desk: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*words: str, replay: str = "replies") -> Said:
        try:
            code = door("run", ["--problems", "problems", "--replay", replay, "--device", "cpu", *words])
        except SystemExit as left:
            code = int(str(left.code))
        out, err = capsys.readouterr()
        assert out == "" or code == DeviceUnavailable.exit_code
        assert "Traceback" not in err
        return code, err

    return run


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["4", "1"], 64, "give the smaller number first"),
        (["8-2"], 64, "give the smaller number first"),
        (["0", "3"], 64, "numbered from 1 on"),
        (["-1", "3"], 64, "'-1' is not the number of a problem"),
        (["a", "b"], 64, "write 3, 1-8, 1,4,7"),
        (["1", "2", "3"], 64, "or a list as 1,2,3"),
        (["50", "60"], 66, "no problem has number 50 to 60: problems/level1 has 1 to 3, 7"),
        (["1", "3", "--match", "("], 64, "is not a valid regular expression"),
        (["1", "3", "--match", "Softmax"], 64, "names look like '1_Name'"),
        (["1", "--level", "9"], 66, "choose --level from 1"),
        (["1", "--level", "0"], 64, "must be a whole number of at least 1"),
        (["1", "--samples", "many"], 64, "must be a whole number of at least 1, not 'many'"),
        (["1", "--sample", "2"], 64, "did you mean --samples?"),
        (["1", "--num-samples", "2"], 64, "did you mean --samples?"),
        (["1", "--results", "/proc/x"], 66, "cannot make /proc/x (No such file or directory): name another folder"),
        (["1", "--results", "replies.txt"], 66, "name another folder with --results"),
        (["1", "--results", "replies.txt/{time}"], 66, "name another folder with --results"),
        (["1", "--results", "replies"], 64, "is not empty and holds no run"),
        (["1", "--results", "{date}"], 64, "{time}, {model}, {strategy}"),
        (["1", "--resume", "nowhere"], 66, "holds no run"),
        (["--resume", "replies", "--results", "x"], 64, "leave out --results"),
        (["--resume", "replies", "--new"], 64, "leave out --new"),
    ],
)
def test_one_line_and_the_way_out(
    words: list[str], code: int, expected: str, batch: Callable[..., Said], desk: Path
) -> None:
    (desk / "replies.txt").write_text("")
    before = sorted(desk.rglob("*"))
    found, said = batch(*words)
    assert (found, len(said.splitlines())) == (code, 1), said
    assert expected in said
    assert sorted(desk.rglob("*")) == before


def test_what_is_missing_of_a_range_is_said_in_ranges(batch: Callable[..., Said], desk: Path) -> None:
    for number in (2, 3, 7):
        doors.reply(desk / "replies", f"{number}_Name", 1, 1, "No.")
    code, said = batch("2-60")
    assert code == DeviceUnavailable.exit_code
    assert "no problem has number 4 to 6, 8 to 60\n" in said


def test_a_missing_folder_of_replies(batch: Callable[..., Said], desk: Path) -> None:
    code, said = batch("1", replay="nowhere")
    assert code == 66 and "nowhere does not exist" in said and len(said.splitlines()) == 1
    assert not (desk / "results").exists()


def test_replies_for_other_problems(batch: Callable[..., Said], desk: Path) -> None:
    code, said = batch("1-7")
    assert code == 66 and len(said.splitlines()) == 2
    assert "replies has no replies (cpp) for 2, 3, 7; it has those of 1" in said
    code, said = batch("2")
    assert code == 66 and "it has none of the problems that are named" in said
    assert not (desk / "results").exists()


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5", "²"])
def test_the_number_of_samples_in_the_environment(
    batch: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("NUM_SAMPLES", text)
    code, said = batch("1")
    assert code == 64 and f"NUM_SAMPLES is {text!r}" in said and "unset it" in said


def test_a_folder_that_may_not_be_written(
    batch: Callable[..., Said], desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hkbench.cli.run_folder.tempfile.TemporaryDirectory", refuse)
    code, said = batch("1", "--results", "read-only/run")
    assert code == 66 and "cannot make read-only/run (Permission denied)" in said


def recorded(desk: Path, name: str, *, reply: bool = True, judge: bool = False) -> None:
    recorder = Recorder(RunPaths(desk / "results" / name), lambda _: None)
    recorder.begin(run_config(("1_Name", "2_Name")), FACTS)
    if reply:
        recorder.save_reply(SampleKey(problem="1_Name", attempt=1, sample=1), Reply(text="No.", model="m"))
    if judge:
        recorder.save_reply(AdviceKey(problem="1_Name", attempt=2, call=1), Reply(text="No.", model="m"))
    recorder.close()


def test_the_folder_of_another_run_says_what_differs(batch: Callable[..., Said], desk: Path) -> None:
    recorded(desk, "mine")
    code, said = batch("1-2", "--results", "results/mine", "--trials", "2", "--samples", "2", "--exhaust")
    assert code == 64
    lines = [line.strip() for line in said.splitlines()]
    assert "judge.trials 5 -> 2" in lines and "exhaust false -> true" in lines
    assert "problems: the files of 1, 2 have changed" in lines
    assert not any("0000" in line or "samples" in line for line in lines)
    assert any("run_batch.py --resume results/mine" in line for line in lines)
    assert max(map(len, lines)) < 160


def test_the_folder_of_several_runs_names_one(batch: Callable[..., Said], desk: Path) -> None:
    recorded(desk, "one")
    recorded(desk, "two")
    code, said = batch("1", "--results", "results")
    assert code == 64 and "holds 2 runs in folders of their own" in said and len(said.splitlines()) == 1
    code, said = batch("--resume", "results")
    assert code == 64 and "name one of them" in said


def test_a_resumed_run_whose_problems_changed_or_are_gone(batch: Callable[..., Said], desk: Path) -> None:
    recorded(desk, "mine")
    code, said = batch("--resume", "results/mine")
    assert code == 64 and "are not those of the run" in said and "--problems" in said
    (desk / "problems" / "level1" / "2_Name.py").unlink()
    code, said = batch("--resume", "results/mine")
    assert code == 66 and "2_Name.py is not in problems/level1" in said
