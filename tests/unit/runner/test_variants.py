"""Further baselines: what is made of a model, and what is not passed off as something that it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

from hkbench.runner import variants
from hkbench.runner.variants import NotMade, Variants

CPU = torch.device("cpu")


class Double(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(x)


class Broken(Double):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        torch._dynamo.graph_break()
        return y + 1.0


@pytest.fixture(autouse=True)
def _without_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Capture graphs as ever and run them as they are: generating code takes a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    with torch._dynamo.config.patch(recompile_limit=8):
        yield
    variants.forget()


def answer(of: Callable[..., object]) -> object:
    found = of(torch.ones(2, 4))
    assert isinstance(found, torch.Tensor)
    return found.tolist()


def made(name: str, model: torch.nn.Module, best: object = None) -> Variants:
    found = Variants(best_class=best, arguments=(4, 4))
    found.make(name, model, [torch.ones(2, 4)], CPU)
    return found


def test_a_compiled_model_has_the_parameters_of_the_model() -> None:
    model = Double(4, 4)
    found = made("compile", model)
    assert variants.graphs() == 1 and found.notes == []
    with torch.no_grad():
        model.weight.fill_(3.0)
        assert answer(found.made["compile"]) == answer(model)
    assert variants.graphs() == 1, "warm"


def test_a_graph_break_is_told() -> None:
    found = made("compile", Broken(4, 4))
    assert variants.graphs() == 2
    assert len(found.notes) == 1 and found.notes[0].startswith("graph break: ")


def test_what_runs_eagerly_is_no_compiled_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Double(4, 4)
    monkeypatch.setattr(model, "forward", torch.compiler.disable(model.forward))
    with pytest.raises(NotMade, match="eagerly"):
        made("compile", model)


def test_the_best_model_gets_the_parameters() -> None:
    model = Double(4, 4)
    best = made("best", model, Double).made["best"]
    assert best is not model
    with torch.no_grad():
        assert answer(best) == answer(model)


def test_a_problem_without_a_best_model_has_none() -> None:
    with pytest.raises(NotMade, match="ModelBest"):
        made("best", Double(4, 4))
