"""The screen, driven by keys as a person would."""

from __future__ import annotations

import platform
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, incorrect, run_config, sample_run
from textual.pilot import Pilot

from hkbench.monitor.app import MonitorApp
from hkbench.monitor.grid import Grid
from hkbench.monitor.help import HelpScreen
from hkbench.monitor.live import Watch
from hkbench.monitor.overview import OverviewScreen
from hkbench.monitor.problem import ProblemScreen
from hkbench.monitor.runs import RunsScreen
from hkbench.records import Decided, DevicePlace, KernelProfile, Stage
from hkbench.store.layout import RunPaths

PROFILE = KernelProfile(
    source="torch", seconds=1e-3, kernels=(), findings=("93 % of the pass is one kernel",), notes=()
)


class Seat:
    """The person in front of it."""

    def __init__(self, app: MonitorApp, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot

    def screen(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.screen())

    async def press(self, *keys: str) -> str:
        await self._pilot.press(*keys)
        await self._pilot.pause()
        return self.text

    async def look(self) -> str:
        self.app.look()
        await self._pilot.pause()
        return self.text

    async def sees(self, text: str) -> bool:
        """What slides in a moment later."""
        for _ in range(200):
            if text in self.text:
                return True
            await self._pilot.pause(0.05)
        return False

    async def looks_until(self, text: str) -> bool:
        """What another thread brings."""
        for _ in range(200):
            if text in await self.look():
                return True
            await self._pilot.pause(0.05)
        return False

    def rows(self) -> list[str]:
        """The names in the table, in order."""
        lines = self.screen()
        first = next(i for i, line in enumerate(lines) if line.startswith("  problem"))
        return [line[2:].split()[0] for line in lines[first + 1 : -2] if "_" in line]


@asynccontextmanager
async def seat(*folders: Path, size: tuple[int, int] = (80, 24), now: float = 0.0) -> AsyncIterator[Seat]:
    """The app on run folders, looking only when it is told to."""
    watches = [Watch(RunPaths(folder)) for folder in folders]
    app = MonitorApp(watches, refresh=3600, clock=lambda: now)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        there = Seat(app, pilot)
        await there.look()
        yield there


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sample_run(tmp_path / "results").root


async def test_the_overview_of_a_finished_run_on_a_small_terminal(folder: Path) -> None:
    async with seat(folder) as person:
        lines = person.screen()
    assert len(lines) == 24
    assert lines[:9] == [
        "hkbench results  finished",
        "cpp on cpu (cpu sizes) | test-model | 2 x 2 samples | a CPU of two cores",
        "[########################] 100 %  elapsed 1 min 19 s",
        "problems     4/4 finished, 0 running, 2 solved | tokens 1.3k in, 650 out",
        "samples      14 judged: 2 fast, 5 slow, 7 incorrect | 10.6 a minute",
        "model calls  none",
        "in hand      none",
        "failures     crash 4, build_error 2, wrong_values 1",
        "best         1_ReLU 2.00x, 2_Sum 1.25x, 3_Softmax 0.60x",
    ]
    assert [line.split() for line in lines[10:15]] == [
        ["problem", "best", "try", "1", "try", "2"],
        [">", "1_ReLU", "2.00x", "Fx", ".."],
        ["2_Sum", "1.25x", "xx", "Fs"],
        ["3_Softmax", "0.60x", "ss", "ss"],
        ["4_RMSNorm_fp32", "xx", "xx"],
    ]
    for key in ("Open", "Filter", "Failures", "Sort", "Quit", "Help"):
        assert key in lines[-1]
    assert "Next run" not in lines[-1]


async def test_a_low_terminal_keeps_room_for_the_table(folder: Path) -> None:
    async with seat(folder, size=(60, 12)) as person:
        lines = person.screen()
    assert lines[3].startswith("problems     4/4 finished")
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
        assert "running" in text and "model calls  1: 1_ReLU 1.2" in text and ".?" in text
        run.answered(key)
        run.entered(key, Stage.TIME)
        assert ".m" in await person.look()
        run.judged(key, correct("1_ReLU", 2.0))
        assert ".F" in await person.look()
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
    async with seat(folder) as person:
        assert "failure: crash" in await person.press("f")
        assert person.rows() == ["4_RMSNorm_fp32"]
        assert "failure: build_error" in await person.press("f")
        assert person.rows() == ["1_ReLU", "2_Sum"]
        assert "failure: wrong_values" in await person.press("f")
        assert "failure:" not in await person.press("f")
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
        assert "try 1" in person.text and "try 25" not in person.text
        await person.press(*["right"] * 24)
        lines = person.screen()
        assert any(line.startswith("  problem") and "try 25" in line for line in lines)
        assert any(line.startswith("> 100_problem") and line.rstrip(" ▏▎▍▌▋▊▉█").endswith(".F") for line in lines)
        await person.press("pageup", "home", *["left"] * 24)
        assert person.rows()[0] == "1_problem"
        assert "try 1" in person.text


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
        drawn.clear()
        run.sample("3_p", 1, 1, incorrect("3_p"))
        assert "x." in await person.look()
        assert drawn == [3]
        drawn.clear()
        await person.look()
        assert drawn == []


async def test_opening_a_problem_and_going_back(folder: Path) -> None:
    async with seat(folder) as person:
        text = await person.press("down", "enter")
        lines = text.splitlines()
        assert lines[0] == "2_Sum  solved, best 1.25x"
        assert [line.split()[:3] for line in lines[1:5]] == [
            ["1.1", "x", "wrong_values"],
            ["1.2", "x", "build_error"],
            ["2.1", "F", "fast"],
            ["2.2", "s", "slow"],
        ]
        assert "output[0] at (3, 7): expected 1.0" in text
        assert "error: expected ';'" in await person.press("down")
        assert "1.25x [1.12, 1.38]" in await person.press("down")
        await person.press("escape")
        assert isinstance(person.app.screen, OverviewScreen)


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
        assert "there is no profile" in await person.press("6")
        assert "Here it is." in await person.press("7")
        assert "Write it." in await person.press("right")
        assert "status" in await person.press("right")  # round to the first
        await person.press("tab")  # the view has the focus: the keys are the same
        assert "import torch  # mine" in await person.press("right")


async def test_a_diff_says_what_it_bought(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    for attempt, speedup in ((1, 0.62), (2, 1.31)):
        key = run.sample("1_ReLU", attempt, 1, correct("1_ReLU", speedup).model_copy(update={"profile": PROFILE}))
        run.chosen(key)
        run.paths.problem("1_ReLU").sample(attempt, 1).code.write_text(f"import torch\nspeed = {attempt}\n")
    async with seat(tmp_path) as person:
        await person.press("enter", "3")
        assert "nothing came before" in person.text
        text = await person.press("down")
        assert "1.1 0.62x -> 2.1 1.31x" in text
        assert "the prompt told of: 93 % of the pass is one kernel" in text
        assert "-speed = 1" in text and "+speed = 2" in text
        text = await person.press("m", "up")  # from the marked one to the first
        assert "2.1 1.31x -> 1.1 0.62x" in text
        assert "the prompt told" not in text


async def test_an_open_problem_follows_the_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.start()
    key = run.asked("1_ReLU", 1, 1)
    async with seat(tmp_path, now=run.now + 5) as person:
        assert "there is no 1_ReLU/attempt_1/sample_1/result.json (yet)" in await person.press("enter")
        run.answered(key)
        run.entered(key, Stage.BUILD)
        assert "build" in await person.look()
        run.judged(key, correct("1_ReLU", 2.0))
        text = await person.look()
        assert "fast 2.00x" in text and "speed-up   2.00x" in text


async def test_help_lists_the_keys(folder: Path) -> None:
    async with seat(folder, size=(100, 50)) as person:
        await person.press("question_mark")
        assert isinstance(person.app.screen, HelpScreen)
        assert await person.sees("letters of the table") and await person.sees("right answers that do not count")
        await person.press("question_mark")
        assert isinstance(person.app.screen, OverviewScreen)


async def test_several_runs_are_a_table(folder: Path, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "other", run_config(("9_Other",)))
    other.start()
    async with seat(folder, tmp_path / "other", tmp_path / "none", size=(90, 24), now=other.now + 5) as person:
        lines = person.screen()
        assert lines[0].split() == ["run", "state", "done", "solved", "fast", "slow", "failed", "calls", "time"]
        assert lines[1].split()[1:] == ["finished", "100", "%", "2/4", "2", "5", "7", "0", "1", "min", "19", "s"]
        assert lines[2].split()[1:4] == ["running", "0", "%"]
        assert "/none  holds no run" in lines[3]
        assert "Next run" not in lines[-1]
        other.sample("9_Other", 1, 1, correct("9_Other", 2.0))
        assert (await person.look()).splitlines()[2].split()[4:6] == ["1/1", "1"]
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
        assert "category: gemm" in await person.press("c")
        assert person.rows() == ["1_Square_matmul", "3_Batched_matmul"]
        assert "category: pool" in await person.press("c")
        assert person.rows() == ["2_Max_pool"]
        assert "category:" not in await person.press("c")
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
        assert "device 0     free | " in person.text
        run.entered(key, Stage.TIME, device=0)
        assert "device 0     1_ReLU 1.2 time 4 s | " in await person.look()
        assert await person.looks_until("% busy, ")
        assert "a CPU  1_ReLU 1.2 time 4 s" in await person.press("d")
        run.judged(key, correct("1_ReLU", 2.0))
        assert "a CPU  free" in await person.look()
        run.close()
        assert "no device is known of" in await person.look()
        assert "device 0" not in await person.press("escape")


async def test_the_devices_of_another_host_are_not_read(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    places = tuple(DevicePlace(index=index, name="MI300X") for index in range(8))
    run.start(host="elsewhere", devices=places)
    run.entered(run.asked("1_ReLU", 1, 1), Stage.RUN, device=3)
    async with seat(tmp_path, now=run.now) as person:
        assert "devices      1 of 8 lent | not on this host" in person.text
        assert "3  MI300X  1_ReLU 1.1 run 0 s" in await person.press("d")
    async with seat(tmp_path, now=run.now, size=(80, 40)) as person:
        assert "device 3     1_ReLU 1.1 run 0 s | not on this host" in person.text
        assert "device 7     free" in person.text


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
