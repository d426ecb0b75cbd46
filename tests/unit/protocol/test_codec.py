"""Messages as dataclasses: what is written is read back, and nothing else is."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from support.junk import Junk, arrived

from hkbench.protocol.codec import NotOfForm, Range, decode, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    name: Annotated[str, Range(1, 5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    flag: bool
    count: Annotated[int, Range(0, 9)]
    seconds: float
    class_: str
    kind: Literal["a", 1]
    inners: Annotated[list[Inner], Range(0, 2)]
    sizes: dict[str, int]
    anything: object
    inner: Inner | None = None
    number: int | str = 3


GOOD: dict[str, Any] = {
    "flag": True, "count": 9, "seconds": 0.5, "class": "ModelNew", "kind": "a", "inners": [{"name": "one"}],
    "sizes": {"x": 1}, "anything": [None, {"y": 2}], "inner": {"name": "two"}, "number": "four",
}  # fmt: skip


def test_what_is_written_is_read_back() -> None:
    message = decode(Whole, GOOD)
    assert message == Whole(
        flag=True, count=9, seconds=0.5, class_="ModelNew", kind="a", inners=[Inner(name="one")], sizes={"x": 1},
        anything=[None, {"y": 2}], inner=Inner(name="two"), number="four",
    )  # fmt: skip
    assert encode(message) == GOOD
    assert decode(Whole, json.loads(json.dumps(encode(message)))) == message


def test_only_a_field_with_a_default_may_be_missing() -> None:
    less = {key: value for key, value in GOOD.items() if key not in ("inner", "number")}
    assert (decode(Whole, less).inner, decode(Whole, less).number) == (None, 3)
    for key in less:
        with pytest.raises(NotOfForm, match=f"Whole lacks {key}"):
            decode(Whole, {name: value for name, value in less.items() if name != key})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flag": 1}, "Whole.flag is int, expected bool"),
        ({"flag": None}, "Whole.flag is NoneType"),
        ({"count": True}, "Whole.count is bool, expected int"),
        ({"count": 1.0}, "Whole.count is float, expected int"),
        ({"count": -1}, "Whole.count is not within"),
        ({"count": 10**400}, "Whole.count is not within"),
        ({"seconds": 1}, "Whole.seconds is int, expected float"),
        ({"seconds": math.inf}, "Whole.seconds is a number that is not finite"),
        ({"seconds": math.nan}, "Whole.seconds is a number that is not finite"),
        ({"class_": "x"}, "Whole has 'class_'"),
        ({"unknown": 1}, "Whole has 'unknown'"),
        ({"kind": True}, "Whole.kind is bool"),
        ({"kind": "b"}, "Whole.kind is str, expected 'a' or 1"),
        ({"inners": {}}, "Whole.inners is dict, expected list"),
        ({"inners": [{"name": "x"}] * 3}, "Whole.inners is not within"),
        ({"inners": [{"name": "x"}, {"name": ""}]}, r"Whole.inners\[1\].name is not within"),
        ({"inners": [{"name": "x", "more": 1}]}, r"Whole.inners\[0\] has 'more'"),
        ({"inners": ["x"]}, r"Whole.inners\[0\] is str, expected object"),
        ({"sizes": {"x": "1"}}, r"Whole.sizes\['x'\] is str"),
        ({"sizes": [1]}, "Whole.sizes is list"),
        ({"inner": 3}, "Whole.inner is int"),
        ({"number": 1.5}, "Whole.number is"),
    ],
)
def test_another_form_is_refused_by_its_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(NotOfForm, match=said):
        decode(Whole, GOOD | change)


def test_junk_is_a_message_or_refused() -> None:
    for seed in range(1000):
        for value in arrived(Junk(seed).like(GOOD)):
            with contextlib.suppress(NotOfForm):
                message = decode(Whole, value)
                assert encode(message) == {"inner": None, "number": 3} | value


class Figure(BaseModel):
    value: float


class Shade(StrEnum):
    DARK = "dark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    figures: list[Figure]
    shade: Shade | None
    notes: list[str] = field(default_factory=list)


def test_a_record_and_a_text_of_a_class_read_and_write_themselves() -> None:
    message = Known(figures=[Figure(value=1.5)], shade=Shade.DARK)
    assert encode(message) == {"figures": [{"value": 1.5}], "shade": "dark", "notes": []}
    read = decode(Known, {"figures": [{"value": 1.5}], "shade": "dark"})
    assert read == message and type(read.shade) is Shade


@pytest.mark.parametrize(
    ("figures", "shade", "said"),
    [
        ([{"value": "x"}], None, r"Known.figures\[0\] is no Figure"),
        ([3], None, r"Known.figures\[0\] is no Figure"),
        ([], "light", "Known.shade is"),
        ([], [], "Known.shade is"),
    ],
)
def test_what_a_class_does_not_read_is_refused(figures: object, shade: object, said: str) -> None:
    with pytest.raises(NotOfForm, match=said):
        decode(Known, {"figures": figures, "shade": shade})


@dataclass
class Odd:
    value: set[int]


def test_a_type_that_no_message_has() -> None:
    with pytest.raises(TypeError, match="no type of a message's field"):
        decode(Odd, {"value": []})
