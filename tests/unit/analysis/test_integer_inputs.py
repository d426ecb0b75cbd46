"""Integer inputs drawn as production has them, within what the problem's own show of their range and structure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hkbench.analysis.input_distributions import OWN, Variator
from hkbench.analysis.integer_inputs import KINDS, has_integers, lengths_of, skewed
from hkbench.analysis.reference import Reference
from hkbench.problems import load_problem
from hkbench.records import SizeSet

every_kind = pytest.mark.parametrize("kind", KINDS)


def tokens(seed: int = 0) -> torch.Tensor:
    return torch.randint(3, 1000, (8, 500), generator=torch.Generator().manual_seed(seed))


@every_kind
def test_range_shape_and_dtype_stay(kind: str) -> None:
    own = tokens().to(torch.int32)
    (made,) = skewed(kind, [own], 5)
    assert (made.shape, made.dtype, made.stride()) == (own.shape, own.dtype, own.stride())
    assert own.min() <= made.min() and made.max() <= own.max()
    assert not torch.equal(made, own)
    assert torch.equal(made, skewed(kind, [own], 5)[0])


def test_each_kind_is_what_it_is_called() -> None:
    made = {kind: skewed(kind, [tokens()], 1)[0] for kind in KINDS}
    assert made["all equal"].unique().numel() == 1
    assert torch.equal(made["sorted"].reshape(-1), tokens().reshape(-1).sort().values)
    assert torch.equal(made["repeated"][:, :16], made["repeated"][:, :1].expand(-1, 16))
    counts = made["Zipf"].unique(return_counts=True)[1].sort(descending=True).values
    assert counts[0] > 0.1 * 4000 and counts.numel() > 50


@every_kind
def test_offsets_stay_ascending_with_their_ends(kind: str) -> None:
    own = torch.arange(0, 1025, 32)
    (made,) = skewed(kind, [own], 2)
    lengths = made.diff()
    assert made[0] == 0 and made[-1] == 1024 and bool((lengths >= 0).all())
    assert lengths.max() > 2 * lengths.float().median()


@every_kind
def test_a_permutation_stays_one(kind: str) -> None:
    own = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    (made,) = skewed(kind, [own.clone()], 2)
    assert torch.equal(made.sort().values, torch.arange(300)) and not torch.equal(made, own)


@every_kind
def test_lengths_are_ragged(kind: str) -> None:
    own = torch.randint(64, 129, (32,), generator=torch.Generator().manual_seed(0))
    x = torch.randn(32, 128)

    def forward(x: torch.Tensor, seq_lens: torch.Tensor) -> None: ...

    assert lengths_of(forward) == {1}
    made = skewed(kind, [x, own.clone()], 3, lengths_of(forward))
    assert made[0] is x
    assert (made[1].min(), made[1].max()) == (own.min(), own.max()) and made[1].float().median() < 96


def test_what_says_nothing_stays() -> None:
    flags, one, x = torch.tensor([True, False]), torch.full((5,), 3), torch.randn(4)
    assert not has_integers([flags, one, x])
    made = skewed("Zipf", [flags, one, x], 0)
    assert made[0] is flags and made[1] is one and made[2] is x
    assert has_integers([{"ids": tokens()}])
    with pytest.raises(ValueError, match="no kind"):
        skewed("gaussian", [], 0)


def variator(folder: Path, forward: str) -> Variator:
    path = folder / "1_Look_up.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n"
        f"    def forward(self, table, index):\n        {forward}\n"
        "def get_inputs():\n    return [torch.randn(40, 6), torch.randint(0, 40, (30,))]\n"
        "def get_init_inputs():\n    return []\n"
    )
    return Variator(Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 0))


@every_kind
def test_a_trial_has_them_beside_its_floating_inputs(tmp_path: Path, kind: str) -> None:
    varied = variator(tmp_path, "return table[index]")
    for name in (OWN, "shifted"):
        drawn = varied.draw(name, 4, kind)
        assert (drawn.name, drawn.integers) == (name, kind)
        assert not torch.equal(drawn.inputs[1], varied.draw(name, 4).inputs[1])
    assert not varied.not_taken


def test_what_the_reference_does_not_take_is_left_out(tmp_path: Path) -> None:
    varied = variator(tmp_path, "assert index.unique().numel() > 1\n        return table[index]")
    drawn = varied.draw("shifted", 4, "all equal")
    assert (drawn.name, drawn.integers) == ("shifted", None)
    assert varied.not_taken == {"all equal"}


def test_what_makes_the_reference_infinite_is_left_out(tmp_path: Path) -> None:
    varied = variator(tmp_path, "return table[index] / (index.float().std() + 0.0)")
    assert varied.draw(OWN, 4, "all equal").integers is None
    assert varied.draw(OWN, 4, "Zipf").integers == "Zipf"
