"""Which form a problem's matrix product has, as far as its shapes tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from hkbench.prompts.figures import tensors
from hkbench.records import ProblemFacts

#: Of the operands' last two dimensions, for an output [M, N]: NN is [M, K] by [K, N], NT [M, K] by [N, K], TN [K, M] by
#: [K, N], TT [K, M] by [N, K].
Form = Literal["NN", "NT", "TN", "TT"]
_TRANSPOSES = re.compile(r"\.m?T\b|\.t\(\)|transpose|permute|[Ll]inear\(")


def product_form(facts: ProblemFacts) -> Form | None:
    """Return the one form that an output and two matrices among inputs and parameters allow, taken in their order.

    None where there is no such pair, or several forms fit, as for square matrices.
    """
    matrices = [fact.shape[-2:] for fact in (*tensors(facts.inputs), *facts.parameters) if len(fact.shape) > 1]
    outputs = [fact.shape[-2:] for fact in tensors(facts.outputs) if len(fact.shape) > 1]
    as_given = list(combinations(matrices, 2))
    for pairs in (as_given, [(b, a) for a, b in as_given]):
        forms = {form for rows, columns in outputs for a, b in pairs for form in _forms(rows, columns, a, b)}
        if forms:
            return forms.pop() if len(forms) == 1 else None
    return None


def _forms(rows: int, columns: int, a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[Form]:
    if a[0] == rows and b == (a[1], columns):
        yield "NN"
    if a[0] == rows and b == (columns, a[1]):
        yield "NT"
    if a[1] == rows and b == (a[0], columns):
        yield "TN"
    if a[1] == rows and b == (columns, a[0]):
        yield "TT"


def reads_rows_of_b(facts: ProblemFacts, source: str) -> bool:
    """Return whether an example with B stored [K, N] is the nearer one.

    It is where the shapes say so, and where they leave the form open and the source transposes nothing.
    """
    form = product_form(facts)
    return form == "NN" or (form is None and _TRANSPOSES.search(source) is None)
