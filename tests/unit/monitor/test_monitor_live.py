from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config, sample_run

from hkbench.errors import ConfigurationError, InputMissing, Unavailable
from hkbench.headline import title
from hkbench.monitor import run_monitor
from hkbench.monitor.live import Watch
from hkbench.monitor.render import frame
from hkbench.monitor.snapshot import Snapshot
from hkbench.records import GenerationFailed, Outcome, SampleKey, Stage, VerdictReached
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.layout import RunPaths
from hkbench.store.state import RunState


def text_of(run: RunFolder, *, height: int | None = None, width: int = 80, after: float = 0.0) -> str:
    state = RunState(run.config)
    for event in read_events(run.paths.journal):
        assert not isinstance(event, CorruptEntry)
        state.apply(event)
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(frame(state, "results", run.now + after, facts=FACTS, height=height))
    return capture.get()


def once(paths: RunPaths) -> str:
    out = io.StringIO()
    run_monitor([paths], once=True, console=Console(file=out, width=100))
    return out.getvalue()


def test_the_frame_of_a_finished_run(tmp_path: Path) -> None:
    lines = text_of(sample_run(tmp_path), width=140).splitlines()
    assert lines[:5] == [
        "hkbench results  finished",
        "████████████████████████  faster 2 · on a par 0 · slower 1 · wrong 1   "
        "solved 2/4 judged · geo-mean 1.14x [0.60, 2.00] · fast_1 50.0 %",
        "━━━━━━━━━━━━━━━━━━━━━━━━  100 %  4/4 problems · elapsed 1 min 19 s",
        title(run_config(("1", "2", "3", "4")), FACTS),
        "samples      14 judged: 2 fast, 5 slow, 7 incorrect · 1.3k in, 650 out",
    ]
    assert [line.split() for line in lines[6:11]] == [
        ["problem", "result", "best", "95", "%", "interval", "attempts", "tokens"],
        ["1_ReLU", "faster", "2.00x", "[1.80,", "2.20]", "+×", "300"],
        ["2_Sum", "faster", "1.25x", "[1.12,", "1.38]", "××", "+-", "450"],
        ["3_Softmax", "slower", "0.60x", "[0.54,", "0.66]", "--", "--", "600"],
        ["4_RMSNorm_fp32", "crash", "××", "××", "600"],
    ]


def test_the_frame_of_a_run_at_work(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(samples=5))
    run.start()
    run.begin("1_ReLU")
    for sample, stage in ((1, Stage.BUILD), (2, Stage.TIME)):
        key = run.asked("1_ReLU", 1, sample)
        run.answered(key)
        run.entered(key, stage)
    run.answered(run.asked("1_ReLU", 1, 3))
    run.asked("1_ReLU", 1, 4)
    lost = run.asked("1_ReLU", 1, 5)
    run.emit(GenerationFailed(time=run.tick(), key=lost, error="ModelUnavailable", message="503"))
    text = text_of(run, width=120, after=2)
    assert "running" in text.splitlines()[0]
    assert "model calls  waiting for 1: 1_ReLU 1.4 4 s" in text
    assert "evaluating   2: 1_ReLU 1.1 build 12 s, 1_ReLU 1.2 time 8 s" in text
    assert "failures     none · machine or service: ModelUnavailable 1" in text
    assert "▹▶▪…E" in text
    assert "1.2 time 8 s +3" in text  # what came furthest, and how many more
    assert "last event 2 s ago" in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 14), (40, 24), (200, 60)])
def test_the_frame_fits_its_terminal(tmp_path: Path, width: int, height: int) -> None:
    names = tuple(f"{i}_a_problem_with_quite_a_long_name_to_show" for i in range(1, 41))
    run = RunFolder(tmp_path, run_config(names, samples=3, attempts=3))
    run.start()
    for name in names[:20]:
        run.begin(name)
        run.sample(name, 1, 1, incorrect(name))
        run.end(name)
    for name in names[20:25]:
        run.begin(name)
        for sample in (1, 2, 3):
            run.asked(name, 1, sample)
    lines = text_of(run, height=height, width=width).splitlines()
    assert len(lines) < height  # one line is the cursor's
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "21_a_prob" in text  # the first problem that is not finished
    assert ("more problems" in text) == (height < 60)


