"""The replies and candidates below examples/: complete, readable, labelled, and what their labels say.

What a candidate does when it is built and run is the demo's business; these tests compile nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.records import BackendName, ExtractionRule, FailureKind, Reply, Status, Usage

ROOT = Path(__file__).resolve().parents[2]
REPLIES = ROOT / "examples" / "replies"
CANDIDATES = ROOT / "examples" / "candidates"
FILE = REPLIES / "reflect.toml"
BACKENDS = ("cpp", "cuda", "hip")
RECORDED = {backend: replies_in_file(FILE, backend) for backend in BACKENDS}
PROBLEMS = {path.stem for path in ROOT.glob("problems/level1/*.py")}
DEMO_SAMPLES = {1, 2}
DEMO_ATTEMPTS = 3

_ROW = re.compile(r"^\| `(\w+)` \| (\d) \| (\d) \| `(\w+)` \|", re.MULTILINE)

Key = tuple[str, int, int]


def key_of(name: str) -> Key:
    problem, attempt, sample = name.split("/")
    return problem, int(attempt.removeprefix("attempt_")), int(sample.removeprefix("sample_"))


def section(backend: str) -> str:
    """The part of the README that is about one backend."""
    parts = (REPLIES / "README.md").read_text(encoding="utf-8").split("\n## ")
    return next(part for part in parts if part.startswith(f"`{backend}`"))


def labels() -> dict[Key, str]:
    """What each C++ reply is made to do, from the README's table."""
    return {(m[1], int(m[2]), int(m[3])): m[4] for m in _ROW.finditer(section("cpp"))}


def cpp_responses() -> dict[Key, str]:
    return {key_of(name): reply.text for name, reply in RECORDED["cpp"].items()}


def code_of(key: Key) -> tuple[ExtractionRule, str | None]:
    """What the harness extracts from a C++ reply; a diff applies to the first sample of the attempt before."""
    problem, attempt, _ = key
    parent = code_of((problem, attempt - 1, 1))[1] if attempt > 1 else None
    found = extract(cpp_responses()[key], parent)
    return found.rule, found.source


def defines_model_new(source: str) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in ast.parse(source).body)


@pytest.mark.parametrize("backend", BACKENDS)
def test_replies_belong_to_a_problem_and_to_nobody_who_is_billed(backend: BackendName) -> None:
    assert RECORDED[backend]
    for name, reply in RECORDED[backend].items():
        assert key_of(name)[0] in PROBLEMS
        assert reply == Reply(text=reply.text, model="hand-written example", finish_reason=reply.finish_reason), name


def test_attempts_and_samples_are_numbered_without_gaps() -> None:
    samples: dict[tuple[str, str], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for backend, replies in RECORDED.items():
        for problem, attempt, sample in map(key_of, replies):
            samples[backend, problem][attempt].add(sample)
    for where, attempts in samples.items():
        assert sorted(attempts) == list(range(1, len(attempts) + 1)), where
        for found in attempts.values():
            assert sorted(found) == list(range(1, len(found) + 1)), where


def test_the_demo_has_both_samples_of_each_attempt() -> None:
    attempts: dict[tuple[str, int], set[int]] = defaultdict(set)
    for problem, attempt, sample in cpp_responses():
        attempts[problem, attempt].add(sample)
    assert {int(problem.split("_")[0]) for problem, _ in attempts} == set(range(1, 9))
    assert all(samples == DEMO_SAMPLES for samples in attempts.values())


def test_the_readme_labels_every_cpp_reply_and_no_other() -> None:
    assert labels().keys() == cpp_responses().keys()
    known = {kind.value for kind in FailureKind} | {Status.FAST.value}
    assert set(labels().values()) <= known


def test_attempts_after_the_first_fast_one_are_spares_that_hand_it_in_again() -> None:
    by_problem: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for (problem, attempt, _), label in labels().items():
        by_problem[problem][attempt].add(label)
    solved = 0
    for problem, attempts in by_problem.items():
        assert max(attempts) == DEMO_ATTEMPTS, problem
        winning = [attempt for attempt, found in sorted(attempts.items()) if "fast" in found]
        if not winning:
            continue
        solved += 1
        winner = next(
            code_of(key)[1] for key, label in labels().items() if label == "fast" and key[:2] == (problem, winning[0])
        )
        for attempt in range(winning[0] + 1, DEMO_ATTEMPTS + 1):
            assert attempts[attempt] == {"fast"}, problem
            assert {code_of((problem, attempt, sample))[1] for sample in DEMO_SAMPLES} == {winner}
    assert solved >= 5


@pytest.mark.parametrize("key", sorted(cpp_responses()), ids=lambda key: "-".join(map(str, key)))
def test_the_code_in_a_reply_fits_its_label(key: Key) -> None:
    label = labels()[key]
    rule, source = code_of(key)
    assert (source is None) == (label == "no_code")
    if label == "syntax_error":
        with pytest.raises(SyntaxError):
            ast.parse(str(source))
    elif source is not None:
        assert defines_model_new(source) == (label != "no_model_new")
        assert rule is not ExtractionRule.NONE


def test_the_replies_use_every_rule_of_extraction() -> None:
    assert {code_of(key)[0] for key in cpp_responses()} == set(ExtractionRule) - {
        ExtractionRule.PROPOSED,
        ExtractionRule.BOUND,
    }


@pytest.mark.parametrize(("name", "code"), [("fast", 0), ("slow", 1), ("wrong", 2)])
def test_a_candidate_says_what_eval_exits_with(name: str, code: int) -> None:
    source = (CANDIDATES / f"{name}.py").read_text(encoding="utf-8")
    assert f"`eval.py` exits with {code}." in (ast.get_docstring(ast.parse(source)) or "")
    assert defines_model_new(source)


_KITTENS_ROW = re.compile(r"^\| `(\w+)` \| (\d) \| `(\w+)` \|", re.MULTILINE)


@pytest.mark.parametrize(("file", "problems"), [("hipkittens.toml", 8), ("hipkittens_cdna4.toml", 8)])
def test_each_hipkittens_reply_has_its_label_and_the_last_of_a_problem_is_right(file: str, problems: int) -> None:
    page = (REPLIES / "README.md").read_text(encoding="utf-8")
    part = page.partition(f"## `{file}`")[2].partition("\n## ")[0]
    made = {(row[1], int(row[2]), 1): row[3] for row in _KITTENS_ROW.finditer(part)}
    recorded = {key_of(name): reply for name, reply in replies_in_file(REPLIES / file, "hipkittens").items()}
    assert set(made) == set(recorded)
    for (problem, attempt, _), label in made.items():
        last = (problem, attempt + 1, 1) not in made
        assert (Status(label) is Status.EMULATED) if last else label in set(FailureKind)
    assert len({problem for problem, _, _ in made}) == problems and {problem for problem, _, _ in made} <= PROBLEMS
    for reply in recorded.values():
        assert (reply.model, reply.usage) == ("hand-written example", Usage())
        found = extract(reply.text, None)
        assert found.source is not None and "hipkittens_build" in found.source
        ast.parse(found.source)
