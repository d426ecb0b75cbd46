"""hkbench compare: two runs side by side."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hkbench.errors import UsageError
from hkbench.report.build import detail
from hkbench.report.compare import Comparison, compare, left_out_of, obstacles
from hkbench.report.compare_text import comparison_lines, conclusion
from hkbench.report.model import Report
from hkbench.store.layout import RunPaths
from hkbench.store.plain import strip_escapes
from hkbench.store.reader import read_run

WORSE = 1

DESCRIPTION = """Compare two runs over the problems that both finished: is B better than A, or is the difference chance?

Each problem counts by its best correct sample. Intervals are 95 %, by a bootstrap over problems; fewer than six
problems that differ settle nothing. Runs on other devices or at other sizes are refused. Exit code 0, whatever is
found, unless --fail-if-worse is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="a run folder")
    parser.add_argument("b", type=Path, metavar="B", help="the run folder to compare with it")
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit 1 when B solves fewer problems than A, or has slower kernels, by more than its interval",
    )
    parser.add_argument("--force", action="store_true", help="compare runs on other devices or at other sizes too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; 1 with --fail-if-worse where B is worse, else 0.

    Raises:
        UsageError: the runs are of other devices or sizes, or have no judged problem in common.
    """
    a, b = (detail(read_run(RunPaths(folder))) for folder in (options.a, options.b))
    _check_comparable(a, b, options.force)
    found = compare(a, b)
    if found is None:
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in left_out_of(a, b).items())
        raise UsageError(f"no problem was judged in both runs:\n{reasons}")
    if options.json:
        print(json.dumps(_as_json(found, options.a, options.b), indent=2))
    else:
        for line in comparison_lines(found, _name(options.a, a), _name(options.b, b)):
            print(strip_escapes(line).rstrip())
    return WORSE if options.fail_if_worse and found.worse else 0


def _check_comparable(a: Report, b: Report, force: bool) -> None:
    found = obstacles(a, b)
    if found and not force:
        reasons = "; ".join(f"{one.setting}: {one.a} in A, {one.b} in B" for one in found)
        raise UsageError(
            f"the runs were not measured alike ({reasons}): a speed-up is against the same device's own baseline, "
            "and says nothing of another's; --force compares them all the same"
        )


def _as_json(found: Comparison, a: Path, b: Path) -> dict[str, object]:
    parts = {"whole": found.whole, "without_weak": found.without_weak}
    return {
        "a": str(a),
        "b": str(b),
        **found.model_dump(mode="json"),
        "worse": found.worse,
        "conclusions": {name: conclusion(part) for name, part in parts.items() if part is not None},
    }


def _name(folder: Path, report: Report) -> str:
    config = report.config
    return f"{folder} ({config.model}; {config.backend} on {config.device}, {config.sizes} sizes)"
