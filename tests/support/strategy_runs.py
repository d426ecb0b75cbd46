"""Run folders of the strategies judge and staged."""

from __future__ import annotations

import json
from pathlib import Path

from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config

from hkbench.records import Price, Rates, Usage

NAME = "1_ReLU"
SAID = {"critical_issue": "the \x1b[31mmask", "why_it_matters": "it is off by one", "minimal_fix_hint": "use <"}


def price(rate: float) -> Price:
    rates = Rates(input=rate, output=rate, cached_input=None)
    return Price(currency="USD", rates=rates, entry="m", source="a list")


def judged_run(root: Path) -> RunFolder:
    """Return a wrong seed, an unusable and a usable answer of the judge, a fast kernel."""
    run = RunFolder(root, run_config((NAME,), samples=1, strategy="judge"))
    facts = FACTS.model_copy(update={"price": price(1000.0), "judge_price": price(2000.0)})
    run.paths.run.write_text(
        json.dumps({"config": run.config.model_dump(mode="json"), "facts": facts.model_dump(mode="json")})
    )
    run.start()
    run.begin(NAME)
    run.prompted(NAME, "cpp/default.j2")
    seed = run.sample(NAME, 1, 1, incorrect(NAME), Usage(input=100, output=50))
    run.chosen(seed)
    run.advised(seed, None, usage=Usage(input=10, output=1))
    key = run.advised(seed, SAID, call=2, usage=Usage(input=30, output=9), metrics=("relu_kernel: time share 99 %",))
    run.no_advice(key)
    run.prompted(NAME, "cpp/default.j2", 2, parent=seed)
    run.sample(NAME, 2, 1, correct(NAME, 2.0), Usage(input=200, output=60))
    run.decided(NAME, 2, "advice", "none", "a \x1b[1mreason")
    run.end(NAME, solved=True)
    run.close()
    return run


def staged_run(root: Path) -> RunFolder:
    """Of a category two problems, one with two stages and a skip, one that ends after a stage; one of another."""
    names = ("1_Conv", "2_Conv", "3_Sum")
    run = RunFolder(root, run_config(names, samples=1, attempts=8, strategy="staged"))
    known = Usage(input=100, output=100)
    run.start()
    run.begin(names[0])
    run.decided(names[0], 1, "category", "conv", "by the graph")
    run.prompted(names[0], "t")
    seed = run.sample(names[0], 1, 1, correct(names[0], 0.5), known)
    run.decided(names[0], 2, "stage", "tiles")
    run.prompted(names[0], "t", 2, parent=seed, metrics=("conv: occupancy 40 %",))
    run.sample(names[0], 2, 1, incorrect(names[0]), known)
    run.prompted(names[0], "t", 3, parent=seed)
    better = run.sample(names[0], 3, 1, correct(names[0], 1.0), known)
    run.decided(names[0], 4, "stage", "feeding")
    run.prompted(names[0], "t", 4, parent=better)
    run.sample(names[0], 4, 1, correct(names[0], 0.8), known)
    run.decided(names[0], 4, "skip", "balance", "nothing is left")
    run.end(names[0], solved=True)
    run.begin(names[1])
    run.decided(names[1], 1, "category", "conv", "by the graph")
    run.sample(names[1], 1, 1, correct(names[1], 0.1), known)
    run.decided(names[1], 2, "stage", "tiles")
    run.sample(names[1], 2, 1, correct(names[1], 0.2), known)
    run.decided(names[1], 2, "left", "feeding", "it trails")
    run.decided(names[1], 2, "left", "balance", "it trails")
    run.decided(names[1], 2, "exit", "before feeding", "it trails")
    run.end(names[1])
    run.begin(names[2])
    run.decided(names[2], 1, "category", "sums", "by the name")
    run.sample(names[2], 1, 1, correct(names[2], 3.0), known)
    run.decided(names[2], 1, "left", "access", "at the roof")
    run.decided(names[2], 1, "exit", "before access", "at the roof")
    run.end(names[2], solved=True)
    run.close()
    return run
