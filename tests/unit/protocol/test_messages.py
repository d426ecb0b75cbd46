"""The runner's operations: each has one class, and that class one answer."""

from __future__ import annotations

import json

import pytest

from hkbench.protocol import messages
from hkbench.protocol.codec import NotOfForm
from hkbench.protocol.places import (
    Argument,
    DictArgument,
    ListArgument,
    Place,
    PlainArgument,
    TensorArgument,
    places_in,
)
from hkbench.runner.main import Runner

PLACE = Place(dtype="float32", shape=[2, 3], strides=[3, 1], offset=256, span=6)
GIVEN: list[Argument] = [
    ListArgument(list_=[TensorArgument(tensor=PLACE), PlainArgument(value=None)], tuple_=True),
    DictArgument(dict_={"a": PlainArgument(value=[1, "x"])}),
]


def test_each_operation_has_a_class_and_each_class_a_handler() -> None:
    known = {kind.__name__ for kind in messages.Request.__subclasses__()}
    assert {kind.__name__ for kind in messages.REQUESTS.values()} == known
    assert all(callable(getattr(Runner, name)) for name in messages.REQUESTS)


def test_a_request_is_read_back_with_all_that_is_nested_in_it() -> None:
    bind = messages.Bind(inputs=GIVEN, outputs={"output": PLACE})
    assert messages.read(json.loads(json.dumps(messages.written(bind)))) == bind


@pytest.mark.parametrize(
    "message", [{}, {"op": "rumour"}, {"op": "call", "gates": 1}, {"op": "bind", "inputs": [{}], "outputs": {}}]
)
def test_what_is_no_request(message: dict[str, object]) -> None:
    with pytest.raises(NotOfForm):
        messages.read(message)


def test_the_places_of_nested_inputs_are_found() -> None:
    assert [place for argument in GIVEN for place in places_in(argument)] == [PLACE]
    assert list(places_in(DictArgument(dict_={"a": ListArgument(list_=[*GIVEN], tuple_=False)}))) == [PLACE]


def test_a_call_at_a_gate_has_its_number() -> None:
    assert messages.at_gate(messages.Call(), 3) == messages.Call(gate=3)
    assert messages.at_gate(messages.Null(), 4) == messages.Null(gate=4)


def test_a_request_goes_as_its_fields() -> None:
    load = messages.Load(path="code.py", class_="ModelNew", capture=False, overrides={"n": 3})
    assert messages.written(load) == {
        "op": "load", "path": "code.py", "class": "ModelNew", "capture": False, "overrides": {"n": 3}, "text": None,
        "gpu": None, "emulated": None,
    }  # fmt: skip


def test_an_answer_is_of_its_request_s_class() -> None:
    held = {"device_bytes": 1, "host_bytes": 2}
    assert messages.answer_to(messages.Reset(), {"ok": True, **held}) == messages.MemoryHeld(**held)
    for wrong in ({}, held, {"ok": 1, **held}, {"ok": True}, {"ok": True, **held, "more": 3}):
        with pytest.raises(NotOfForm):
            messages.answer_to(messages.Reset(), wrong)


def test_an_exception_counts_in_whatever_form_it_is_told() -> None:
    told: dict[str, object] = {"ok": False, "error": None, "message": 3, "traceback": [], "more": 1}
    assert messages.answer_to(messages.Call(), told) == messages.Raised(error="None", message="3", traceback="[]")
    assert messages.answer_to(messages.Call(), {"ok": False}) == messages.Raised()


@pytest.mark.parametrize("address", [-1, messages.MAX_ADDRESS, True, "0", None])
def test_an_address_that_is_none(address: object) -> None:
    with pytest.raises(NotOfForm):
        messages.answer_to(messages.Here(text=""), {"ok": True, "process": 1, "address": address})
