"""What goes with --cluster, and what is said where ray is missing."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import pytest

from hkbench.cli import batch
from hkbench.cli.cluster import check_cluster
from hkbench.cli.parser import Parser
from hkbench.cluster import ray_site
from hkbench.cluster.address import ClusterUnavailable
from hkbench.errors import UsageError


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser()
    batch.add_arguments(parser)
    return parser.parse_args(["1", *words])


@pytest.mark.parametrize(
    "words",
    [
        ("--mixed-cards",),
        ("--check-cards",),
        ("--cluster", "auto", "--build-only"),
        ("--cluster", "auto", "--device-index", "0"),
    ],
)
def test_what_contradicts(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        check_cluster(parsed(*words))


@pytest.mark.parametrize(
    "words", [(), ("--cluster", "head:6379", "--mixed-cards", "--check-cards", "--device", "rocm")]
)
def test_what_goes_together(words: tuple[str, ...]) -> None:
    check_cluster(parsed(*words))


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {"find_cluster": lambda *_: None, "demand_token": lambda *_: None}
    for name, answer in answers.items():
        monkeypatch.setattr(ray_site, name, answer)
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterUnavailable, match=r"hkbench\[cluster\]"):
        ray_site.open_site("auto")
