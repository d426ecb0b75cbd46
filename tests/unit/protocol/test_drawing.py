import pytest
import torch

from hkbench.protocol.drawing import CHUNK, MIN_ELEMENTS, no_draws, quick_draws

LARGE = MIN_ELEMENTS + CHUNK // 2  # the last chunk is shorter


def drawn(threads: int, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a large tensor, drawn by so many threads, and a small one that is drawn after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(seed)
        with quick_draws(), torch.no_grad():
            large = torch.nn.init.uniform_(torch.empty(LARGE), -1.0, 3.0)
            return large, torch.nn.init.normal_(torch.empty(100))
    finally:
        torch.set_num_threads(before)


def test_large_tensors_are_alike_by_any_number_of_threads_and_differ_by_the_seed() -> None:
    (large, small), (again, small_again) = drawn(1), drawn(2)
    assert torch.equal(large, again) and torch.equal(small, small_again)
    other, _ = drawn(2, seed=4)
    assert float((other == large).double().mean()) < 1e-3


def test_large_tensors_have_the_distribution_asked_for_and_no_chunk_is_another_one() -> None:
    large, _ = drawn(2)
    assert -1.0 <= float(large.min()) < -0.999 and 2.999 < float(large.max()) <= 3.0
    assert float(large.double().mean()) == pytest.approx(1.0, abs=0.002)
    assert not torch.equal(large[:CHUNK], large[CHUNK : 2 * CHUNK])
    assert float(torch.corrcoef(torch.stack([large[:CHUNK], large[CHUNK : 2 * CHUNK]]))[0, 1].abs()) < 0.003
    torch.manual_seed(0)
    with quick_draws():
        normal = torch.empty(LARGE).normal_(2.0, std=0.5)
    assert (float(normal.mean()), float(normal.std())) == pytest.approx((2.0, 0.5), abs=0.002)


def test_small_tensors_and_those_of_a_generator_have_pytorchs_values() -> None:
    def made() -> list[torch.Tensor]:
        torch.manual_seed(5)
        own = torch.Generator().manual_seed(6)
        return [torch.empty(1000).uniform_(), torch.empty(LARGE).uniform_(generator=own), torch.rand(3)]

    plain = made()
    with quick_draws():
        quick = made()
    assert all(map(torch.equal, plain, quick))


def test_what_pytorch_refuses_is_refused_and_its_methods_are_back_afterwards() -> None:
    plain = torch.Tensor.uniform_
    with pytest.raises(RuntimeError, match="leaf Variable"), quick_draws():
        torch.empty(LARGE, requires_grad=True).uniform_()
    assert torch.Tensor.uniform_ is plain


def test_large_tensors_may_be_left_as_they_are() -> None:
    with no_draws():
        large, small = torch.zeros(LARGE).normal_(), torch.zeros(100).uniform_()
    assert not large.any() and small.any()
    assert torch.zeros(LARGE).uniform_().any()