def test_text_of_models_brings_no_escape_to_the_screen(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_\x1b[2Jevil",)))
    run.start()
    key = run.asked("1_\x1b[2Jevil", 1, 1)
    run.emit(GenerationFailed(time=run.tick(), key=key, error="\x1b]0;x\x07Bad", message="[bold]m"))
    run.close(complete=False, reason="[red]why\x9b31m\nnow")
    text = text_of(run, width=200)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "stopped: [red]why now" in text  # markup of others is text
    assert "1_evil" in text


def test_once_prints_one_plain_frame(tmp_path: Path) -> None:
    run = sample_run(tmp_path / "results")
    text = once(run.paths)
    assert text.startswith("hkbench results  finished\n")
    assert text.count("hkbench results") == 1
    assert "\x1b" not in text


def test_not_a_terminal_is_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "results")
    run.start()  # never closed: a live view would not end
    out = io.StringIO()
    run_monitor([run.paths], console=Console(file=out, width=100))
    assert "running" in out.getvalue()


def test_once_shows_every_problem(tmp_path: Path) -> None:
    names = tuple(f"{i}_p" for i in range(1, 101))
    text = once(RunFolder(tmp_path, run_config(names)).paths)
    assert all(name in text for name in names)


def test_once_of_nothing_is_missing_input(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="holds no run"):
        once(RunPaths(tmp_path / "none"))


def test_a_damaged_run_file_is_an_error(tmp_path: Path) -> None:
    RunPaths(tmp_path).run.write_text("{")
    with pytest.raises(ConfigurationError):
        once(RunPaths(tmp_path))


def test_unreadable_lines_are_counted_in_the_title(tmp_path: Path) -> None:
    run = sample_run(tmp_path / "results")
    with run.paths.journal.open("a") as file:
        file.write("junk\njunk\n")
    assert "results (2 unreadable lines in the journal)" in once(run.paths)


def test_watch_follows_a_folder_that_comes_goes_and_comes_back(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "results")
    watch = Watch(paths)
    with pytest.raises(InputMissing):
        watch.look()
    run = RunFolder(paths.root)
    run.start()
    run.close()
    watch.look()
    assert watch.state is not None and watch.state.over
    paths.root.rename(tmp_path / "away")
    with pytest.raises(InputMissing):
        watch.look()
    assert watch.state is None or not watch.state.over
    again = RunFolder(paths.root, run_config(("7_Other",)))
    again.start()
    watch.look()
    assert watch.state is None or not watch.state.over
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as capture:
        console.print(watch.view(again.now))
    assert "7_Other" in capture.get()


def test_a_run_that_takes_another_ones_place_between_two_looks_is_read_anew(tmp_path: Path) -> None:
    """Also where its journal has the inode of the old one, or the old one had none."""
    paths = RunPaths(tmp_path / "results")
    watch = Watch(paths)
    RunFolder(paths.root)
    watch.look()
    assert watch.state is not None and list(watch.state.problems) == ["1_ReLU"]
    RunFolder(paths.root, run_config(("7_Other",)))
    watch.look()
    assert watch.state is not None and list(watch.state.problems) == ["7_Other"]


def test_json_is_one_snapshot_a_line(tmp_path: Path) -> None:
    folders = [sample_run(tmp_path / name).paths for name in ("first", "second")]
    out = io.StringIO()
    run_monitor(folders, as_json=True, console=Console(file=out, force_terminal=True))
    found = [Snapshot.model_validate_json(line) for line in out.getvalue().splitlines()]
    assert [snapshot.run for snapshot in found] == [str(paths.root) for paths in folders]


def test_without_textual_the_screen_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    for name in [name for name in sys.modules if name.startswith(("textual.", "hkbench.monitor.app"))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(Unavailable, match="textual"):
        run_monitor([RunPaths(tmp_path)], console=Console(file=io.StringIO(), force_terminal=True))


def test_the_commands_start_without_textual() -> None:
    code = "import sys, hkbench.cli.main; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_a_frame_has_the_attempts_that_fit(tmp_path: Path) -> None:
    """On 80 columns the last ones up to the latest that was begun; every one where there is room."""
    name = "1_" + "long" * 20
    run = RunFolder(tmp_path, run_config((name, "2_Sum"), samples=6, attempts=20))
    run.start()
    for attempt in range(1, 16):
        run.sample(name, attempt, 1, correct(name, 1.5))

    def table(width: int) -> list[str]:
        lines = text_of(run, width=width).splitlines()
        assert all(len(line) <= width for line in lines)
        first = next(i for i, line in enumerate(lines) if line.startswith("problem "))
        return lines[first : first + 3]

    narrow = table(80)
    shown = narrow[1].count("+·····")
    assert f"attempts {16 - shown}-15 of 20" in narrow[0] and shown >= 4
    assert "…" in narrow[1] and "1.50x" in narrow[1]
    wide = table(300)
    assert "attempts 1-20" in wide[0] and name[:50] in wide[1] and wide[1].count("+·····") == 15


def test_an_older_journal_has_its_intervals_from_the_verdicts(tmp_path: Path) -> None:
    """The class of a problem is that of the report; a damaged verdict leaves it to the estimate."""
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    for name in ("1_ReLU", "2_Sum"):
        verdict = correct(name, 1.05)
        folder = run.paths.problem(name).sample(1, 1)
        folder.root.mkdir(parents=True)
        folder.result.write_text(verdict.model_dump_json() if name == "1_ReLU" else "{")
        key = SampleKey(problem=name, attempt=1, sample=1)
        older = {"time": run.tick(), "low": None, "high": None, "own": None, "language": None}
        run.emit(VerdictReached.of(key, verdict).model_copy(update=older))
    watch = Watch(run.paths)
    for _ in range(2):
        watch.look()
        assert watch.state is not None
        assert [problem.outcome for problem in watch.state.problems.values()] == [Outcome.ON_PAR, Outcome.FASTER]
