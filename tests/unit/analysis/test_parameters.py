"""Randomised parameters, and which of a candidate's belong to which of the reference's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hkbench.analysis.parameters import Form, fit, forms, randomised


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(64)
        self.linear = nn.Linear(64, 64)
        self.head = nn.Linear(64, 64, bias=False)
        self.head.weight = self.linear.weight
        self.alpha = nn.Parameter(torch.tensor([0.25]))
        self.decay = nn.Parameter(-torch.rand(64) - 0.01)
        self.steps = nn.Parameter(torch.arange(5), requires_grad=False)
        self.low = nn.Parameter(torch.zeros(64, 1024))
        self.register_buffer("table", torch.randn(9))
        self.narrow = nn.Parameter(torch.randn(64, dtype=torch.bfloat16))


def test_a_missing_gain_or_bias_shows() -> None:
    torch.manual_seed(0)
    model = Mixed().eval()
    state = randomised(model, 3)
    assert float(state["norm.weight"].std()) > 0.1 and float(state["norm.weight"].min()) > 0.7
    assert 0.15 < float(state["norm.bias"].std()) < 0.5
    assert float((state["linear.bias"] - model.linear.bias.detach()).std()) > 0.1
    assert float(state["alpha"]) > 0 and float(state["alpha"]) != 0.25
    assert float(state["decay"].max()) < 0
    x = torch.randn(32, 64)
    with torch.no_grad():
        before = model.linear(model.norm(x))
    model.load_state_dict(state)
    with torch.no_grad():
        after = model.linear(model.norm(x))
    assert float((after - before).abs().mean()) > 0.05


def test_a_matrix_of_zeros_keeps_the_outputs_scale() -> None:
    state = randomised(Mixed(), 3)
    out = torch.randn(50, 1024) @ state["low"].T
    assert 0.1 < float(out.std()) < 1.0


def test_statistics_change_and_other_buffers_do_not() -> None:
    model = Mixed()
    state = randomised(model, 3)
    assert float(state["norm.running_var"].min()) > 0
    assert float(state["norm.running_var"].std()) > 0.1 and float(state["norm.running_mean"].std()) > 0.1
    for name in ("table", "steps", "norm.num_batches_tracked"):
        assert torch.equal(state[name], model.state_dict()[name])
        assert state[name].data_ptr() != model.state_dict()[name].data_ptr()


def test_tied_parameters_stay_tied() -> None:
    state = randomised(Mixed(), 3)
    assert state["head.weight"].data_ptr() == state["linear.weight"].data_ptr()


def test_the_seed_decides_and_the_model_is_left_alone() -> None:
    torch.manual_seed(1)
    model = Mixed()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, same, other = randomised(model, 1), randomised(model, 1), randomised(model, 2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["narrow"], other["narrow"])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert {name: (v.shape, v.dtype) for name, v in one.items()} == {n: (v.shape, v.dtype) for n, v in before.items()}


def form(*shape: int, buffer: bool = False, dtype: str = "float32") -> Form:
    return Form(shape, dtype, not buffer)


def test_the_same_names_fit() -> None:
    entries = forms(Mixed())
    found = fit(entries, entries)
    assert found.problem is None and found.mapping == {name: name for name in entries}


def test_renamed_submodules_fit_in_order() -> None:
    reference = {"one.weight": form(4, 4), "one.bias": form(4), "two.weight": form(4, 4), "two.bias": form(4)}
    candidate = {"w1": form(4, 4), "b1": form(4), "w2": form(4, 4, dtype="bfloat16"), "b2": form(4)}
    found = fit(reference, candidate)
    assert found.problem is None
    assert found.mapping == {"w1": "one.weight", "b1": "one.bias", "w2": "two.weight", "b2": "two.bias"}


def test_the_last_name_goes_before_the_order() -> None:
    """Gain and bias have the same shape; in order they would change places."""
    reference = {"norm.weight": form(8), "norm.bias": form(8)}
    found = fit(reference, {"bias": form(8), "weight": form(8)})
    assert found.mapping == {"bias": "norm.bias", "weight": "norm.weight"} and found.problem is None


def test_buffers_may_come_and_go_but_not_statistics() -> None:
    reference = {"w": form(3), "mask": form(9, 9, buffer=True), "bn.running_var": form(3, buffer=True)}
    renamed = {"w": form(3), "cache": form(5, buffer=True), "norm.running_var": form(3, buffer=True)}
    found = fit(reference, renamed)
    assert found.problem is None and found.mapping["norm.running_var"] == "bn.running_var"
    without = fit(reference, {"w": form(3)})
    assert without.missing == ("bn.running_var",) and without.problem and "running_var" in without.problem


@pytest.mark.parametrize(
    ("candidate", "missing", "unexpected", "text"),
    [
        ({"w": form(4, 5)}, ("b",), (), "lacks b of shape [4]"),
        ({"w": form(4, 5), "b": form(4), "scale": form(1)}, (), ("scale",), "parameter scale of shape [1]"),
        ({"w": form(5, 4), "b": form(4)}, ("w",), ("w",), "w has shape [5, 4], Model's has [4, 5]"),
        ({"w": form(4, 5), "b": form(4, dtype="int64")}, ("b",), ("b",), "lacks b"),
    ],
)
def test_what_does_not_fit_is_named(
    candidate: dict[str, Form], missing: tuple[str, ...], unexpected: tuple[str, ...], text: str
) -> None:
    found = fit({"w": form(4, 5), "b": form(4)}, candidate)
    assert (found.missing, found.unexpected) == (missing, unexpected)
    assert found.problem is not None and text in found.problem


class Tied(nn.Module):
    def __init__(self, copies: bool = False) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.gain = nn.Parameter(self.norm.weight.detach().clone()) if copies else self.norm.weight
        self.register_buffer("mean", self.norm.running_mean)


def test_a_second_name_of_a_tensor_is_no_further_parameter() -> None:
    found = fit(forms(nn.Sequential(nn.BatchNorm1d(8))), forms(Tied()))
    assert found.problem is None
    assert found.mapping["norm.bias"] == "0.bias" and "0.running_mean" in found.mapping.values()
    further = {"gain": "norm.weight", "norm.weight": "gain", "mean": "norm.running_mean", "norm.running_mean": "mean"}
    assert found.also and all(further[name] == first and first in found.mapping for name, first in found.also.items())


def test_a_copy_under_a_second_name_is_a_further_parameter() -> None:
    found = fit(forms(nn.Sequential(nn.BatchNorm1d(8))), forms(Tied(copies=True)))
    assert found.problem is not None and len(found.unexpected) == 1


def test_names_that_the_reference_ties_need_one_counterpart_or_one_each() -> None:
    assert fit(forms(Mixed()), {k: v for k, v in forms(Mixed()).items() if k != "head.weight"}).problem is None
    untied = {name: Form(form.shape, form.dtype, form.is_parameter) for name, form in forms(Mixed()).items()}
    found = fit(forms(Mixed()), untied)
    assert found.problem is None and found.mapping["head.weight"] == "head.weight" and not found.also
