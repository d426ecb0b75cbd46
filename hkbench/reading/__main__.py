"""Print docs/rules.md, which scripts/docs.py writes."""

from __future__ import annotations

import sys

from hkbench.reading.rules import table

HEAD = """# Static rules

A candidate is read before it runs: its Python by the syntax tree, with names followed through
imports, aliases and constants; the C++ in its strings preprocessed, with all branches of
conditionals, and parsed. What is found is advice beside the verdict. Only `hard` refuses a
candidate: no honest use of it exists. What the evaluator measures decides everything else.

This page is written by `scripts/docs.py`.

"""


def page() -> str:
    """Return the text of docs/rules.md."""
    return HEAD + table()


if __name__ == "__main__":
    sys.stdout.write(page())
