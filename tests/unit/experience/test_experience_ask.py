"""What is answered: by facts, with its record and where it comes from, and nothing of what is held out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.experience_runs import ADVICE, MENDED, UNDECLARED, judged, mended_run, problem, traits
from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.experience.ask import Experience
from hkbench.experience.database import Database
from hkbench.experience.feed import add_run
from hkbench.experience.fingerprint import Fingerprint, fingerprint
from hkbench.moves import Priors
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    HintKind,
    PromptRendered,
    RuleSet,
    SampleKey,
    Stage,
    Track,
)

CHANGE = "`x = relu6(1)` became `x = torch.relu(1)`"
CPU = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU")
OWN = EvaluationSettings()


def failure(message: str) -> Fingerprint:
    return fingerprint(Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message))


def filled(path: Path, *runs: RunFolder, digest: str = "facts") -> Path:
    with Database(path, create=True) as database:
        for run in runs:
            add_run(database, run.root, {name: traits(digest) for name in run.config.problems})
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_hint_and_the_change_itself_come_back_with_their_record(folder: Path) -> None:
    runs = [mended_run(folder / f"run{n}", at=n, outcomes=(True, n != 1)) for n in range(2)]
    found = Experience(filled(folder / "e.db", *runs)).remedies(problem("9_Other", "x"), failure(UNDECLARED), "cpp")
    assert {one.text: one.record for one in found} == {ADVICE: "helped 3 of 4", CHANGE: "helped 3 of 3"}
    assert found[0].text == CHANGE, "the surest first"
    assert (found[0].source.run, found[0].source.attempt, found[0].source.sample) == ("run0", 2, 1)
    assert all(one.symbol == "relu6" for one in found)


def test_what_helped_less_often_than_not_is_not_answered(folder: Path) -> None:
    run = mended_run(folder / "run", outcomes=(True, False, False))
    found = Experience(filled(folder / "e.db", run)).remedies(problem("9_Other", "x"), failure(UNDECLARED), "cpp")
    assert [one.text for one in found] == [CHANGE]


def test_an_error_of_the_same_symbol_is_akin_and_one_of_another_language_is_not(folder: Path) -> None:
    asked = Experience(filled(folder / "e.db", mended_run(folder / "run")))
    akin = failure("k.cpp:9: error: no member named 'relu6' in 'at'")
    assert akin.digest != failure(UNDECLARED).digest
    assert {one.text for one in asked.remedies(problem("9_Other", "x"), akin, "cpp")} == {ADVICE, CHANGE}
    assert asked.remedies(problem("9_Other", "x"), akin, "triton") == ()
    assert asked.remedies(problem("9_Other", "x"), failure("error: expected ';'"), "cpp") == ()


def test_the_prompts_own_hints_are_counted_and_never_answered(folder: Path) -> None:
    run = mended_run(folder / "run", outcomes=(True, False), kind=HintKind.RULE, hint="main.cpp:3: declare it")
    with Database(filled(folder / "e.db", run)) as database:
        counted = database.rows("SELECT text, helped, tried FROM remedy WHERE kind = 'rule'")
    assert counted == [("declare it", 1, 2)], "without the line that it was about"
    found = Experience(folder / "e.db").remedies(problem("9_Other", "x"), failure(UNDECLARED), "cpp")
    assert [one.text for one in found] == [CHANGE]


def test_a_remedy_that_is_shown_keeps_its_record(folder: Path) -> None:
    """A false entry is not shown any more once it has failed and another one has not."""
    runs = [mended_run(folder / "false", hint="pray")]
    runs += [mended_run(folder / f"run{n}", at=n, hint="pray", kind=HintKind.REMEDY, outcomes=(False,)) for n in (1, 2)]
    for number, answered in ((1, True), (2, False), (3, False)):
        asked = Experience(filled(folder / f"{number}.db", *runs[:number]))
        found = asked.remedies(problem("9_Other", "x"), failure(UNDECLARED), "cpp")
        assert ("pray" in {one.text for one in found}) is answered


def test_what_several_problems_met_is_a_pitfall_with_its_surest_remedy(folder: Path) -> None:
    runs = [mended_run(folder / f"run{n}", f"{n}_P", at=n, outcomes=(True, n != 1)) for n in (1, 2, 3)]
    runs += [mended_run(folder / f"own{n}", "4_P", at=n, message="error: no 'x' here") for n in (4, 5)]
    asked = Experience(filled(folder / "e.db", *runs))
    [found] = asked.pitfalls(problem("9_Other", "x"), "cpp")
    assert found.error == "'relu6' was not declared in this scope" and found.problems == 3
    assert (found.remedy.text, found.remedy.record) == (CHANGE, "helped 5 of 5")
    assert asked.pitfalls(problem("9_Other", "x"), "triton") == ()


def test_what_helped_less_often_than_not_is_no_pitfall(folder: Path) -> None:
    runs = [
        mended_run(folder / f"run{n}", f"{n}_P", at=n, hint=CHANGE, kind=HintKind.REMEDY, outcomes=(False, False))
        for n in (1, 2)
    ]
    assert Experience(filled(folder / "e.db", *runs)).pitfalls(problem("9_Other", "x"), "cpp") == ()


@pytest.mark.parametrize(
    ("facts", "settings", "device", "backend", "known"),
    [
        ("facts", OWN, CPU, "cpp", True),
        ("others", OWN, CPU, "cpp", False),
        ("facts", EvaluationSettings(track=Track.ANY), CPU, "cpp", False),
        ("facts", EvaluationSettings(rules=RuleSet.KERNELBENCH), CPU, "cpp", False),
        ("facts", OWN, CPU, "triton", False),
        ("facts", OWN, DeviceFacts(kind=DeviceKind.CUDA, index=0, name="a GPU", arch="sm_90"), "cpp", False),
    ],
)
def test_a_kernel_is_known_for_the_same_facts_device_language_track_and_rules(
    folder: Path, facts: str, settings: EvaluationSettings, device: DeviceFacts, backend: str, known: bool
) -> None:
    asked = Experience(filled(folder / "e.db", mended_run(folder / "run")))
    found = asked.kernel(problem("9_SameUnderAnotherName", "x"), traits(facts), backend, device, settings)
    assert (found is not None) is known
    if found is not None:
        assert found.code == MENDED
        assert found.origin.speedup is not None and found.origin.speedup.value == 1.5
        assert found.origin.source.described == "run of 1_ReLU, 2.1"


def test_of_several_kernels_the_one_whose_speed_up_is_surest_is_known(folder: Path) -> None:
    runs = [mended_run(folder / f"run{n}", at=n, speedup=speedup) for n, speedup in enumerate((1.2, 3.0, 2.0))]
    found = Experience(filled(folder / "e.db", *runs)).kernel(problem("9", "x"), traits(), "cpp", CPU, OWN)
    assert found is not None and found.origin.source.run == "run1"


def test_nothing_is_answered_of_what_is_held_out_nor_of_its_equals_under_another_name(folder: Path) -> None:
    same = mended_run(folder / "renamed", "7_Renamed", at=1)  # the same source and the same facts
    other = RunFolder(folder / "other", run_config(("8_Other",)).model_copy(update={"problem_hashes": ("1" * 64,)}))
    path = filled(folder / "e.db", mended_run(folder / "run"), same)
    filled(path, other, digest="of another")
    for asked_for in (problem("1_ReLU"), problem("9_Other", "x")):
        closed = Experience(path, "^1_")
        assert closed.remedies(asked_for, failure(UNDECLARED), "cpp") == ()
        assert closed.kernel(asked_for, traits(), "cpp", CPU, OWN) is None
        assert closed.moves(asked_for, "cpp") == ()
        assert closed.pitfalls(asked_for, "cpp") == ()
        assert closed.similar(asked_for, traits()) == ()
    opened = Experience(path, "^8_")
    assert opened.remedies(problem("9_Other", "x"), failure(UNDECLARED), "cpp") != ()
    assert opened.pitfalls(problem("9_Other", "x"), "cpp") != ()


def test_similar_problems_come_with_what_they_gained_the_most_alike_first(folder: Path) -> None:
    path = folder / "e.db"
    filled(path, mended_run(folder / "a", at=1, speedup=2.0), mended_run(folder / "b", at=2, speedup=4.0))
    with Database(path) as database:
        far = mended_run(folder / "c", "2_Mm", at=3)
        add_run(database, far.root, {"2_Mm": traits("far", elementwise=1, matmul=2)})
        add_run(database, mended_run(folder / "d", "3_Sort", at=4).root, {"3_Sort": traits("sorted", sort=1)})
    found = Experience(path).similar(problem("9_Other", "x"), traits("new"))
    assert [(one.source.run, one.likeness, one.speedup) for one in found] == [
        ("b", 1.0, 4.0),
        ("c", pytest.approx(1 / 3), 1.5),
    ]


def test_moves_are_counted_by_the_class_of_the_kernel_that_they_were_tried_on(folder: Path) -> None:
    name = "1_ReLU"
    run = RunFolder(folder / "run", run_config((name,), strategy="judge"))
    run.start()
    start = judged(run, name, 1, 1, correct(name, 1.0), "a")
    for attempt, (step, verdict) in enumerate(
        [
            ("tile (BM: 1 -> 2)", correct(name, 2.0)),
            ("tile", incorrect(name)),
            ("unroll", correct(name, 1.01)),
            ("confirm", correct(name, 1.0)),
        ],
        2,
    ):
        run.emit(_prompt(run, attempt, start, step))
        judged(run, name, attempt, 1, verdict, step)
    found = Experience(filled(folder / "e.db", run)).moves(problem("9_Other", "x"), "cpp")
    assert [(one.move, one.bottleneck, one.tried, one.failed, one.gained) for one in found] == [
        ("tile", None, 2, 1, 1),
        ("unroll", None, 1, 0, 0),
    ]
    assert found[0].log_gain == pytest.approx(math.log(2))
    assert found[0].mean_gain == pytest.approx(2.0)
    weights = [Priors(found).weight(move, None) for move in ("tile", "unroll")]
    assert weights[0] > 1.0 > weights[1]


def _prompt(run: RunFolder, attempt: int, parent: SampleKey, step: str) -> PromptRendered:
    return PromptRendered(
        time=run.tick(), problem="1_ReLU", attempt=attempt, template="t", sha256="0" * 64, parent=parent, step=step
    )
