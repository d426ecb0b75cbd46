"""Every attack fails for the expected reason, every honest candidate passes, each run as a real candidate.

`scripts/corpus.py` runs the same cases and prints the table.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support import corpus
from support.cluster_traces import planted
from support.corpus import Row
from support.run_folder import correct, incorrect

from hkbench.records import FailureKind, Stage, Verdict

pytestmark = pytest.mark.alone

CASES = corpus.load_cases()
MIN_ATTACKS, MIN_HONEST = 90, 60

#: Also run by eval.py, with its exit codes: wrong answers, a crash, a message that is not one, and an honest one.
BY_EVAL = (
    ("s11_constant_softmax", {2}),
    ("f03_dies_in_forward", {2}),
    ("h04_junk_on_the_channel", {2}),
    ("f08_text_that_is_no_text", {2}),
    ("f14_deep_folders", {2}),
    ("cpu_pairwise_row_sum", {0, 1}),
)


def say(row: Row) -> str:
    return f"{row.word}: expected {row.expected}, got {row.status} {row.kind} at {row.stage}: {row.message[:500]}"


def _unexpected(printed: str) -> str:
    """The totals, then each case that was not as expected with what was printed of it."""
    rows = re.split(r"\n(?=\w)", printed)
    return "\n".join(
        [*(row for row in rows if "as expected, in" in row), *(row for row in rows if "\n    expected" in row)]
    )


def whole_corpus(device: str, table: Path) -> None:
    """All cases for a device by scripts/corpus.py, in a process of its own, so that no state of this one matters."""
    command = [sys.executable, str(corpus.ROOT / "scripts" / "corpus.py"), "--device", device]
    # A machine that tests other things beside it disturbs clocks: what was not as expected is judged again, alone.
    command += ["--again", "--jobs", str(len(os.sched_getaffinity(0))), "--markdown", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{_unexpected(done.stdout)}\n{done.stderr}"
    rows = table.read_text()
    missing = [case.name for case in CASES if case.runs_on(device) and f"| {case.name} |" not in rows]
    assert not missing


@pytest.mark.slow
@pytest.mark.skipif("HKBENCH_CORPUS" not in os.environ, reason="the whole corpus is run by `make corpus`")
def test_on_the_cpu(tmp_path: Path) -> None:
    whole_corpus("cpu", tmp_path / "table.md")


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif("HKBENCH_CORPUS" not in os.environ, reason="the whole corpus is run by `make corpus`")
@pytest.mark.skipif(not torch.cuda.is_available() or torch.version.hip is not None, reason="there is no NVIDIA GPU")
def test_on_an_nvidia_gpu(tmp_path: Path) -> None:
    whole_corpus("cuda", tmp_path / "table.md")


@pytest.mark.parametrize(("name", "exit_codes"), BY_EVAL)
def test_by_the_command_line(name: str, exit_codes: set[int], tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    row = corpus.run_eval(case, corpus.options_of(case, "cpu"), tmp_path)
    assert row.exit_code in exit_codes
    assert row.passed, say(row)


async def test_cases_with_other_options_wait_for_the_same_device() -> None:
    machine = corpus.Machine()
    words = ("--device", "cpu"), ("--device", "cpu", "--run-timeout", "2")
    async with corpus.Bench.open(words[0], machine) as usual, corpus.Bench.open(words[1], machine) as other:
        first, second = await usual.evaluator(), await other.evaluator()
        assert first is not second
        assert first._lent is second._lent and first._slots is second._slots


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    attacks, honest = [case for case in CASES if not case.honest], [case for case in CASES if case.honest]
    assert len(attacks) >= MIN_ATTACKS
    assert len(honest) >= MIN_HONEST
    assert {case.group for case in attacks} == set(corpus.CLASSES.values())
    assert len({case.name for case in CASES}) == len(CASES)


HEADER = '"""{title}\n\nproblem: {problem}\ndevice: cpu\nbackend: cpp\noutcome: {outcome}\nreason: {reason}\n"""\n'
GOOD = {"title": "S11 zeros: gives zeros", "problem": "rowsum", "outcome": "wrong_values", "reason": "are wrong"}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"title": "zeros"}, "NUMBER name"),
        ({"problem": "no_such_problem"}, "there is no problem"),
        ({"outcome": "wrong_value"}, "outcome wrong_value is none of"),
        ({"outcome": "slow"}, "outcome slow is none of"),
        ({"reason": "(unclosed"}, "not a regular expression"),
        ({"reason": ""}, "would match anything"),
        ({"reason": "a\nreason: b"}, "says reason twice"),
        ({"reason": "a\ntwin: nobody"}, "no honest case nobody"),
    ],
)
def test_a_header_that_is_wrong_is_named(tmp_path: Path, change: dict[str, str], complaint: str) -> None:
    path = tmp_path / "case.py"
    path.write_text(HEADER.format(**(GOOD | change)))
    with pytest.raises(corpus.CorpusError, match=complaint):
        corpus.parse(path)


def test_only_the_expected_kind_for_the_expected_reason_passes(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text(HEADER.format(**GOOD))
    case = corpus.parse(path)
    assert corpus.row_of(case, failed("wrong_values", "3 of 5 elements are wrong"), 1.0).word == "ok"
    assert corpus.row_of(case, failed("wrong_values", "some other words"), 1.0).word == "not as expected"
    assert corpus.row_of(case, failed("crash", "elements are wrong"), 1.0).word == "not as expected"
    assert not corpus.row_of(case, failed("wrong_values", "3 of 5 elements are wrong"), 1.0, exit_code=0).passed
    assert corpus.without_verdict(case, "WorkerLost", 1.0).word == "NO VERDICT"
    row = corpus.row_of(case, correct("1_ReLU", 2.0), 1.0)
    assert (row.passed, row.word) == (False, "ATTACK SUCCEEDED")


def test_an_attack_that_is_no_faster_than_its_twin_has_gained_nothing(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text(HEADER.format(**GOOD))
    twin = corpus.row_of(corpus.parse(path), correct("1_ReLU", 2.0), 1.0)
    assert twin.speedup is not None
    low, high = twin.speedup
    for speedup, passed in (((low, high), True), ((high + 0.1, high + 0.2), False)):
        row = corpus.held_against(replace(twin, speedup=speedup), twin)
        assert (row.passed, row.word) == (passed, "ok" if passed else "ATTACK SUCCEEDED")


def failed(kind: str, message: str) -> Verdict:
    return incorrect("1_ReLU", FailureKind(kind), Stage.COMPARE, message)


@pytest.mark.parametrize("name", [case.path.stem for case in CASES if case.name.startswith("h24_cluster_")])
def test_attacks_on_a_cluster_find_what_nothing_hides(name: str) -> None:
    """Else they would fail for want of something to find."""
    with planted():
        runpy.run_path(str(corpus.ROOT / "tests" / "attacks" / f"{name}.py"))
