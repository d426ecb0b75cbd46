#!/usr/bin/env python3
"""Write the replies of runs into one file, which --replay serves again and people can read.

    .venv/bin/python scripts/record_replies.py replies.toml results/2026-11-25_kernels
    .venv/bin/python scripts/record_replies.py replies.toml results/hip results/cuda    # one backend a run
    .venv/bin/python run_batch.py 1 8 --replay replies.toml

The file holds each reply's text, model, finish reason, tokens and times. It holds no prompt, and no verdict.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.errors import HkbenchError, UsageError  # noqa: E402
from hkbench.llm.replies import read_reply, replies_file, replies_in_file, replies_in_folder  # noqa: E402
from hkbench.records import BackendName, Reply  # noqa: E402
from hkbench.store.files import write_atomic  # noqa: E402
from hkbench.store.layout import RunPaths  # noqa: E402
from hkbench.store.reader import read_run_file  # noqa: E402


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to write, as replies.toml")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run folder")
    options = parser.parse_args()
    try:
        record(options.file, options.runs)
    except HkbenchError as error:
        print(f"record_replies: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def record(file: Path, runs: list[Path]) -> None:
    """Write the replies of the runs, and check that the file gives them back. Raises HkbenchError."""
    collections: dict[BackendName, dict[str, Reply]] = {}
    for run in runs:
        backend = read_run_file(RunPaths(run)).config.backend
        if backend in collections:
            raise UsageError(f"{run} is a second run of backend {backend}: give one run of each backend")
        collections[backend] = {
            name: read_reply(path).model_copy(update={"replayed": False})
            for name, path in replies_in_folder(run).items()
        }
    write_atomic(file, replies_file(collections))
    for backend, replies in collections.items():
        assert replies_in_file(file, backend) == replies, f"{file} does not give back the replies of {backend}"


if __name__ == "__main__":
    sys.exit(main())
