"""docs/strategies.md: its example runs."""

from __future__ import annotations

import re
from typing import Any, cast

from support.doors import ROOT
from support.noted_lab import NAME, NotedLab
from support.run_folder import correct

from hkbench.lab import Lab
from hkbench.strategies import Options, Strategy

DOCS = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")


async def test_the_fourth_strategy_of_the_docs() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(source, "docs/strategies.md", "exec"), names)
    lab = NotedLab([(correct(NAME, 0.5),), (correct(NAME, 2.0),), (correct(NAME, 2.0),)])
    redraw: Strategy[Options] = names["Redraw"]()
    await redraw.run(cast(Lab, lab), redraw.Options(samples=1, attempts=3))
    assert lab.prompts == [(1, None), (2, None)]
