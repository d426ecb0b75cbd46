"""What `hkbench classify` prints of a problem."""

from __future__ import annotations

from typing import Literal

from hkbench.categories import Classification
from hkbench.cli.classify import NOTES, Row, attributes, markdown, text
from hkbench.records import Convolution, GraphFacts, OperatorClass, Product, SizeSet

GRAPH = GraphFacts(
    operators={"convolution": 1}, classes={OperatorClass.CONV: 1}, steps=1, kernel_size=5,
    convolutions=(
        Convolution(
            kernel=(3, 5), strides=(2, 1), padding=(0, 0), dilation=(1, 1), groups=4, transposed=True, in_channels=8,
            out_channels=12, calls=1,
        ),
    ),
    products=(Product(batch=3, m=6, n=5, k=4, calls=1),), pools=((2, 2),), reductions=(300, 50, 2),
    product_flops=10, other_flops=0, bytes=10, intensity=1.0,
)  # fmt: skip


def row(
    name: str, category: str, by: Literal["graph", "name", "generic"], doubtful: str | None, error: str | None
) -> Row:
    found = Classification(category=category, by=by, why="a | b", doubtful=doubtful)
    graph = GRAPH if by == "graph" else None
    return Row(problem=name, level=1, sizes=SizeSet.CPU, classification=found, graph=graph, error=error)


ROWS = [
    row("1_Conv", "memory-intensive", "graph", None, None),
    row("2_Slow", "generic", "generic", "no trace", "no answer within 1 s"),
]


def test_sizes() -> None:
    assert attributes(GRAPH) == (
        "kernel 3x5 stride 2x1 groups 4 transposed, 8 to 12 channels; 3 x M=6 N=5 K=4; window 2x2; "
        "reduces 300, 50 elements"
    )


def test_doubts_stand_below_their_problem() -> None:
    assert text(ROWS) == [
        "problem  category           by       operators; arithmetic intensity; sizes",
        f"1_Conv   memory-intensive   graph    a | b; {attributes(GRAPH)}",
        "2_Slow   generic            generic  a | b",
        "         doubtful: no trace",
        "         doubtful: no answer within 1 s",
        "",
        "2 problems at cpu sizes: 1 memory-intensive, 1 generic; 1 doubtful",
        *NOTES,
    ]


def test_a_table_of_markdown() -> None:
    lines = markdown(ROWS).splitlines()
    assert lines[3] == "| 2_Slow | generic | generic | a \\| b | no trace; no answer within 1 s |"
    assert lines[-1] == "2 problems at cpu sizes: 1 memory-intensive, 1 generic; 1 doubtful"
