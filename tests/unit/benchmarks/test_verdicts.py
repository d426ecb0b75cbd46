"""The comparison of verdict times: its arithmetic, its turns, and the loading of KernelBench's evaluator."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import verdicts
from benchmarks.kernelbench_verdict import NOT_NEEDED, described, libraries
from benchmarks.runs import Deadline, load_runs
from benchmarks.verdicts_figures import HKBENCH, Figure, failed, of_answer, summary
from benchmarks.verdicts_sides import Lending, Task, capability, finish, repeated
from hkbench.records import DeviceFacts, DeviceKind

ROOT = Path(__file__).resolve().parents[3]
ANSWER: dict[str, Any] = {"compiled": True, "correct": True, "timed": True, "speedup": 1.5, "metadata": {}}
ANSWER |= {"seconds": 60.0, "build": 0.5}


def ours(problem: str, seconds: float, build: float, cold: bool = False, process: bool = False) -> Figure:
    return Figure(HKBENCH, problem, process, cold, seconds, build, True, "fast", 1.5)


def theirs(problem: str, seconds: float, cold: bool = False) -> list[Figure]:
    build = 45.0 if cold else 0.5
    return of_answer(problem, ANSWER | {"seconds": seconds, "build": build, "rebuilt": cold}, seconds + 10.0, cold)


def test_builds_are_taken_off_and_ratios_have_a_geometric_mean() -> None:
    figures = [*theirs("19_A", 60.0), ours("19_A", 46.0, 40.0), *theirs("1_B", 8.0), ours("1_B", 42.0, 40.0)]
    text = summary(figures)
    assert "| 19_A | 1, 1 | 60.0 | 6.0 | 10.0 | 70.0 | - | - |" in text
    assert "| 1_B | 1, 1 | 8.0 | 2.0 | 4.0 | 18.0 | - | - |" in text
    assert "| geometric mean of 2 |  |  |  | 6.3 |  |  | - |" in text
    assert "build included" not in text


def test_a_cold_verdict_gives_figures_with_and_without_its_build() -> None:
    figures = [*theirs("19_A", 105.0, cold=True), ours("19_A", 50.0, 40.0, cold=True)]
    assert "| 19_A | 1, 1 | 60.0 | 10.0 | 6.0 | 70.0 | - | - |" in summary(figures)
    assert "| 19_A | 1, 1 | 105.0 | 50.0 | 2.1 | 115.0 | - | - |" in summary(figures)
    both = summary([*figures, ours("19_A", 62.0, 40.0, cold=True, process=True)])
    assert "| 19_A | 1, 1 | 60.0 | 10.0 | 6.0 | 70.0 | 22.0 | 3.2 |" in both
    assert "| 19_A | 1, 1 | 105.0 | 50.0 | 2.1 | 115.0 | 62.0 | 1.9 |" in both


def test_the_median_of_repeats_counts() -> None:
    figures = [one for seconds in (50.0, 60.0, 90.0) for one in theirs("19_A", seconds)]
    assert "| 19_A | 3, 1 | 60.0 | 6.0 | 10.0 |" in summary([*figures, ours("19_A", 46.0, 40.0)])


def test_only_what_came_to_its_end_is_compared() -> None:
    wrong = of_answer(
        "19_A", ANSWER | {"correct": False, "rebuilt": False, "metadata": {"issue": "mismatch"}}, 9.0, False
    )
    again = of_answer("19_A", ANSWER | {"rebuilt": True}, 9.0, cold=False)
    none = failed(HKBENCH, "19_A", True, False, 1.0, "WorkerLost: gone")
    text = summary([*wrong, *again, none, ours("19_A", 46.0, 40.0)])
    assert "geometric mean" not in text
    assert "left out: kernelbench, 19_A: incorrect {'issue': 'mismatch'}" in text
    assert "left out: kernelbench, 19_A, as a process: correct the extension was built again" in text
    assert "left out: hkbench, 19_A, as a process: no verdict WorkerLost: gone" in text
    assert summary([]) == "no figures"


def test_figures_survive_their_file(tmp_path: Path) -> None:
    made = [*theirs("19_A", 60.0), ours("19_A", 46.0, 40.0)]
    for name, figures in (("a", made[:2]), ("b", made[2:])):
        facts = dict.fromkeys(verdicts.FACTS, name)
        (tmp_path / name).write_text(json.dumps(facts | {"figures": [one.to_json() for one in figures]}))
    loaded = load_runs([tmp_path / "a", tmp_path / "b"], verdicts.FACTS)
    assert [Figure.from_json(plain) for plain in loaded] == made
    assert verdicts.main(["--combine", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert verdicts.main(["--combine", str(tmp_path / "a")]) == 1


def test_what_kernelbench_returned() -> None:
    facts = {"compiled": True, "correctness": True, "metadata": {"error": OSError("x")}}
    found = described(SimpleNamespace(runtime=2.0, ref_runtime=3.0, **facts))
    assert found == {"compiled": True, "correct": True, "timed": True, "speedup": 1.5, "metadata": {"error": "x"}}
    assert described(SimpleNamespace(runtime=-1.0, ref_runtime=-1.0, **facts))["timed"] is False
    assert described(None)["correct"] is False


def test_a_library_that_was_built_again_is_noticed(tmp_path: Path) -> None:
    built = tmp_path / "name" / "name.so"
    built.parent.mkdir()
    built.write_bytes(b"1")
    before = libraries(tmp_path)
    assert libraries(tmp_path) == before
    os.utime(built, ns=(1, 1))
    assert libraries(tmp_path) != before


async def test_a_device_is_lent_to_whose_turn_it_is() -> None:
    turns, order = Lending([0]), []

    async def work(name: str) -> None:
        async with turns.one() as index:
            order.append((name, index))
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(work(name), name=name) for name in "abc"]
    for name in "abc":
        await turns.arrival(name)
    assert order == []
    turns.give("b")
    await tasks[1]
    turns.give("c")
    turns.give("a")
    await asyncio.gather(*tasks)
    assert [name for name, _ in order] == ["b", "c", "a"] or [name for name, _ in order] == ["b", "a", "c"]


async def test_a_process_is_ended_at_its_limit_with_what_it_started() -> None:
    script = "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); print('up', flush=True); time.sleep(60)"
    started = time.monotonic()
    done = await finish([sys.executable, "-c", script], os.environ, 1.0)
    assert time.monotonic() - started < 20.0
    assert done.code == -9 and "time limit" in done.errors
    done = await finish([sys.executable, "-c", "import sys; print('out'); sys.exit('why')"], os.environ, None)
    assert (done.code, done.output.strip(), done.errors.strip()) == (1, "out", "why")


@pytest.mark.parametrize(("arch", "named"), [("sm_90", "9.0"), ("sm_100", "10.0")])
def test_architectures_as_torch_names_them(arch: str, named: str) -> None:
    facts = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="GPU", arch=arch)
    assert capability(facts) == named
    with pytest.raises(SystemExit, match="none of an NVIDIA GPU"):
        capability(DeviceFacts(kind=DeviceKind.CPU, index=0, name="CPU", arch=None))


def test_a_step_that_does_not_fit_in_is_not_begun() -> None:
    deadline = Deadline(60.0, first_guess=100.0)
    assert not deadline.allows("a")
    deadline.took("a", 5.0)
    assert deadline.allows("a") and deadline.allows("b")
    assert Deadline(None).allows("a") and Deadline(None).left is None


class Asked:
    """Stands in for either side of measure_apart, and notes what it is asked."""

    def __init__(self, name: str, said: dict[str, list[str]]) -> None:
        self._name = name
        self._said = said

    def note(self, what: str, task: Task) -> None:
        self._said.setdefault(f"{self._name} {what}", []).append(task.name)


class AskedTheirs(Asked):
    async def build(self, task: Task, _limit: float | None) -> str | None:
        self.note("builds", task)
        return "no compiler" if task.problem.name == "4_C" else None

    async def evaluate(self, task: Task, _limit: float | None, cold: bool) -> list[Figure]:
        self.note("cold" if cold else "evaluates", task)
        return theirs(task.problem.name, 105.0 if cold else 60.0, cold)


class AskedOurs(Asked):
    def start(self, task: Task) -> None:
        self.note("builds", task)

    async def built(self, _task: Task) -> bool:
        return True

    async def evaluate(self, task: Task) -> Figure:
        self.note("evaluates", task)
        return ours(task.problem.name, 46.0, 40.0)

    async def evaluate_cold(self, task: Task) -> Figure:
        self.note("cold", task)
        await asyncio.sleep(0)
        return ours(task.problem.name, 50.0, 40.0, cold=True)


async def apart(folder: Path, cold: bool, beside: bool = True) -> tuple[dict[str, list[str]], list[Figure]]:
    """What both sides were asked for three problems three times, and the figures in the order in which they came."""
    said: dict[str, list[str]] = {}
    problems = [SimpleNamespace(name=name) for name in ("19_A", "1_B", "4_C")]
    tasks = repeated([Task(problem, folder, 0) for problem in cast("Any", problems)], 3)
    record = verdicts.Record(None, {})
    others: Any = AskedTheirs("kernelbench", said)
    own: Any = AskedOurs("hkbench", said)
    await verdicts.measure_apart(tasks, cold, beside, others, own, record, Deadline(None))
    return said, record.figures


IN_TURN = [f"{name}#{number}" for number in range(3) for name in ("19_A", "1_B", "4_C")]


async def test_apart_each_side_evaluates_all(tmp_path: Path) -> None:
    said, figures = await apart(tmp_path, cold=False)
    assert said["hkbench builds"] == said["hkbench evaluates"] == IN_TURN
    assert said["kernelbench evaluates"] == [name for name in IN_TURN if not name.startswith("4_C")]
    assert len(said["kernelbench builds"]) == 3  # their build cache serves the repeats
    text = summary(figures)
    assert "| 19_A | 3, 3 | 60.0 | 6.0 | 10.0 |" in text
    assert "left out: kernelbench, 4_C: no verdict it was not built: no compiler" in text


@pytest.mark.parametrize("beside", [True, False])
async def test_where_there_is_one_gpu_the_other_side_waits(tmp_path: Path, beside: bool) -> None:
    _, figures = await apart(tmp_path, cold=True, beside=beside)
    first = [figure.evaluator for figure in figures[: len(IN_TURN)]]
    assert (first == [HKBENCH] * len(IN_TURN)) is not beside


async def test_apart_and_cold_nothing_is_built_before(tmp_path: Path) -> None:
    said, figures = await apart(tmp_path, cold=True)
    assert said == {"kernelbench cold": IN_TURN, "hkbench cold": IN_TURN}
    assert "| 4_C | 3, 3 | 105.0 | 50.0 | 2.1 |" in summary(figures)


async def test_at_the_time_limit_it_waits_for_what_it_ends(tmp_path: Path) -> None:
    turns, ended = asyncio.Semaphore(1), list[str]()

    class Slow(AskedTheirs):
        async def evaluate(self, task: Task, _limit: float | None, cold: bool) -> list[Figure]:
            async with turns:  # those that wait for their turn are cancelled at once, before the one that has it
                try:
                    await asyncio.sleep(60.0)
                finally:
                    await asyncio.sleep(0.2)  # as killing a process and reading the end of its pipes does
                    ended.append(task.name)
            return theirs(task.problem.name, 105.0, cold)

    tasks = repeated([Task(cast("Any", SimpleNamespace(name="19_A")), tmp_path, 0)], 3)
    others: Any = Slow("kernelbench", {})
    own: Any = AskedOurs("hkbench", {})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await verdicts.measure_apart(tasks, True, True, others, own, verdicts.Record(None, {}), Deadline(None))
    assert ended == ["19_A#0"]


def test_apart_takes_no_processes() -> None:
    with pytest.raises(SystemExit, match="leave out --processes"):
        verdicts.main(["--apart", "2", "--processes", "19"])


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert verdicts.main(["--device", "cpu"]) == 69
    assert "needs a GPU" in capsys.readouterr().err
    monkeypatch.delenv("KERNELBENCH_DIR", raising=False)
    with pytest.raises(SystemExit, match="KERNELBENCH_DIR has to name a checkout"):
        verdicts.main(["--device", "cuda"])


@pytest.mark.skipif(not os.environ.get("KERNELBENCH_DIR"), reason="KERNELBENCH_DIR names no checkout of KernelBench")
class TestWithACheckout:
    checkout = Path(os.environ.get("KERNELBENCH_DIR", ""))

    def python(self, text: str, *words: Any) -> str:
        """In a process of its own: their package would stay in this one."""
        command = [sys.executable, "-c", f"from benchmarks.kernelbench_verdict import *\n{text}", *map(str, words)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_each_problem_has_its_candidate(self) -> None:
        tasks = verdicts.chosen(verdicts.PROBLEMS, self.checkout)
        assert [str(task.problem.number) for task in tasks] == list(verdicts.PROBLEMS)
        assert all(task.code.name == task.problem.path.name for task in tasks)
        with pytest.raises(SystemExit, match="no candidate for problem 50"):
            verdicts.chosen(["50"], self.checkout)

    def test_their_evaluator_loads_and_takes_the_arguments(self) -> None:
        used = inspect.getsource(sys.modules[described.__module__].evaluate).partition("eval_kernel_against_ref(")[2]
        names = [line.strip().partition("=")[0] for line in used.partition("\n    )")[0].splitlines() if "=" in line]
        assert len(names) == 7
        text = (
            "import inspect; evaluator = load_evaluator(Path(sys.argv[1]))\n"
            "names = inspect.signature(evaluator.eval_kernel_against_ref).parameters\n"
            "assert set(sys.argv[2:]) <= set(names), names\n"
            "assert list(inspect.signature(evaluator.build_compile_cache).parameters)[0] == 'custom_model_src'\n"
            "print(*(sorted(evaluator.KernelExecResult.model_fields)))"
        )
        fields = self.python(text, self.checkout, *names).split()
        assert {"compiled", "correctness", "runtime", "ref_runtime", "metadata"} <= set(fields)

    def test_what_stands_in_refuses_to_work(self) -> None:
        assert "tqdm" in NOT_NEEDED
        text = (
            "evaluator = load_evaluator(Path(sys.argv[1])); import tqdm\n"
            "if isinstance(tqdm, ModuleType) and not hasattr(tqdm, '__file__'):\n"
            "    try: tqdm.tqdm()\n"
            "    except RuntimeError as error: print(error)\n"
            "else: print('is not installed, in another world')"
        )
        assert "is not installed" in self.python(text, self.checkout)

    def test_their_cache_takes_a_build_and_tells_of_a_failed_one(self, tmp_path: Path) -> None:
        text = (
            "evaluator = load_evaluator(Path(sys.argv[1]))\n"
            "right = build(evaluator, 'class ModelNew: pass', Path(sys.argv[2]))\n"
            "wrong = build(evaluator, 'raise OSError(7)', Path(sys.argv[2]))\n"
            "print(json.dumps([right['built'], wrong['built'], wrong['error']]))"
        )
        right, wrong, error = json.loads(self.python(text, self.checkout, tmp_path).splitlines()[-1])
        assert right and not wrong and "7" in error

    def test_builds_are_timed(self) -> None:
        text = (
            "import torch.utils.cpp_extension as builder; builder.load_inline = lambda name: time.sleep(0.2)\n"
            "taken = timed_builds(); from torch.utils.cpp_extension import load_inline; load_inline(name='a')\n"
            "print(taken[0] >= 0.2, len(taken))"
        )
        assert self.python(text).split() == ["True", "1"]

    def test_as_a_process_without_a_gpu(self, tmp_path: Path) -> None:
        problem = self.checkout / "KernelBench" / "level1" / "19_ReLU.py"
        words = [ROOT / "benchmarks/kernelbench_verdict.py", self.checkout, "--problem", problem, "--code", problem]
        environment = dict(os.environ) | {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
        command = [sys.executable, *map(str, words), "--build-dir", str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 69
        assert "needs a GPU" in done.stderr
