"""The simulated cluster: all candidates get one verdict, also when processes and nodes die."""

from __future__ import annotations

import asyncio

from benchmarks.cluster import parser, simulate

QUICK = [
    "--nodes",
    "2",
    "--cards",
    "2",
    "--builds",
    "2",
    "--seconds",
    "0.02",
    "--build-seconds",
    "0.02",
    "--ping",
    "0.1",
]


def test_each_candidate_gets_one_verdict_whatever_is_killed() -> None:
    figures = asyncio.run(simulate(parser().parse_args([*QUICK, "--candidates", "120", "--kills", "4"])))
    assert (figures.cards, figures.lost, figures.doubled) == (4, 0, 0)
    assert figures.kills > 0 and 0.0 < figures.busy <= 1.0
