"""What a node says of itself, and how differences are named."""

from __future__ import annotations

import platform

import pytest

from hkbench.cluster.node import NodesDiffer, check_same, describe_node, other_differences, package_hash
from hkbench.records import DeviceKind, NodeFacts


def node(name: str, torch: str = "2", driver: str = "6") -> NodeFacts:
    return NodeFacts(
        name=name, host=name, kind=DeviceKind.ROCM, cards=8, cores=64, decisive={"torch": torch, "hkbench": "1"},
        tools={"driver": driver},
    )  # fmt: skip


def test_this_machine() -> None:
    facts = describe_node("here", 0, 4)
    assert (facts.name, facts.host, facts.kind, facts.cores) == ("here", platform.node(), DeviceKind.CPU, 4)
    assert package_hash() in facts.decisive["hkbench"] and facts.decisive["torch"] != "none"
    assert "system" in facts.tools
    assert NodeFacts.model_validate_json(facts.model_dump_json()) == facts


def test_alike() -> None:
    check_same([node("a"), node("b")])
    assert other_differences([node("a"), node("b")]) == []


def test_what_decides_has_to_be_the_same() -> None:
    with pytest.raises(NodesDiffer) as raised:
        check_same([node("a"), node("b"), node("c", torch="3")])
    assert "torch is 2 on a, b, but 3 on c" in str(raised.value)


def test_other_differences_are_named() -> None:
    check_same([node("a"), node("b", driver="7")])
    assert other_differences([node("a"), node("b", driver="7")]) == ["driver is 6 on a, but 7 on b"]
