"""Planted extremes: they show in the outputs, keep an input's domain, and leave the tolerance alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.small_problems import problem_of_forward

from hkbench.analysis import compare, domains
from hkbench.analysis.input_distributions import OWN, Variator
from hkbench.analysis.reference import Reference
from hkbench.records import SizeSet


def drawn_by(folder: Path, forward: str, inputs: str) -> tuple[Reference, Variator]:
    reference = Reference(problem_of_forward(folder, forward, inputs), SizeSet.FULL, torch.device("cpu"), 0)
    return reference, Variator(reference)


def passes(reference: Reference, variator: Variator, seed: int, part: float) -> bool:
    """Whether the reference passes that reads this part of its inputs and takes the rest to be like it."""
    drawn = variator.draw(OWN, seed)
    read = [x.reshape(-1)[: int(x.numel() * part)] for x in drawn.inputs]
    got, native, precise = (leaves["output"] for leaves in (reference.native(read), drawn.native, drawn.precise))
    assert all(isinstance(x, torch.Tensor) for x in (got, native, precise))
    result, _ = compare.compare_output("output", native, precise, got)  # type: ignore[arg-type]
    return result.mismatch is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("loss", ["F.mse_loss(a, b)", "F.l1_loss(a, b)", "(a.float() * b.float()).mean().to(a.dtype)"])
def test_a_part_of_a_statistic_hardly_ever_passes(tmp_path: Path, loss: str, dtype: str) -> None:
    numbers = f"torch.rand(1024, 512, dtype=torch.{dtype})"
    reference, variator = drawn_by(tmp_path, f"a, b: {loss}", f"{numbers}, {numbers}")
    assert passes(reference, variator, 1, 1.0)
    assert sum(passes(reference, variator, seed, 0.75) for seed in range(20)) <= 8
    assert variator.unseen == ()


def test_an_input_that_hardly_matters_is_named(tmp_path: Path) -> None:
    _, variator = drawn_by(
        tmp_path, "a, b: a.sum() + torch.tanh(b).mean()", "torch.rand(1024, 512), torch.rand(1024, 512)"
    )
    variator.draw(OWN, 1)
    assert variator.unseen == (1,)


def test_few_elements_change_and_the_scale_hardly(tmp_path: Path) -> None:
    reference, variator = drawn_by(tmp_path, "x: x ** 3", "torch.randn(512, 512)")
    plain, planted = reference.inputs(5)[0], variator.inputs(5)[0]
    assert 1 <= int((plain != planted).sum()) <= 64
    assert torch.equal(torch.sign(plain), torch.sign(planted))
    before, after = (compare.root_mean_square(x**3) for x in (plain, planted))
    assert after <= 1.2 * before
    assert torch.equal(planted, variator.inputs(5)[0])
    assert not torch.equal(plain != planted, reference.inputs(6)[0] != variator.inputs(6)[0])


def test_domains_are_kept(tmp_path: Path) -> None:
    _, variator = drawn_by(
        tmp_path,
        "p, q, m, s: (F.kl_div(q.log(), p, reduction='batchmean'), torch.asin(m), s.softmax(-1))",
        "torch.randn(64, 100).softmax(-1), torch.randn(64, 100).softmax(-1), torch.rand(64, 64), "
        "torch.randn(64, 64).masked_fill(torch.ones(64, 64).triu(1).bool(), -torch.inf)",
    )
    p, q, m, s = variator.inputs(3)
    for chances in (p, q):
        assert float(chances.min()) >= 0.0 and torch.allclose(chances.sum(-1), torch.ones(64), atol=1e-5)
    assert float(m.min()) >= 0.0 and float(m.max()) <= 1.0
    assert torch.equal(torch.isinf(s), torch.ones(64, 64).triu(1).bool())


def test_what_checks_its_values_is_not_given_others(tmp_path: Path) -> None:
    """Outside of its range the operator would stop a GPU's context."""
    for forward in (
        "x: F.binary_cross_entropy(x, x)",
        "x: torch.arange(10.0)[(x * 9.99).long()].sum() * 1e-9 + x.mean()",
    ):
        _, variator = drawn_by(tmp_path, forward, "torch.rand(256, 512)")
        for seed in range(5):
            (x,) = variator.inputs(seed)
            assert float(x.max()) <= 1.0
        assert variator.unseen == (0,)


def test_numbers_far_from_zero_stay_near_their_mean(tmp_path: Path) -> None:
    _, variator = drawn_by(tmp_path, "x: x.var(-1)", "1000.0 + torch.randn(64, 512)")
    (x,) = variator.inputs(1)
    assert float(x.min()) > 900.0 and float(x.max()) < 1100.0 and float((x - 1000.0).abs().max()) > 7.0


def test_places_have_no_ties(tmp_path: Path) -> None:
    reference, variator = drawn_by(tmp_path, "x: x.max(-1)", "torch.randn(64, 512)")
    for seed in range(3):
        drawn = variator.draw(OWN, seed)
        (x,) = drawn.inputs
        assert not domains.inspect(x).fixed
        assert bool(((x == x.amax(-1, keepdim=True)).sum(-1) == 1).all())
    assert reference.precision == "float64"


def test_whole_numbers_and_codes_stay(tmp_path: Path) -> None:
    reference, variator = drawn_by(tmp_path, "x, y: x.sum() + y.sum()", "torch.randint(0, 9, (64,)), torch.ones(64)")
    assert all(torch.equal(a, b) for a, b in zip(variator.inputs(1), reference.inputs(1), strict=True))


def test_plain_inputs_have_no_extremes_and_need_no_look_for_their_size(tmp_path: Path) -> None:
    reference, variator = drawn_by(tmp_path, "x: x.relu()", "torch.randn(4096).clamp(-1, 1)")
    plain = variator.plain(3)
    assert torch.equal(plain.inputs[0], reference.inputs(3)[0]) and variator._planting is None
    planted = variator.draw(OWN, 3)
    assert planted.inputs[0].abs().max() > 1.0 >= plain.inputs[0].abs().max()
