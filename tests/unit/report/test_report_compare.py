"""Runs compared, each with the first: the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.compared_runs import Speeds, compared_run
from support.run_folder import FACTS, RunFolder, run_config

from hkbench.errors import UsageError
from hkbench.records import Price, Rates, SizeSet
from hkbench.report.build import detail
from hkbench.report.compare import compare
from hkbench.report.compare_text import comparison_lines
from hkbench.report.compare_words import conclusion
from hkbench.report.comparison import NAMES, Comparison
from hkbench.report.model import Report
from hkbench.report.settings import caveats, differences
from hkbench.store.reader import read_run


def report_of(root: Path, speeds: Speeds, *, hashes: Sequence[str] = (), **settings: object) -> Report:
    return detail(read_run(compared_run(root, speeds, hashes=hashes, **settings).paths))


@pytest.fixture
def three(tmp_path: Path) -> Comparison:
    a = report_of(tmp_path / "a", [2.0, 0.5, None, 3.0])
    b = report_of(tmp_path / "b", [1.0, 2.0, 0.5, 3.0], model="other")
    c = report_of(tmp_path / "c", [4.0, 0.5, None, None, 2.0], hashes=("0" * 64,) * 3 + ("1" * 64, "0" * 64))
    return compare([("runs/a", a), ("runs/b", b), ("runs/c", c)])


def test_each_run_is_compared_with_the_first_as_the_two_alone_would_be(tmp_path: Path) -> None:
    reports = [report_of(tmp_path / name, speeds) for name, speeds in (("a", [2.0, 1.0]), ("b", [1.0]), ("c", [3.0]))]
    found = compare([("x", report) for report in reports])
    assert [one.run for one in found.against] == ["B", "C"]
    for one, other in zip(found.against, reports[1:], strict=True):
        (alone,) = compare([("x", reports[0]), ("x", other)]).against
        assert (one.whole.speedup, one.whole.solved) == (alone.whole.speedup, alone.whole.solved)
        assert (one.whole.a, one.whole.b) == (alone.whole.a, alone.whole.b)
        assert f"test-model (x) {one.run}" in one.whole.conclusion and "test-model (x) A" in one.whole.conclusion


def test_figures_are_over_what_all_runs_have_in_common(three: Comparison) -> None:
    assert three.common == ("1_P", "2_P", "3_P")
    assert three.against[0].whole.a.problems == 4  # A and B alone have one more
    assert three.against[1].left_out == {"4_P": "the problem's file is not the same", "5_P": "only in C"}
    a, b, c = (run.figures for run in three.runs)
    assert a is not None and b is not None and c is not None
    assert [(one.problems, one.solved, one.correct) for one in (a, b, c)] == [(3, 1, 2), (3, 2, 3), (3, 1, 2)]
    assert a.geometric_mean_speedup is not None and a.geometric_mean_speedup.value == pytest.approx(1.0)
    assert a.fast_p["1"].value == pytest.approx(1 / 3)
    assert a.fast_p["1"].low == pytest.approx(0.0615, abs=1e-3)  # Wilson's
    assert [(one.k, one.problems) for one in a.pass_at_k] == [(1, 3), (2, 3)]
    assert a.pass_at_k[0].value.value == pytest.approx(1 / 3)  # one of two, one of two, none
    assert (a.tokens_input.total, a.tokens_output.total, a.samples_judged, a.samples_correct) == (600, 360, 6, 2)
    assert [(f.kind.value, f.count) for f in a.model_failures] == [("build_error", 3), ("crash", 1)]
    assert three.runs[2].own.judged == 5


def test_rows_hold_every_problem_of_every_run(three: Comparison) -> None:
    assert [(row.problem, row.common) for row in three.problems] == [
        ("1_P", True), ("2_P", True), ("3_P", True), ("4_P", False), ("5_P", False),
    ]  # fmt: skip
    last = three.problems[4].cells
    assert last[:2] == (None, None) and last[2] is not None and (last[2].number, last[2].solved) == (5, True)


def test_settings_say_which_differ(three: Comparison) -> None:
    differing = {row.setting: row.values for row in three.settings if row.differs}
    assert differing == {"model": ("test-model", "other", "test-model")}
    assert any(row.setting == "evaluation trials" and not row.differs for row in three.settings)


def test_without_the_weak_problems(tmp_path: Path) -> None:
    facts = FACTS.model_copy(update={"weak": {"1_P": ("zeros",), "2_P": ()}})
    a = report_of(tmp_path / "a", [8.0, 2.0])
    b = detail(replace(read_run(compared_run(tmp_path / "b", [1.0, 2.0]).paths), facts=facts))
    found = compare([("a", a), ("b", b)])
    assert found.common_weak == ("1_P",)
    first = found.runs[0].figures_without_weak
    assert first is not None and first.problems == 1
    assert first.geometric_mean_speedup is not None and first.geometric_mean_speedup.value == pytest.approx(2.0)
    without = found.against[0].without_weak
    assert without is not None and without.conclusion.startswith("Of 1 problem")


def test_cost_is_over_the_common_problems(tmp_path: Path) -> None:
    price = Price(currency="USD", entry="m", rates=Rates(input=1000.0, output=2000.0), source="prices.toml")
    a = report_of(tmp_path / "a", [2.0, 2.0, None])
    view = read_run(compared_run(tmp_path / "b", [1.0, None], hashes=("0" * 64,) * 2).paths)
    b = detail(replace(view, facts=FACTS.model_copy(update={"price": price})))
    found = compare([("a", a), ("b", b)])
    first, second = (run.figures for run in found.runs)
    assert first is not None and second is not None
    assert (first.cost.total, first.cost.unpriced_replies, first.cost_per_solved) == (None, 4, None)
    # Two problems, two samples each: 400 tokens in, 240 out.
    assert second.cost.total == pytest.approx(0.88) and second.cost.currency == "USD"
    assert second.cost_per_solved == pytest.approx(0.88)
    text = " ".join(" ".join(comparison_lines(found)).split())
    assert "cost unknown 0.88 USD" in text
    assert any(row.setting == "price" and row.differs for row in found.settings)


def test_a_worse_run_among_several_is_worse(tmp_path: Path) -> None:
    base = [2.0 + 0.1 * n for n in range(8)]
    a, b, c = (report_of(tmp_path / x, [s * f for s in base]) for x, f in (("a", 1.0), ("b", 1.2), ("c", 0.7)))
    assert [one.worse for one in compare([("a", a), ("b", b), ("c", c)]).against] == [False, True]
    assert compare([("a", a), ("b", b), ("c", c)]).worse
    assert not compare([("a", a), ("b", b)]).worse


def test_a_run_that_compiles_only_is_not_compared(tmp_path: Path) -> None:
    a = report_of(tmp_path / "a", [2.0])
    config = a.config.model_copy(update={"compiled_for": "gfx942"})
    for force in (False, True):
        with pytest.raises(UsageError, match=r"B measured nothing \(--build-only\)"):
            compare([("a", a), ("b", a.model_copy(update={"config": config}))], force=force)


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    a, full = report_of(tmp_path / "a", [2.0]), report_of(tmp_path / "b", [2.0], sizes=SizeSet.FULL)
    with pytest.raises(UsageError, match=r"sizes: cpu in A, full in C.*--force"):
        compare([("a", a), ("a", a), ("b", full)])
    assert compare([("a", a), ("b", full)], force=True).against[0].whole.a.problems == 1
    other = detail(read_run(RunFolder(tmp_path / "c", run_config(("9_Q",))).paths))
    with pytest.raises(
        UsageError, match="no problem was finished in both A and B:\n  1_P: only in A\n  9_Q: only in B"
    ):
        compare([("a", a), ("c", other)])
    for wrong in ([("a", a)], [("a", a)] * (len(NAMES) + 1)):
        with pytest.raises(UsageError, match="cannot be compared"):
            compare(wrong)


def test_runs_with_and_without_an_experience_are_not_mixed_unless_told(tmp_path: Path) -> None:
    cold, warm = report_of(tmp_path / "a", [1.0]), report_of(tmp_path / "b", [1.0], experience="/e.db")
    with pytest.raises(UsageError, match=r"experience: none in A, /e.db in B.*--force"):
        compare([("a", cold), ("b", warm)])
    mixed = compare([("a", cold), ("b", warm)], force=True)
    [said] = caveats(differences(mixed.settings, 1), "B", "A")
    assert "recall" in said
    other = report_of(tmp_path / "c", [1.0], experience="/moved.db")
    assert compare([("b", warm), ("c", other)]).against[0].whole.a.problems == 1


def test_the_text_of_several_names_the_first_and_each_pair(three: Comparison) -> None:
    lines = comparison_lines(three)
    text = " ".join(" ".join(lines).split())
    assert text.startswith("2 runs, each against A, which is runs/a (test-model; cpp on cpu, cpu sizes).")
    assert "B against A" in text and "C against A" in text
    assert all(conclusion(one.whole.solved, one.whole.speedup, one.run, "A") in text for one in three.against)
    assert max(map(len, lines)) <= 100
