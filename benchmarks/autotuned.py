#!/usr/bin/env python3
"""Write the kernel of a Triton spec with Triton's own autotuner around it, as a candidate that eval.py judges.

    python benchmarks/autotuned.py matmul_triton --configs 50 --out DIR
    python eval.py --problem DIR/problem.py --code DIR/candidate.py --backend triton

It chooses among as many configurations, drawn from the block sizes, warps and stages of search_measured.py; what else
the search edits (cache policies, exponentials) the autotuner does not know.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.search_measured import CHOICES, NarrowSpace, spec_of
from hkbench.cli.arguments import positive
from hkbench.specs import KernelSpec, candidate, problem
from hkbench.store.files import write_atomic

OF_LAUNCH = ("num_warps", "num_stages")


def configurations(space: NarrowSpace, number: int, seed: int = 0) -> list[dict[str, int]]:
    """Draw configurations of the numbers that a launch takes, without repetition."""
    choices = zip(space.labels, space.choices, strict=True)
    numbers = {label: found for label, found in choices if all(text.isdigit() for text in found)}
    every = [dict(zip(numbers, map(int, chosen), strict=True)) for chosen in itertools.product(*numbers.values())]
    return random.Random(seed).sample(every, min(number, len(every)))


def tuned(spec: KernelSpec, configs: list[dict[str, int]]) -> str:
    """Return the candidate whose launch is left to `triton.autotune`."""
    source = candidate(spec)
    names = set(configs[0])
    listed = ",\n".join(f"    {_config(config)}" for config in configs)
    source = source.replace("@triton.jit", f"@triton.autotune(configs=[\n{listed},\n], key=[])\n@triton.jit", 1)
    [call] = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    ]
    before = ast.get_source_segment(source, call)
    assert before is not None and isinstance(call.func, ast.Subscript)
    grid = re.sub(r"\b[A-Z_]{2,}\b", lambda found: f'META["{found[0]}"]', ast.unparse(call.func.slice))
    given = [ast.unparse(value) for value in call.args]
    given += [f"{word.arg}={ast.unparse(word.value)}" for word in call.keywords if word.arg not in names]
    return source.replace(before, f"{ast.unparse(call.func.value)}[lambda META: {grid}]({', '.join(given)})")


def _config(values: Mapping[str, int]) -> str:
    blocks = {name: value for name, value in values.items() if name not in OF_LAUNCH}
    launch = "".join(f", {name}={values[name]}" for name in OF_LAUNCH if name in values)
    return f"triton.Config({blocks}{launch})"


def main() -> None:
    """Write the problem and the candidate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=CHOICES)
    parser.add_argument("--configs", type=positive, default=50, metavar="N")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    spec = spec_of(options.name)
    space = NarrowSpace(spec, CHOICES[options.name])
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomic(options.out / "problem.py", problem(spec))
    write_atomic(options.out / "candidate.py", tuned(spec, configurations(space, options.configs)))


if __name__ == "__main__":
    main()
