#!/usr/bin/env python3
"""Judge published model-written kernels, and compare what was claimed of them with what is found.

    prepare   from checkouts of KernelBench and of a published set, a folder for run_batch.py: problems, replies and
              claims of all levels; entries that were published without code are counted, and no part of the run
    table     from that folder and the run's, as markdown: claimed and judged

CUDA-L1's kernels (250, `optimized_cuda_code/h100.json`) were made for KernelBench's branch v0, AdaExplore's (150,
`results/saved_kernels`) for its branch main. Nothing of the checkouts is part of this project.

    python scripts/published_kernels.py prepare cuda-l1 CUDA-L1 --kernelbench KernelBench-v0 --out published/cuda-l1
    python scripts/published_kernels.py table published/cuda-l1=RUN,RUN-COMPILE --into docs/published_kernels.md
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.errors import HkbenchError, UsageError  # noqa: E402
from hkbench.shipped import batch_command  # noqa: E402
from hkbench.store.files import write_atomic  # noqa: E402
from scripts.published_sets import (  # noqa: E402
    SETS,
    PublishedSet,
    Task,
    prepare,
    problems_folder,
    read_claims,
    replies_path,
)
from scripts.published_table import judged_of, report  # noqa: E402

BEGIN, END = "<!-- scripts/published_kernels.py -->", "<!-- end of the table -->"


def main() -> int:
    """Do what was asked; an error of the user's or of a checkout's ends with its exit code."""
    options = _parser().parse_args()
    try:
        return int(options.work(options))
    except HkbenchError as error:
        print(f"published_kernels: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare", help="write the folder of a set")
    one.add_argument("set", choices=list(SETS))
    one.add_argument("place", type=Path, metavar="SET", help="its checkout, or the file or folder of its kernels")
    one.add_argument("--kernelbench", type=Path, required=True, metavar="DIR", help="a checkout of KernelBench")
    one.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder, outside of this project")
    one.set_defaults(work=_prepare)
    other = commands.add_parser("table", help="compare what was claimed with what was judged")
    runs = "a prepared folder, its run's, and that of a run with --baseline eager,compile"
    other.add_argument("runs", nargs="+", metavar="DIR=RUN[,RUN]", help=runs)
    other.add_argument("--into", type=Path, metavar="FILE", help=f"replace what stands between {BEGIN} and its end")
    other.add_argument("--largest", type=int, default=12, metavar="N", help="disagreements by name (default: 12)")
    other.set_defaults(work=_table)
    return parser


def _prepare(options: argparse.Namespace) -> int:
    published = SETS[options.set]
    tasks = prepare(published, options.place, options.kernelbench, options.out)
    for line in _counted(published, tasks):
        print(line)
    fixed = [
        "--track",
        "any",
        "--attempts",
        "1",
        "--samples",
        "1",
        "--no-profile",
        "--results",
        f"RUN-{published.name}",
    ]
    problems, replies = (str(path(options.out)) for path in (problems_folder, replies_path))
    command = [*batch_command().split(), "--problems", problems, "--backend", published.backend, "--replay", replies]
    print(f"to judge them: {shlex.join([*command, *fixed])}")
    return 0


def _counted(published: PublishedSet, tasks: list[Task]) -> list[str]:
    without = [f"{task.level}/{task.number}" for task in tasks if not task.has_code]
    claimed = sum(task.claim.correct for task in tasks)
    lines = [f"{published.title}: {len(tasks)} entries, {claimed} of them claimed to be correct"]
    if without:
        lines.append(f"without code, and so not judged: {len(without)} (level/problem {', '.join(without)})")
    return lines


def _table(options: argparse.Namespace) -> int:
    sets = []
    for given in options.runs:
        folder, found, runs = given.partition("=")
        if not found:
            raise UsageError(f"{given}: name a prepared folder and its run's as DIR=RUN")
        run, _, compiled = runs.partition(",")
        published, tasks = read_claims(Path(folder))
        sets.append(judged_of(published, tasks, Path(run), Path(compiled) if compiled else None))
    text = report(sets, options.largest)
    if options.into is None:
        print(text)
    else:
        _replace(options.into, text)
    return 0


def _replace(path: Path, text: str) -> None:
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"{path} has no place for the table: put {BEGIN} and {END} there, a line each")
    write_atomic(path, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
