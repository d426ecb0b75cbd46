"""How a Triton kernel is bound: by a signature, by annotations and defaults. Triton itself is not needed for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hkbench.runner.ahead import CONSTEXPR, Missing, bound


class constexpr:  # noqa: N801 - as Triton calls it
    pass


def plain(x, out, n, BLOCK: constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    pass


def annotated(x: "*fp32", out: "*bf16", n: int, scale: "float32", BLOCK: constexpr = 128):  # type: ignore[no-untyped-def,valid-type,name-defined,assignment]  # noqa: N803,F722,F821,UP037
    pass


def kernel(function: Any) -> Any:
    return SimpleNamespace(fn=function)


def test_a_signature_gives_types_constants_and_alignment() -> None:
    found = bound(kernel(plain), ("*fp32:16", "*fp32", "i32", "1024"))
    assert found.types == {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": CONSTEXPR}
    assert (found.constants, found.divisible) == ({"BLOCK": 1024}, ("x",))


def test_a_number_makes_any_argument_a_constant() -> None:
    found = bound(kernel(plain), ("*fp32", "*fp32", "1", "true"))
    assert found.constants == {"n": 1, "BLOCK": True}
    assert found.types["n"] == CONSTEXPR


def test_annotations_and_defaults_say_the_same() -> None:
    found = bound(kernel(annotated), None)
    assert list(found.types.values()) == ["*fp32", "*bf16", "i32", "fp32", CONSTEXPR]
    assert found.constants == {"BLOCK": 128}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (None, "x, out, n, BLOCK"),
        (("*fp32", "*fp32"), "4 arguments"),
        (("*fp32", "*fp32", "i32", "i32"), "BLOCK"),
        (("*fp32", "*fp31", "i32", "64"), "fp31"),
        (("*fp32:8", "*fp32", "i32", "64"), "fp32:8"),
    ],
)
def test_what_is_missing_is_named(words: tuple[str, ...] | None, named: str) -> None:
    with pytest.raises(Missing, match=named.replace("*", "[*]")):
        bound(kernel(plain), words)
