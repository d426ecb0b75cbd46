"""A run against another one: paired differences, what they settle, and the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config

from hkbench.records import EvaluationSettings, SizeSet
from hkbench.report.build import detail
from hkbench.report.compare import compare
from hkbench.report.compare_text import comparison_lines
from hkbench.report.compare_words import conclusion
from hkbench.report.comparison import Against, Comparison, Part, Settled
from hkbench.report.model import Report
from hkbench.report.paired import paired_with
from hkbench.report.settings import Difference, caveats, differences, obstacles, setting_rows
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


def two(a: Report, b: Report) -> Comparison:
    return compare([("a", a), ("b", b)], force=True)


def compared(tmp_path: Path, first: Speeds, second: Speeds) -> Against:
    return two(report_of(tmp_path / "a", first), report_of(tmp_path / "b", second)).against[0]


def said(part: Part) -> str:
    return conclusion(part.solved, part.speedup, "B", "A")


def test_the_same_run_twice(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, 0.5, None])
    comparison = two(a, a)
    assert not any(row.differs for row in comparison.settings) and not comparison.worse
    found = comparison.against[0]
    assert found.whole.speedup is not None
    assert found.whole.speedup.difference.low is None  # no interval of no width
    assert not found.worse
    assert said(found.whole) == (
        "Of 3 problems A and B solve the same ones; their speed-ups are the same over 2 problems correct in both."
    )


def test_slower_beyond_the_interval_is_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, 2.2, 1.8, 2.4, 2.0, 3.0, 2.0, 2.0], [1.5, 1.8, 1.4, 1.9, 1.5, 2.2, 1.4, 1.6])
    speed = found.whole.speedup
    assert speed is not None and speed.settled is Settled.WORSE
    assert speed.problems == speed.differ == 8
    assert speed.difference.high is not None and speed.difference.high < 1.0
    assert found.worse
    assert "B's kernels are slower" in said(found.whole)
    assert "leaves out 1" in said(found.whole)


def test_solving_more_is_better_and_not_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, [None] * 8 + [2.0] * 4, [2.0] * 12)
    assert found.whole.solved.settled is Settled.BETTER
    assert (found.whole.a.solved, found.whole.b.solved) == (4, 12)
    assert found.whole.solved.difference.value == pytest.approx(8 / 12)
    assert not found.worse
    assert said(found.whole).startswith("B solves more: +66.7 points")


def test_few_differences_settle_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0] * 10, [2.0] * 5 + [1.0] * 5)
    speed = found.whole.speedup
    assert speed is not None and speed.differ == 5
    assert speed.difference.high is not None and speed.difference.high < 1.0
    assert speed.settled is Settled.OPEN
    assert "fewer than 6 problems differ" in said(found.whole)


def test_an_interval_that_holds_none_is_said_so(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0] * 8, [1.0, 4.0, 1.1, 4.1, 1.2, 4.2, 1.3, 4.3])
    assert found.whole.speedup is not None and found.whole.speedup.settled is Settled.OPEN
    assert "an interval that holds 1" in said(found.whole)


def test_nothing_correct_in_both(tmp_path: Path) -> None:
    comparison = two(report_of(tmp_path / "a", [2.0, None]), report_of(tmp_path / "b", [None, 2.0]))
    found = comparison.against[0]
    assert found.whole.speedup is None
    assert "nothing is said of speed" in said(found.whole)
    text = "\n".join(comparison_lines(comparison))
    assert "solved in B only: 2_P" in text
    assert "correct in A only: 1_P" in text


def test_figures_are_over_the_compared_problems_only(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, 3.0])
    b = report_of(tmp_path / "b", [4.0, 3.0, 9.0])
    changed = b.model_copy(
        update={"config": b.config.model_copy(update={"problem_hashes": ("0" * 64, "1" * 64, "0" * 64)})}
    )
    found = two(a, changed)
    (against,) = found.against
    assert against.left_out == {"2_P": "the problem's file is not the same", "3_P": "only in B"}
    assert against.whole.a.problems == 1
    assert against.whole.speedup is not None and against.whole.speedup.b == pytest.approx(4.0)
    versus = [cell.versus if cell is not None else None for row in found.problems for cell in row.cells]
    assert [one is None for one in versus] == [True, False, *[True] * 4]
    assert versus[1] is not None and versus[1].ratio == pytest.approx(2.0) and versus[1].apart


def test_what_the_machine_failed_at_is_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "b", run_config(("1_P", "2_P"), samples=1, attempts=1))
    run.start()
    run.begin("1_P")
    run.sample("1_P", 1, 1, correct("1_P", 2.0))
    run.end("1_P")
    run.begin("2_P")
    run.end("2_P", error="no GPU")
    b = detail(read_run(run.paths))
    found = two(report_of(tmp_path / "a", [2.0, None]), b)
    assert found.against[0].left_out == {"2_P": "not judged in B"}
    assert "INCOMPLETE  B: " in "\n".join(comparison_lines(found))


def test_a_problem_that_goes_on_is_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "b", run_config(("1_P", "2_P"), samples=1, attempts=2))
    run.start()
    for name in ("1_P", "2_P"):
        run.begin(name)
        run.sample(name, 1, 1, incorrect(name))
    run.end("1_P")
    found = two(report_of(tmp_path / "a", [2.0, 2.0]), detail(read_run(run.paths)))
    assert found.against[0].left_out == {"2_P": "not finished in B"}


def test_no_common_problem(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    b = report_of(tmp_path / "b", [2.0], problem_hashes=("1" * 64,))
    assert paired_with(a, b, "B", ("A", "B")) is None


def obstacles_of(a: Report, b: Report) -> list[Difference]:
    return obstacles(differences(setting_rows([a, b]), 1))


def test_differences_and_obstacles(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    b = report_of(tmp_path / "b", [2.0], sizes=SizeSet.FULL, backend="triton", model="other")
    assert differences(setting_rows([a, b]), 1) == [
        ("backend", "cpp", "triton"),
        ("sizes", "cpu", "full"),
        ("model", "test-model", "other"),
    ]
    assert [one.setting for one in obstacles_of(a, b)] == ["sizes"]
    elsewhere = a.model_copy(update={"facts": FACTS.model_copy(update={"hardware": {"device": "H200"}})})
    assert obstacles_of(a, elsewhere) == []  # not known of A
    here = a.model_copy(update={"facts": FACTS.model_copy(update={"hardware": {"device": "MI300X"}})})
    assert [(one.a, one.b) for one in obstacles_of(here, elsewhere)] == [("MI300X", "H200")]


def test_with_and_without_the_weak(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, 3.0, None])
    b = report_of(tmp_path / "b", [2.0, 6.0, None])
    weak = b.problems[1].model_copy(update={"weak": ("zeros",)})
    comparison = two(a, b.model_copy(update={"problems": (b.problems[0], weak, b.problems[2])}))
    (found,) = comparison.against
    assert found.without_weak is not None
    assert found.weak_problems == ("2_P",)
    assert (found.whole.a.problems, found.without_weak.b.problems) == (3, 2)
    assert found.without_weak.speedup is not None and found.without_weak.speedup.b == pytest.approx(2.0)
    text = "\n".join(comparison_lines(comparison))
    assert found.not_audited == ("1_P", "3_P")
    assert "2 of the compared problems were not audited" in text
    assert "Without the weak problems" in text and "2_P (weak)" in text


def test_the_other_run_is_called_as_it_is_named(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0, None, 2.0])
    c = report_of(tmp_path / "c", [2.0, 2.0, 1.0, 2.0], samples=2)
    found = compare([("a", a), ("a", a), ("c", c)])
    assert found.against[1].left_out == {"4_P": "only in C"}
    assert two(c, a).against[0].left_out == {"4_P": "only in A"}
    text = " ".join(" ".join(comparison_lines(found)).partition("C against A")[2].split())
    assert "solved in C only: 2_P" in text and "C / A" in text and "samples: 1 in A, 2 in C" in text
    assert not re.search(r"\bB\b", text)


def test_every_headline_has_its_paired_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, [2.0, 1.2, 0.9, None, 3.0], [2.5, 2.5, 0.9, 0.6, None])
    part = found.whole
    assert {p: (one.difference.value, one.differ) for p, one in part.fast_p.items()} == {
        "0": (0.0, 2), "0.5": (0.0, 2), "0.8": (pytest.approx(-0.2), 1), "1": (pytest.approx(-0.2), 1),
        "1.5": (0.0, 2), "2": (pytest.approx(0.2), 3),
    }  # fmt: skip
    assert all(one.problems == 5 and one.settled is Settled.OPEN for one in part.fast_p.values())
    ((k, first),) = part.pass_at_k.items()  # one sample each
    assert (k, first.a, first.b, first.difference.value) == (1, 0.8, 0.8, 0.0)
    assert first.difference.low is not None and first.difference.low < 0.0


def test_what_flipped(tmp_path: Path) -> None:
    flips = compared(tmp_path, [2.0, 0.5, None, 0.5, 2.0], [0.5, 2.0, 0.5, None, 2.0]).flips
    assert flips.solved_only_a == ("1_P",) and flips.solved_only_b == ("2_P",)
    assert flips.correct_only_b == ("3_P",) and flips.correct_only_a == ("4_P",)


def test_settings_that_the_comparison_suffers_from_are_said(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    settings = EvaluationSettings(trials=2, profile_slow=False)
    found = two(a, report_of(tmp_path / "b", [2.0], sizes=SizeSet.FULL, attempts=3, evaluation=settings))
    unlike, strict, tried = caveats(differences(found.settings, 1), "B", "A")
    assert "not measured alike (sizes: cpu in A, full in B)" in unlike
    assert "not evaluated alike (evaluation trials: 5 in A, 2 in B)" in strict
    assert "not have equally many attempts or samples (attempts: 1 in A, 3 in B)" in tried
    text = " ".join(" ".join(comparison_lines(found)).split())
    assert all(" ".join(sentence.split()) in text for sentence in (unlike, strict, tried))
    alike = two(a, report_of(tmp_path / "c", [2.0], temperature=0.5, judge_model="another"))
    assert list(caveats(differences(alike.settings, 1), "B", "A")) == []


def test_the_text_fits_and_the_data_is_json(tmp_path: Path) -> None:
    found = two(report_of(tmp_path / "a", [2.0, None, 0.5]), report_of(tmp_path / "b", [2.5, 1.5, 0.25]))
    lines = comparison_lines(found)
    assert max(map(len, lines)) <= 100
    assert json.loads(found.model_dump_json())["against"][0]["whole"]["solved"]["differ"] == 1
