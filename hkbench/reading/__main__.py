"""Writes docs/rules.md: `python -m hkbench.reading > docs/rules.md`."""

from __future__ import annotations

import sys

from hkbench.reading.rules import table

HEAD = """# Static rules

A candidate is read before it runs: its Python by the syntax tree, with names followed through imports, aliases and
constants; the C++ in its strings preprocessed, with all branches of conditionals, and parsed. What is found is advice
beside the verdict. Only `hard` refuses a candidate: no honest use of it exists. What the judge measures decides
everything else.

This page is written by `python -m hkbench.reading > docs/rules.md`.

"""


def page() -> str:
    """The text of docs/rules.md."""
    return HEAD + table()


if __name__ == "__main__":
    sys.stdout.write(page())
