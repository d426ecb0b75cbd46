"""A run against another one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config

from hkbench.records import Backend, JudgeSettings, SizeSet
from hkbench.report.build import detail
from hkbench.report.compare import Comparison, Outcome, compare, differences, left_out_of, obstacles
from hkbench.report.compare_text import comparison_lines
from hkbench.report.compare_words import caveats, conclusion
from hkbench.report.model import Report
from hkbench.store.reader import read_run

Speeds = Sequence[float | None]


def report_of(root: Path, speeds: Speeds, **settings: object) -> Report:
    """A finished run of a problem for each speed-up; `None`: not correct."""
    names = tuple(f"{n}_P" for n in range(1, len(speeds) + 1))
    config = run_config(names, samples=1, attempts=1).model_copy(update=settings)
    run = RunFolder(root, config)
    run.start()
    for name, speed in zip(names, speeds, strict=True):
        run.begin(name)
        run.sample(name, 1, 1, incorrect(name) if speed is None else correct(name, speed))
        run.end(name)
    run.close()
    return detail(read_run(run.paths))


def compared(tmp_path: Path, first: Speeds, second: Speeds) -> Comparison:
    found = compare(report_of(tmp_path / "a", first), report_of(tmp_path / "b", second))
    assert found is not None
    return found


def test_the_same_run_twice(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, 0.5, None], [2.0, 0.5, None])
    assert found.differences == ()
    assert found.whole.speedup is not None
    assert found.whole.speedup.difference.low is None  # no interval of no width
    assert not found.worse
    assert conclusion(found.whole) == (
        "Of 3 problems A and B solve the same ones; their speed-ups are the same over 2 problems correct in both."
    )


def test_slower_beyond_the_interval_is_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, 2.2, 1.8, 2.4, 2.0, 3.0, 2.0, 2.0], [1.5, 1.8, 1.4, 1.9, 1.5, 2.2, 1.4, 1.6])
    speed = found.whole.speedup
    assert speed is not None and speed.outcome is Outcome.WORSE
    assert speed.problems == speed.differ == 8
    assert speed.difference.high is not None and speed.difference.high < 1.0
    assert found.worse
    assert "B's kernels are slower" in conclusion(found.whole)
    assert "leaves out 1" in conclusion(found.whole)


def test_solving_more_is_better_and_not_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, [None] * 8 + [2.0] * 4, [2.0] * 12)
    assert found.whole.solved.outcome is Outcome.BETTER
    assert (found.whole.a.solved, found.whole.b.solved) == (4, 12)
    assert found.whole.solved.difference.value == pytest.approx(8 / 12)
    assert not found.worse
    assert conclusion(found.whole).startswith("B solves more: +66.7 points")


def test_few_differences_settle_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0] * 10, [2.0] * 5 + [1.0] * 5)
    speed = found.whole.speedup
    assert speed is not None and speed.differ == 5
    assert speed.difference.high is not None and speed.difference.high < 1.0
    assert speed.outcome is Outcome.OPEN
    assert "fewer than 6 problems differ" in conclusion(found.whole)


def test_an_interval_that_holds_none_is_said_so(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0] * 8, [1.0, 4.0, 1.1, 4.1, 1.2, 4.2, 1.3, 4.3])
    assert found.whole.speedup is not None and found.whole.speedup.outcome is Outcome.OPEN
    assert "an interval that holds 1" in conclusion(found.whole)


def test_nothing_correct_in_both(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, None], [None, 2.0])
    assert found.whole.speedup is None
    assert "nothing is said of speed" in conclusion(found.whole)
    text = "\n".join(comparison_lines(found, "a", "b"))
    assert "solved in B only: 2_P" in text
    assert "correct in A only: 1_P" in text


def test_figures_are_over_the_compared_problems_only(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, 3.0])
    b = report_of(tmp_path / "b", [4.0, 3.0, 9.0])
    changed = b.model_copy(
        update={"config": b.config.model_copy(update={"problem_hashes": ("0" * 64, "1" * 64, "0" * 64)})}
    )
    assert left_out_of(a, changed) == {"2_P": "the problem's file is not the same", "3_P": "only in B"}
    found = compare(a, changed)
    assert found is not None
    assert found.whole.problems == 1
    assert found.whole.b.geometric_mean_speedup == pytest.approx(4.0)
    assert found.problems[0].ratio == pytest.approx(2.0)
    assert found.problems[0].apart


def test_what_the_machine_failed_at_is_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "b", run_config(("1_P", "2_P"), samples=1, attempts=1))
    run.start()
    run.begin("1_P")
    run.sample("1_P", 1, 1, correct("1_P", 2.0))
    run.end("1_P")
    run.begin("2_P")
    run.end("2_P", error="no GPU")
    b = detail(read_run(run.paths))
    found = compare(report_of(tmp_path / "a", [2.0, None]), b)
    assert found is not None
    assert found.left_out == {"2_P": "not judged in B"}
    assert found.incomplete[0].startswith("B: ")


def test_a_problem_that_goes_on_is_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "b", run_config(("1_P", "2_P"), samples=1, attempts=2))
    run.start()
    for name in ("1_P", "2_P"):
        run.begin(name)
        run.sample(name, 1, 1, incorrect(name))
    run.end("1_P")
    found = compare(report_of(tmp_path / "a", [2.0, 2.0]), detail(read_run(run.paths)))
    assert found is not None
    assert found.left_out == {"2_P": "not finished in B"}


def test_no_common_problem(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    b = report_of(tmp_path / "b", [2.0], problem_hashes=("1" * 64,))
    assert compare(a, b) is None


def test_differences_and_obstacles(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    b = report_of(tmp_path / "b", [2.0], sizes=SizeSet.FULL, backend=Backend.TRITON, model="other")
    assert [(one.setting, one.a, one.b) for one in differences(a, b)] == [
        ("backend", "cpp", "triton"),
        ("sizes", "cpu", "full"),
        ("model", "test-model", "other"),
    ]
    assert [one.setting for one in obstacles(a, b)] == ["sizes"]
    elsewhere = a.model_copy(update={"facts": FACTS.model_copy(update={"hardware": {"device": "H200"}})})
    assert obstacles(a, elsewhere) == ()  # not known of A
    here = a.model_copy(update={"facts": FACTS.model_copy(update={"hardware": {"device": "MI300X"}})})
    assert [(one.a, one.b) for one in obstacles(here, elsewhere)] == [("MI300X", "H200")]


def test_with_and_without_the_weak(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, 3.0, None])
    b = report_of(tmp_path / "b", [2.0, 6.0, None])
    weak = b.problems[1].model_copy(update={"weak": ("zeros",)})
    found = compare(a, b.model_copy(update={"problems": (b.problems[0], weak, b.problems[2])}))
    assert found is not None and found.without_weak is not None
    assert found.weak_problems == ("2_P",)
    assert (found.whole.problems, found.without_weak.problems) == (3, 2)
    assert found.without_weak.b.geometric_mean_speedup == pytest.approx(2.0)
    text = "\n".join(comparison_lines(found, "a", "b"))
    assert found.not_audited == ("1_P", "3_P")
    assert "2 of the compared problems were not audited" in text
    assert "Without the weak problems" in text and "2_P (weak)" in text


def test_the_other_run_is_called_as_it_is_named(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, None, 2.0])
    c = report_of(tmp_path / "c", [2.0, 2.0, 1.0, 2.0], samples=2)
    found = compare(a, c, "C")
    assert found is not None
    assert found.left_out == {"4_P": "only in C"}
    assert left_out_of(c, a, "C") == {"4_P": "only in A"}
    text = " ".join(" ".join(comparison_lines(found, "a", "c")).split())
    assert "solved in C only: 2_P" in text and "C / A" in text and "samples: 1 in A, 2 in C" in text
    assert not re.search(r"\bB\b", text)


def test_every_headline_has_its_paired_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, 1.2, 0.9, None, 3.0], [2.5, 2.5, 0.9, 0.6, None])
    part = found.whole
    assert {p: (one.difference.value, one.differ) for p, one in part.fast_p.items()} == {
        "0": (0.0, 2), "0.5": (0.0, 2), "0.8": (pytest.approx(-0.2), 1), "1": (pytest.approx(-0.2), 1),
        "1.5": (0.0, 2), "2": (pytest.approx(0.2), 3),
    }  # fmt: skip
    assert all(one.problems == 5 and one.outcome is Outcome.OPEN for one in part.fast_p.values())
    (first,) = part.pass_at_k  # one sample each
    assert (first.k, first.a, first.b, first.paired.difference.value) == (1, 0.8, 0.8, 0.0)
    assert first.paired.difference.low is not None and first.paired.difference.low < 0.0


def test_what_flipped(tmp_path: Path) -> None:
    flips = compared(tmp_path, [2.0, 0.5, None, 0.5, 2.0], [0.5, 2.0, 0.5, None, 2.0]).flips
    assert flips.solved_only_a == ("1_P",) and flips.solved_only_b == ("2_P",)
    assert flips.correct_only_b == ("3_P",) and flips.correct_only_a == ("4_P",)


def test_settings_that_the_comparison_suffers_from_are_said(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    judge = JudgeSettings(trials=2, profile_slow=False)
    found = compare(a, report_of(tmp_path / "b", [2.0], sizes=SizeSet.FULL, attempts=3, judge=judge))
    assert found is not None
    unlike, judged, tried = caveats(found)
    assert "not measured alike (sizes: cpu in A, full in B)" in unlike
    assert "not judged alike (judge trials: 5 in A, 2 in B)" in judged
    assert "not have equally many attempts or samples (attempts: 1 in A, 3 in B)" in tried
    text = " ".join(" ".join(comparison_lines(found, "a", "b")).split())
    assert all(" ".join(sentence.split()) in text for sentence in (unlike, judged, tried))
    alike = compare(a, report_of(tmp_path / "c", [2.0], temperature=0.5, judge_model="another"))
    assert alike is not None and list(caveats(alike)) == []


def test_the_text_fits_and_the_data_is_json(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, None, 0.5], [2.5, 1.5, 0.25])
    lines = comparison_lines(found, "/a/folder", "/b/folder")
    assert max(map(len, lines)) <= 100
    assert json.loads(found.model_dump_json())["whole"]["solved"]["differ"] == 1
