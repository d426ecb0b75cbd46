"""Each static rule flags what it must and leaves honest code alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reading_cases import CASES, HEAD

from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.reading import RULES, read_candidate
from hkbench.reading.__main__ import page
from hkbench.records import Severity, Track

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = {"py-library-op", "py-library-module", "cpp-library", "py-no-kernel"}


def rules_of(source: str, track: Track = Track.OWN) -> set[str]:
    return {found.rule for found in read_candidate(source, "cuda", track)}


def test_every_rule_has_cases() -> None:
    assert set(CASES) == set(RULES)
    assert all(flagged and honest for flagged, honest in CASES.values())


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, source) for rule, (flagged, _) in CASES.items() for source in flagged]
)
def test_flags(rule: str, source: str) -> None:
    found = [f for f in read_candidate(source, "cuda", Track.OWN) if f.rule == rule]
    assert found, f"{sorted(rules_of(source))}\n{source.removeprefix(HEAD)}"
    assert found[0].severity is RULES[rule].severity
    assert found[0].why == RULES[rule].why


@pytest.mark.parametrize(
    ("rule", "source"), [(rule, source) for rule, (_, honest) in CASES.items() for source in honest]
)
def test_leaves_honest_code_alone(rule: str, source: str) -> None:
    found = [f for f in read_candidate(source, "cuda", Track.OWN) if f.rule in {rule, "unreadable"}]
    assert not found, f"{found}\n{source}"


def test_library_work_is_advice_where_libraries_are_allowed() -> None:
    flagged = CASES["py-library-op"][0][0]
    own = {f.rule: f.severity for f in read_candidate(flagged, "cpp", Track.OWN)}
    free = {f.rule: f.severity for f in read_candidate(flagged, "cpp", Track.ANY)}
    assert own["py-library-op"] is Severity.WARNING
    assert free["py-library-op"] is Severity.ADVICE


def test_text_that_is_executed_is_read_too() -> None:
    source = CASES["py-exec-decoded"][0][0]
    found = {f.rule: f.line for f in read_candidate(source, "cpp", Track.OWN)}
    assert found["py-thread-unjoined"] == found["py-exec-decoded"] == len(source.splitlines())


def test_lines_are_those_of_the_file() -> None:
    source = 'import torch\nS = r"""\n#include <x>\n\nvoid f() { system("x"); }\n"""\n'
    (found,) = [f for f in read_candidate(source, "cpp", Track.OWN) if f.rule == "cpp-process"]
    assert found.line == 5
    assert "system" in found.text


def honest_sources() -> list[tuple[str, str]]:
    """Example replies that are meant to be correct, the example candidates, the honest corpus."""
    found = []
    folder = ROOT / "examples" / "replies"
    labels = (folder / "README.md").read_text("utf-8")
    replies = [
        (backend, name, reply)
        for backend in ("cpp", "cuda", "hip")
        for name, reply in replies_in_file(folder / "reflect.toml", backend).items()
    ]
    for backend, name, reply in replies:
        problem, attempt, sample = name.split("/")
        row = rf"\| `{problem}` \| {attempt[8:]} \| {sample[7:]} \| `(?:fast|slow)` \|"
        source = extract(reply.text, None).source
        if source is not None and (backend != "cpp" or re.search(row, labels)):
            found.append((f"{backend}/{problem}/{attempt}/{sample}", source))
    for name in ("fast.py", "slow.py"):
        found.append((name, (ROOT / "examples" / "candidates" / name).read_text("utf-8")))
    found += [(path.name, path.read_text("utf-8")) for path in sorted((ROOT / "tests" / "honest").glob("*.py"))]
    kittens = sorted((ROOT / "examples" / "hipkittens").glob("*/*.py"))
    found += [(f"hipkittens/{path.parent.name}/{path.name}", path.read_text("utf-8")) for path in kittens]
    return found


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in honest_sources()])
def test_honest_candidates_are_not_warned_about(source: str) -> None:
    serious = [f for f in read_candidate(source, "cpp", Track.OWN) if f.severity is not Severity.ADVICE]
    assert [f for f in serious if f.rule not in LIBRARY] == []


def test_prompts_examples_are_not_warned_about() -> None:
    blocks = [
        block
        for path in sorted((ROOT / "prompts").glob("*.txt"))
        for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
        if "class ModelNew" in block and "{%" not in block
    ]
    assert len(blocks) > 5
    for block in blocks:
        serious = [f for f in read_candidate(block, "cpp", Track.OWN) if f.severity is not Severity.ADVICE]
        assert [f for f in serious if f.rule not in LIBRARY] == [], block


def test_the_page_of_rules_is_up_to_date() -> None:
    assert (ROOT / "docs" / "rules.md").read_text("utf-8") == page(), "run: python -m hkbench.reading > docs/rules.md"
