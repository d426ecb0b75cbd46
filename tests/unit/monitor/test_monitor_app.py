"""The screen, driven by keys as a person would."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.monitor_seat import seat
from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config, sample_run
from textual.widgets import OptionList

from hkbench.headline import title
from hkbench.monitor.app import MonitorApp
from hkbench.monitor.choices import ChoiceScreen
from hkbench.monitor.grid import Grid
from hkbench.monitor.help import HelpScreen
from hkbench.monitor.overview import OverviewScreen
from hkbench.monitor.problem import ProblemScreen
from hkbench.monitor.runs import RunsScreen
from hkbench.records import Decided, DevicePlace, KernelProfile, Stage
from hkbench.store.layout import RunPaths

PROFILE = KernelProfile(
    source="torch", seconds=1e-3, kernels=(), findings=("93 % of the pass is one kernel",), notes=()
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sample_run(tmp_path / "results").root


async def test_the_overview_of_a_finished_run_on_a_small_terminal(folder: Path) -> None:
    async with seat(folder) as person:
        lines = person.screen()
    assert len(lines) == 24
    assert lines[:8] == [
        "hkbench results  finished",
        "████████████████████████  faster 2 · on a par 0 · slower 1 · wrong 1",
        "solved 2/4 judged · geo-mean 1.14x [0.60, 2.00] · fast_1 50.0 %",
        "━━━━━━━━━━━━  100 %  4/4 problems · elapsed 1 min 19 s",
        title(run_config(("1", "2", "3", "4")), FACTS),
        "samples      14 judged: 2 fast, 5 slow, 7 incorrect",
        "tokens       1.3k in, 650 out",
        "failures     crash 4, build_error 2, wrong_values 1",
    ]
    assert [line.split() for line in lines[9:14]] == [
        ["problem", "result", "best", "95", "%", "interval", "attempts", "tokens"],
        [">", "1_ReLU", "faster", "2.00x", "[1.80,", "2.20]", "+×", "300"],
        ["2_Sum", "faster", "1.25x", "[1.12,", "1.38]", "××", "+-", "450"],
        ["3_Softmax", "slower", "0.60x", "[0.54,", "0.66]", "--", "--", "600"],
        ["4_RMSNorm_fp32", "crash", "××", "××", "600"],
    ]
    for key in ("Open", "Filter", "Failures", "Sort", "Quit", "Help"):
        assert key in lines[-1]
    assert "Next run" not in lines[-1]


async def test_a_low_terminal_keeps_room_for_the_table(folder: Path) -> None:
    async with seat(folder, size=(60, 12)) as person:
        lines = person.screen()
    assert "4/4 problems" in lines[3]
    assert [line.split()[0] for line in lines[6:10]] == [">", "2_Sum", "3_Softmax", "4_RMSNorm_fp32"]


async def test_it_follows_a_run_from_nothing(tmp_path: Path) -> None:
    root = tmp_path / "results"
    async with seat(root, now=1_700_000_100.0) as person:
        assert "waiting for a run in" in person.text
        run = RunFolder(root)
        assert "not begun" in await person.look()
        run.start()
        run.begin("1_ReLU")
        key = run.asked("1_ReLU", 1, 2)
        text = await person.look()
        assert "running" in text and "model calls  waiting for 1: 1_ReLU 1.2" in text and "·…" in text
        run.answered(key)
        run.entered(key, Stage.TIME)
        assert "·▶" in await person.look()
        run.judged(key, correct("1_ReLU", 2.0))
        assert "·+" in await person.look()
        run.close(complete=False, reason="\x1b[2J[red]no more")
        assert "stopped: [red]no more" in await person.look()


async def test_a_folder_that_vanishes_and_comes_back_as_another_run(folder: Path) -> None:
    async with seat(folder) as person:
        await person.press("enter")
        assert isinstance(person.app.screen, ProblemScreen)
        shutil.rmtree(folder)
        assert "waiting for a run in" in await person.look()
        assert "waiting for a run in" in await person.press("escape")
        RunFolder(folder, run_config(("7_Other",))).start()
        text = await person.look()
        assert person.rows() == ["7_Other"]
        assert "1_ReLU" not in text


async def test_a_damaged_run_file_is_shown_until_it_is_mended(folder: Path) -> None:
    async with seat(folder) as person:
        whole = RunPaths(folder).run.read_text()
        RunPaths(folder).run.write_text("{")
        assert "waiting for a run in" in await person.look()  # why stands behind two paths, which may fill the place
        RunPaths(folder).run.write_text(whole)
        assert "finished" in await person.look()


async def test_sorting(folder: Path) -> None:
    async with seat(folder) as person:
        assert "order: best" in await person.press("s")
        assert person.rows() == ["1_ReLU", "2_Sum", "3_Softmax", "4_RMSNorm_fp32"]
        assert "order: name" in await person.press("s")
        assert "order: state" in await person.press("s")
        assert person.rows() == ["3_Softmax", "4_RMSNorm_fp32", "1_ReLU", "2_Sum"]
        assert "order: category" in await person.press("s")
        assert "order: plan" in await person.press("s")


async def test_filtering_by_a_pattern(folder: Path) -> None:
    async with seat(folder) as person:
        await person.press("slash", *"norm|sum")
        assert person.rows() == ["2_Sum", "4_RMSNorm_fp32"]
        assert "2 of 4 problems" in await person.press("enter")
        await person.press("slash", "left_parenthesis")
        assert person.rows() == ["2_Sum", "4_RMSNorm_fp32"]  # it is not whole yet
        await person.press("enter")
        assert await person.sees("not a regular expression")
        await person.press("escape")
        assert len(person.rows()) == 4


async def test_filtering_by_failure_kind(folder: Path) -> None:
    """A list with counts; Escape leaves it without a change."""
    async with seat(folder) as person:
        text = await person.press("f")
        assert isinstance(person.app.screen, ChoiceScreen)
        assert re.search(r"crash +4 samples of 1 problem", text)
        assert re.search(r"build_error +2 samples of 2 problems", text)
        assert "failure: crash" in await person.press("down", "enter")
        assert person.rows() == ["4_RMSNorm_fp32"]
        await person.press("f", "j", "enter")  # it begins with what was chosen
        assert person.rows() == ["1_ReLU", "2_Sum"]
        await person.press("f", "down", "escape")
        assert person.rows() == ["1_ReLU", "2_Sum"]
        assert "failure:" not in await person.press("f", "home", "enter")
        assert len(person.rows()) == 4


async def test_the_cursor_stays_on_its_problem(folder: Path) -> None:
    async with seat(folder) as person:
        await person.press("down", "down")
        grid = person.app.screen.query_one(Grid)
        assert grid.cursor_name == "3_Softmax"
        await person.press("s", "s", "s")
        assert grid.cursor_name == "3_Softmax"
        assert any(line.startswith("> 3_Softmax") for line in person.screen())


async def test_a_long_table_scrolls_with_its_header(tmp_path: Path) -> None:
    names = tuple(f"{i}_problem" for i in range(1, 101))
    run = RunFolder(tmp_path, run_config(names, samples=10, attempts=25))
    run.start()
    run.sample(names[99], 25, 10, correct(names[99], 2.0))
    async with seat(tmp_path) as person:
        await person.press("end")
        assert person.rows()[-1] == "100_problem"
        assert "attempt 25" in person.text and "attempt 1 " not in person.text  # the latest that was begun
        lines = person.screen()
        assert any(line.startswith("> 100_problem") and "·········+" in line for line in lines)
        await person.press("pageup", "home", *["left"] * 24)
        assert person.rows()[0] == "1_problem"
        assert "attempt 1 " in person.text and "attempt 25" not in person.text
        assert "attempt 2 " in await person.press("right")
        assert "attempt 1 " not in person.text


async def test_only_changed_rows_are_drawn_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunFolder(folder, run_config(tuple(f"{i}_p" for i in range(1, 9))))
    run.start()
    drawn: list[int] = []
    plain: Callable[[Grid, int], object] = Grid.render_line

    def noted(grid: Grid, y: int) -> object:
        drawn.append(y)
        return plain(grid, y)

    monkeypatch.setattr(Grid, "render_line", noted)
    async with seat(folder) as person:
        while drawn:  # on a busy machine the first picture is still being drawn
            drawn.clear()
            await person.look()
        run.sample("3_p", 1, 1, incorrect("3_p"))
        assert "×·" in await person.look()
        assert drawn == [3]
        drawn.clear()
        await person.look()
        assert drawn == []


async def test_opening_a_problem_and_going_back(folder: Path) -> None:
    async with seat(folder) as person:
        text = await person.press("down", "enter")
        lines = text.splitlines()
        assert lines[0] == "2_Sum  faster 1.25x [1.12, 1.38]  2 of 4"
        assert [line.split()[:3] for line in lines[1:5]] == [
            ["1.1", "×", "wrong_values"],
            ["1.2", "×", "build_error"],
            ["2.1", "+", "faster"],
            ["2.2", "-", "slower"],
        ]
        assert "speed-up   1.25x [1.12, 1.38]" in text  # of the best sample
        assert "error: expected ';'" in await person.press("up")
        assert "output[0] at (3, 7): expected 1.0" in await person.press("up")
        await person.press("escape")
        assert isinstance(person.app.screen, OverviewScreen)


async def test_a_problem_without_a_correct_sample_opens_at_its_newest_failure(folder: Path) -> None:
    async with seat(folder) as person:
        await person.press("end", "enter")
        samples = person.app.screen.query_one(OptionList)
        assert samples.highlighted == 3 and "died by SIGSEGV" in person.text


async def test_the_problem_before_and_behind(folder: Path) -> None:
    """In the order of the table; the table's cursor goes along."""
    async with seat(folder) as person:
        await person.press("s", "enter")  # by the best speed-up
        text = await person.press("n")
        assert text.startswith("2_Sum") and "speed-up   1.25x" in text
        assert (await person.press("n", "n")).startswith("4_RMSNorm_fp32")
        assert await person.press("n") and await person.sees("This is the last problem.")
        assert (await person.press("p")).startswith("3_Softmax")
        await person.press("escape")
        assert person.app.screen.query_one(Grid).cursor_name == "3_Softmax"


