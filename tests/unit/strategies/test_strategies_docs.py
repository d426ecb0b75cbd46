"""docs/strategies.md: its example runs, and its counts are true."""

from __future__ import annotations

import re
from typing import Any

from support.doors import ROOT
from support.noted_lab import NAME, NotedLab
from support.run_folder import correct

from hkbench.lab import Plan
from hkbench.strategies import STRATEGIES

DOCS = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")


async def test_the_fourth_strategy_of_the_docs() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(source, "docs/strategies.md", "exec"), names)
    lab = NotedLab([(correct(NAME, 0.5),), (correct(NAME, 2.0),), (correct(NAME, 2.0),)])
    await names["redraw"](lab, Plan(samples=1, attempts=3, exhaust=False))
    assert lab.prompts == [(1, None), (2, None)]


def test_every_strategy_is_there_with_its_lines() -> None:
    counted = {m[1]: int(m[2]) for m in re.finditer(r"^\| `(\w+)`.*\| (\d+) \|$", DOCS, re.MULTILINE)}
    files = {name: ROOT / "hkbench" / "strategies" / f"{name}.py" for name in STRATEGIES}
    assert counted == {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in files.items()}
