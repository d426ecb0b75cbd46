from __future__ import annotations

import json
import re

from hkbench.problems.weak import WEAK, weak_controls, weak_text


def test_every_entry_is_a_hash_and_a_list_of_controls() -> None:
    table = json.loads(WEAK.read_text())
    assert all(re.fullmatch(r"[0-9a-f]{64}", sha256) for sha256 in table)
    assert all(isinstance(name, str) for controls in table.values() for name in controls)


def test_an_unknown_problem_was_not_audited() -> None:
    assert weak_controls("0" * 64) is None


def test_new_findings_are_added_to_the_old_ones() -> None:
    table = json.loads(weak_text({"f" * 64: ("zeros",)}))
    assert table.pop("f" * 64) == ["zeros"]
    assert table == json.loads(WEAK.read_text())