async def test_the_path_of_a_file_is_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = RunPaths(folder).problem("1_ReLU").sample(1, 1).code
    code.write_text("import torch\n")
    copied: list[str] = []
    monkeypatch.setattr(MonitorApp, "copy_to_clipboard", lambda app, text: copied.append(text))
    async with seat(folder) as person:
        await person.press("enter", "y", "2", "y", "8", "y")
        assert await person.sees("There is no")  # prompt yet
    assert copied == [str(code.with_name("result.json")), str(code)]


async def test_an_editor_that_cannot_be_shown_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal of a test cannot be given away; a real one is tried through tmux."""
    monkeypatch.setenv("VISUAL", "true")
    async with seat(folder) as person:
        await person.press("enter", "o")
        assert await person.sees("cannot show an editor")


async def test_views_of_a_sample_by_key(folder: Path) -> None:
    sample = RunPaths(folder).problem("1_ReLU").sample(1, 1)
    sample.code.write_text("import torch  # \x1b[2Jmine\n")
    sample.response.write_text("Here it is.\n")
    RunPaths(folder).problem("1_ReLU").prompt(1).write_text("Write it.\n")
    async with seat(folder) as person:
        await person.press("enter")
        text = await person.press("right")
        assert "import torch  # mine" in text and "\x1b" not in text
        assert "median 500 µs" in await person.press("5")
        assert "No profile" in await person.press("6")
        assert "Here it is." in await person.press("7")
        assert "Write it." in await person.press("right")
        assert "result" in await person.press("right")  # round to the first
        await person.press("tab")  # the view has the focus: the keys are the same
        assert "import torch  # mine" in await person.press("right")


async def test_a_diff_says_what_it_bought(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    for attempt, speedup in ((1, 0.62), (2, 1.31)):
        run.prompted("1_ReLU", "default.txt", attempt)
        key = run.sample("1_ReLU", attempt, 1, correct("1_ReLU", speedup).model_copy(update={"profile": PROFILE}))
        run.chosen(key)
        run.paths.problem("1_ReLU").sample(attempt, 1).code.write_text(f"import torch\nspeed = {attempt}\n")
    async with seat(tmp_path) as person:
        await person.press("enter", "up", "3")
        assert "No earlier attempt." in person.text
        text = await person.press("down")
        assert "1.1 0.62x -> 2.1 1.31x" in text
        assert "Feedback in this prompt: 93 % of the pass is one kernel" in text
        assert "-speed = 1" in text and "+speed = 2" in text
        text = await person.press("m", "up")  # from the marked one to the first
        assert "2.1 1.31x -> 1.1 0.62x" in text
        assert "Feedback" not in text


async def test_an_open_problem_follows_the_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    async with seat(tmp_path, now=run.now + 5) as person:
        assert "There is no 1_ReLU/attempt_1/sample_1/result.json yet." in await person.press("enter")
        run.answered(key)
        run.entered(key, Stage.BUILD)
        assert "build" in await person.look()
        run.judged(key, correct("1_ReLU", 2.0))
        text = await person.look()
        assert "faster 2.00x" in text and "speed-up   2.00x" in text


async def test_help_lists_the_keys(folder: Path) -> None:
    async with seat(folder) as person:
        await person.press("question_mark")
        assert isinstance(person.app.screen, HelpScreen)
        assert await person.sees("move the focus, for arrows and Page keys")
        assert "1_ReLU" not in person.text  # nothing of the old screen
        await person.press("G")
        assert await person.sees("still to come; blank: not needed")
        await person.press("question_mark")
        assert isinstance(person.app.screen, OverviewScreen)


async def test_several_runs_are_a_table(folder: Path, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "other", run_config(("9_Other",)))
    other.start()
    async with seat(folder, tmp_path / "other", tmp_path / "none", size=(90, 24), now=other.now + 5) as person:
        lines = person.screen()
        assert lines[0].split() == ["run", "state", "faster", "solved", "geo-mean", "time", "model"]
        assert lines[1].split()[1:5] == ["finished", "2", "2/4", "1.14x"]
        assert lines[1].endswith("1 min 19 s  test-model")
        assert lines[2].split()[1:5] == ["running", "0", "%", "0"]
        assert lines[3].endswith("/none  holds no run (there is no run.json)")
        assert "Next run" not in lines[-1]
        other.sample("9_Other", 1, 1, correct("9_Other", 2.0))
        assert (await person.look()).splitlines()[2].split()[3:7] == ["%", "1", "1/1", "2.00x"]
        await person.press("down", "enter")
        await person.look()
        assert isinstance(person.app.screen, OverviewScreen)
        assert "[2 of 3 runs]" in person.text and person.rows() == ["9_Other"]
        await person.press("slash", "x", "enter", "escape")  # first all problems, then all runs
        assert isinstance(person.app.screen, OverviewScreen)
        await person.press("escape")
        assert isinstance(person.app.screen, RunsScreen)


async def test_a_key_goes_to_the_next_run(folder: Path, tmp_path: Path) -> None:
    RunFolder(tmp_path / "other", run_config(("9_Other",))).start()
    async with seat(folder, tmp_path / "other") as person:
        await person.press("enter")
        assert "[1 of 2 runs]" in person.text and "Next run" in person.text
        await person.press("enter", "r")
        assert isinstance(person.app.screen, OverviewScreen)
        assert person.rows() == ["9_Other"]
        assert "[2 of 2 runs]" in person.text
        await person.press("r")
        assert len(person.rows()) == 4


async def test_filtering_by_category(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_Square_matmul", "2_Max_pool", "3_Batched_matmul", "4_ReLU")))
    run.start()
    for name, template in (
        ("1_Square_matmul", "gemm.txt"),
        ("2_Max_pool", "pool.txt"),
        ("3_Batched_matmul", "gemm.txt"),
    ):
        run.prompted(name, f"cpp/{template}")
    async with seat(tmp_path) as person:
        assert re.search(r"gemm +2 problems", await person.press("c"))
        assert "category: gemm" in await person.press("down", "enter")
        assert person.rows() == ["1_Square_matmul", "3_Batched_matmul"]
        assert "category: pool" in await person.press("c", "down", "enter")
        assert person.rows() == ["2_Max_pool"]
        assert "category:" not in await person.press("c", "home", "enter")
        await person.press("s", "s", "s", "s")
        assert person.rows() == ["1_Square_matmul", "3_Batched_matmul", "2_Max_pool", "4_ReLU"]
        run.emit(
            Decided(time=run.tick(), problem="4_ReLU", attempt=1, what="category", choice="elementwise", why="name")
        )
        await person.look()
        assert person.rows() == ["4_ReLU", "1_Square_matmul", "3_Batched_matmul", "2_Max_pool"]


async def test_what_the_devices_do(tmp_path: Path) -> None:
    """Here, by the CPU's own readings; the journal says what is measured."""
    run = RunFolder(tmp_path)
    run.start(host=platform.node(), devices=(DevicePlace(index=0, name="a CPU"),))
    key = run.asked("1_ReLU", 1, 2)
    run.answered(key)
    run.entered(key, Stage.BUILD)
    async with seat(tmp_path, now=run.now + 5) as person:
        assert "device 0     idle · " in person.text
        run.entered(key, Stage.TIME, device=0)
        assert "device 0     1_ReLU 1.2 time 4 s · " in await person.look()
        assert await person.looks_until("% busy, ")
        assert "a CPU  1_ReLU 1.2 time 4 s" in await person.press("d")
        run.judged(key, correct("1_ReLU", 2.0))
        assert "a CPU  idle" in await person.look()
        run.close()
        text = await person.look()
        assert "0  a CPU" in text and "No live device data: this run is not active" in text
        assert "device 0" not in await person.press("escape")


