"""Fingerprints: the same mistake is the same one wherever it was made."""

from __future__ import annotations

import pytest

from hkbench.experience.fingerprint import fingerprint
from hkbench.records import Failure, FailureKind, Stage


def failure(message: str, kind: FailureKind = FailureKind.BUILD_ERROR, detail: str | None = None) -> Failure:
    return Failure(stage=Stage.BUILD, kind=kind, message=message, detail=detail)


SAME = [
    (
        '/tmp/hkb_a81x/main.cu(12): error: identifier "__nv_bfloat16" is undefined',
        '/var/run/other/main.cu(907): error: identifier "__nv_bfloat16" is undefined',
    ),
    (
        "main.hip:3:7: error: no member named 'mma' in 'kittens'",
        "k.hip:41:19: error: no member named 'mma' in 'kittens'",
    ),
    ("IndexError: index 12 is out of range at 0x7f3a00", "IndexError: index 9 is out of range at 0x55ee10"),
    (
        "ninja: build stopped\n/a/b.cpp:1:2: error: expected ';' before '}' token",
        "/c/d.cpp:9:9: error: expected \u2018;\u2019 before \u2018}\u2019 token",
    ),
]
APART = [
    ("main.hip:3:7: error: use of 'mma_16x16'", "main.hip:3:7: error: use of 'mma_32x32'"),
    (
        "main.hip:3:7: error: no member named 'mma' in 'kittens'",
        "main.hip:3:7: error: no member named 'mul' in 'kittens'",
    ),
    ("NameError: name 'tl' is not defined", "NameError: name 'triton' is not defined"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_places_and_numbers_do_not_count(one: str, other: str) -> None:
    assert fingerprint(failure(one)).digest == fingerprint(failure(other)).digest


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_do(one: str, other: str) -> None:
    assert fingerprint(failure(one)).digest != fingerprint(failure(other)).digest


def test_values_of_wrong_answers_do_not_count_and_the_stage_does() -> None:
    wrong = failure("17 of 40 elements are wrong", FailureKind.WRONG_VALUES)
    assert fingerprint(wrong) == fingerprint(wrong.model_copy(update={"message": "all elements are wrong"}))
    assert fingerprint(wrong) != fingerprint(wrong.model_copy(update={"stage": Stage.RUN}))


@pytest.mark.parametrize(
    ("message", "symbol"),
    [
        ("main.hip:3:7: error: no member named 'mma_ABt' in namespace 'kittens'", "mma_ABt"),
        ('k.cu(3): error: identifier "wmma" is undefined', "wmma"),
        ("x.cpp:1: error: 'at::cuda' has not been declared", "at::cuda"),
        ("ld.lld: error: undefined symbol: launch_relu", "launch_relu"),
        ("AttributeError: module 'triton.language' has no attribute 'tanh'", "tanh"),
        ("NameError: name 'tl' is not defined", "tl"),
        ("fatal error: 'kittens.cuh' file not found", "kittens.cuh"),
        ("segmentation fault", None),
    ],
)
def test_the_name_that_an_error_speaks_of(message: str, symbol: str | None) -> None:
    assert fingerprint(failure(message)).symbol == symbol


def test_the_error_is_looked_for_in_what_the_tool_said() -> None:
    detail = "In file included from a.cpp:\nb.h:3:1: error: unknown type name 'half'\n  half x;"
    found = fingerprint(failure("the build failed", detail=detail))
    assert found.symbol == "half"
    assert "unknown type name 'half'" in found.text