async def test_the_devices_of_another_host_are_not_read(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    places = tuple(DevicePlace(index=index, name="MI300X") for index in range(8))
    run.start(host="elsewhere", devices=places)
    run.entered(run.asked("1_ReLU", 1, 1), Stage.RUN, device=3)
    async with seat(tmp_path, now=run.now) as person:
        assert "devices      1 of 8 lent · no live data: the run is on another host" in person.text
        assert "3  MI300X  1_ReLU 1.1 run 0 s" in await person.press("d")
    async with seat(tmp_path, now=run.now, size=(80, 40)) as person:
        assert "device 3     1_ReLU 1.1 run 0 s · no live data" in person.text
        assert "device 7     idle" in person.text


async def test_light_colours(folder: Path) -> None:
    RunPaths(folder).problem("1_ReLU").sample(1, 1).code.write_text("import torch\n")
    async with seat(folder) as person:
        await person.press("enter", "2")
        dark = person.app.export_screenshot()
        assert "import torch" in await person.press("t")
        assert not person.app.current_theme.dark
        assert person.app.export_screenshot() != dark
        await person.press("t")
        assert person.app.current_theme.dark


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_keys_that_end_it(folder: Path, key: str) -> None:
    async with seat(folder) as person:
        await person.press(key)
        assert not person.app.is_running or person.app._exit
    assert person.app.return_code == 0


async def test_nothing_is_written_to_the_run(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    async with seat(folder) as person:
        await person.press("enter", *"12345678", "escape")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
