"""Other input distributions: what they keep, what they change, and when they are given up."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from hkbench.analysis import compare, domains
from hkbench.analysis.input_distributions import (
    NAMES,
    OWN,
    TrialPlan,
    Variator,
    admissible,
    summarise,
    trial_plan,
    vary,
)
from hkbench.analysis.reference import Reference
from hkbench.problems import find_problems, load_problem
from hkbench.records import Problem, SizeSet

PROBLEMS = Path(__file__).parents[3] / "problems"
#: Small enough for every run; what is not named keeps its CPU size.
SMALL = {"rows": 16, "tokens": 16, "batch": 2, "m": 48, "vocabulary": 512, "queries": 64, "steps": 16}
SMALL |= {"in_channels": 16, "out_channels": 16, "positions": 64, "in_features": 64, "out_features": 64}


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(9)).to(dtype)


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(9))


def varied(name: str, x: torch.Tensor, seed: int = 3, exact: bool = False) -> torch.Tensor:
    (made,) = vary(name, [x], seed, exact=exact)
    assert isinstance(made, torch.Tensor)
    assert (made.shape, made.dtype, made.stride()) == (x.shape, x.dtype, x.stride())
    return made


def kurtosis(x: torch.Tensor) -> float:
    c = x.double() - x.double().mean()
    return float(c.pow(4).mean() / c.square().mean() ** 2)


def test_plans() -> None:
    assert trial_plan(5, True) == (
        TrialPlan("own", "own"),
        TrialPlan("own", "random"),
        TrialPlan("shifted", "random"),
        TrialPlan("heavy-tailed", "random"),
        TrialPlan("outliers", "own"),
    )
    assert trial_plan(1, True) == (TrialPlan("own", "random"),)
    assert [plan.inputs for plan in trial_plan(2, True)] == ["own", "shifted"]
    assert len(trial_plan(12, True)) == 12 and {p.inputs for p in trial_plan(12, True)} == {OWN, *NAMES}
    assert {plan.parameters for plan in trial_plan(5, False)} == {"own"}
    with pytest.raises(ValueError, match="0 trials"):
        trial_plan(0, True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_normal_numbers(dtype: torch.dtype) -> None:
    x = normal(64, 256, dtype=dtype)
    shifted, heavy, outliers = (varied(name, x).double() for name in NAMES)
    assert abs(float(shifted.mean())) > 0.4 or not 0.8 < float(shifted.std()) < 1.2
    assert kurtosis(heavy) > 8.0 and 0.5 < float(heavy.std()) < 2.0
    assert float(outliers.abs().max()) > 29.0 and int((outliers.abs() > 20).sum()) <= 4
    assert all(bool(torch.isfinite(made).all()) for made in (shifted, heavy, outliers))


@pytest.mark.parametrize("seed", range(8))
def test_shifts_differ_with_the_seed_and_only_with_it(seed: int) -> None:
    x = normal(32, 64)
    for name in NAMES:
        one, same, other = varied(name, x, seed), varied(name, x, seed), varied(name, x, seed + 100)
        assert torch.equal(one, same) and not torch.equal(one, x)
        assert torch.equal(one, other) is (name == "heavy-tailed")  # a fixed law, whatever the seed


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_domains_are_kept(name: str, seed: int) -> None:
    positive = varied(name, 5.0 * normal(64, 64).exp(), seed)
    assert float(positive.min()) > 0
    unit = varied(name, uniform(64, 64), seed)
    assert float(unit.min()) >= 0 and float(unit.max()) <= 1
    sines = varied(name, normal(64, 64).sin(), seed)
    assert float(sines.abs().max()) <= 1 and float(sines.min()) < 0
    chances = varied(name, normal(64, 100).softmax(-1), seed)
    assert float(chances.min()) >= 0 and torch.allclose(chances.sum(-1), torch.ones(64), atol=1e-5)
    columns = varied(name, normal(64, 100).softmax(0), seed)
    assert torch.allclose(columns.sum(0), torch.ones(100), atol=1e-5)
    logs = varied(name, normal(64, 100).log_softmax(-1), seed)
    assert torch.allclose(logs.logsumexp(-1), torch.zeros(64), atol=1e-5)
    for kept in (positive, unit, sines, chances, columns, logs):
        assert bool(torch.isfinite(kept).all())


@pytest.mark.parametrize("name", NAMES)
def test_structure_is_kept(name: str) -> None:
    lower = normal(64, 64).tril()
    made = varied(name, lower)
    assert torch.equal(made == 0, lower == 0) and not torch.equal(made, lower)
    symmetric = normal(64, 64) + normal(64, 64).T
    made = varied(name, symmetric)
    assert torch.equal(made, made.T) and not torch.equal(made, symmetric)
    rising = normal(64).sort().values
    made = varied(name, rising)
    assert bool((made[1:] >= made[:-1]).all())
    holes = normal(64, 64)
    holes[:, 5] = -torch.inf
    made = varied(name, holes)
    assert torch.equal(torch.isinf(made), torch.isinf(holes)) and not torch.equal(made, holes)


@pytest.mark.parametrize("name", NAMES)
def test_codes_and_constants_stay(name: str) -> None:
    mask = torch.zeros(64, 64).masked_fill(uniform(64, 64) < 0.5, -10000.0)
    for x in (
        mask,
        2.0 * (uniform(64) < 0.5).float() - 1.0,
        torch.arange(100.0),
        torch.full((9,), 0.5),
        torch.zeros(7),
        torch.arange(5),
        uniform(9) < 0.5,
        torch.randn(()),
        torch.empty(0, 4),
    ):
        assert torch.equal(varied(name, x), x)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_does_not_overflow(name: str) -> None:
    made = varied(name, (normal(64, 64) * 3000.0).half())
    assert bool(torch.isfinite(made).all())


@pytest.mark.parametrize("name", NAMES)
def test_nested_inputs_and_strides(name: str) -> None:
    x = normal(8, 6, 4)
    tokens = torch.arange(6)
    given: list[Any] = [
        {"a": x, "n": 3},
        (x, tokens, "mean"),
        [x.transpose(0, 2), normal(8, 1).expand(8, 5), x[:, ::2]],
        None,
    ]
    made = vary(name, list(given), 1)
    assert made[0]["a"] is made[1][0]  # one tensor given twice stays one
    assert not torch.equal(made[0]["a"], x)
    assert torch.equal(made[1][1], tokens) and made[1][2] == "mean" and made[0]["n"] == 3 and made[3] is None
    assert [t.stride() for t in made[2]] == [t.stride() for t in given[2]]
    assert not any(torch.equal(one, other) for one, other in zip(made[2], given[2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_exact_changes_keep_what_is_distinct(name: str) -> None:
    x = (torch.randperm(4096, generator=torch.Generator().manual_seed(1)).float() - 2047.5) / 512
    made = varied(name, x, exact=True)
    ratio = torch.log2(made / x)
    assert torch.equal(ratio, ratio.round()) and not torch.equal(made, x)


def leaf(values: torch.Tensor) -> dict[str, object]:
    return {"output": values}


def test_admissible() -> None:
    x = normal(4096)
    own = summarise(leaf(x))
    assert admissible(leaf(x), leaf(x.double()), own) is not None
    assert admissible(leaf(x), leaf(x.double() * (1 + 3e-4)), own) is not None
    assert admissible(leaf(x), leaf(x.double() * (1 + 3e-3)), own) is None
    broken = x.clone()
    broken[7] = torch.inf
    assert admissible(leaf(broken), leaf(x.double()), own) is None
    assert admissible(leaf(broken), leaf(broken.double()), summarise(leaf(broken))) is not None
    flat = torch.ones(4096)
    assert admissible(leaf(flat), leaf(flat.double()), own) is None
    assert admissible(leaf(flat), leaf(flat.double()), summarise(leaf(flat))) is not None
    places = torch.arange(9)
    assert admissible(leaf(places), leaf(places), {}) is not None
    assert admissible(leaf(places), leaf(places.flip(0)), {}) is None


@pytest.mark.parametrize("error", [0.0, 1e-7, 4e-5, 3e-4, 6e-4])
@pytest.mark.parametrize("changed", [None, {"float32": 2e-4}])
def test_the_tolerances_on_the_way_are_those_of_the_comparison(error: float, changed: dict[str, float] | None) -> None:
    x = normal(4096)
    precise = x.double() * (1 + error)
    found = admissible(leaf(x), leaf(precise), summarise(leaf(x)), changed)
    assert found == {"output": compare.tolerance_for(x, precise, "output", compare.Scale(precise), changed)}
    assert found["output"].widened_by_eager is (error > (1e-4 if changed is None else 2e-4))
    masked = torch.where(uniform(4096) < 0.1, torch.inf, x)  # eager overflows, the precise reference does not
    found = admissible(leaf(masked), leaf(precise), summarise(leaf(masked)), changed)
    assert found == {"output": compare.plain_tolerance(torch.float32, changed)}


def reference(folder: Path, forward: str, inputs: str) -> Reference:
    path = folder / "1_written.py"
    path.write_text(
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        f"        {forward}\n\n\ndef get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 1)


def test_a_variation_that_eager_does_not_survive_is_given_up(tmp_path: Path) -> None:
    variator = Variator(reference(tmp_path, "return (x * 100.0).square()", "torch.rand(64).half() + 1.2"))
    drawn = variator.draw("outliers", 4)
    assert drawn.name == OWN  # even the mildest one is beyond float16
    values = drawn.native["output"]
    assert isinstance(values, torch.Tensor) and bool(torch.isfinite(values).all())


def test_an_output_that_dies_is_no_trial(tmp_path: Path) -> None:
    """Wherever a value leaves the narrow range, the output is zero."""
    found = reference(tmp_path, "return torch.where(x.std() < 1.05, x, 0.0 * x)", "torch.randn(256, 8)")
    names = {Variator(found).draw("shifted", seed).name for seed in range(12)}
    assert OWN in names and names <= {OWN, "shifted", "shifted (milder)"}


def test_a_forward_that_refuses_is_no_trial(tmp_path: Path) -> None:
    found = reference(tmp_path, "assert x.abs().max() < 20\n        return x + 1.0", "torch.randn(64)")
    drawn = Variator(found).draw("outliers", 4)
    assert drawn.name in (OWN, "outliers (milder)")
    assert torch.equal(Variator(found).draw("outliers", 4).inputs[0], drawn.inputs[0])


def small(problem: Problem) -> Problem:
    sizes = problem.cpu_sizes or {}
    return problem.model_copy(update={"cpu_sizes": {k: min(v, SMALL.get(k, v)) for k, v in sizes.items()}})


def samples() -> list[object]:
    """An elementwise one, a sum, a narrow domain, attention, a loss, tokens; all of them are tried by the corpus."""
    taken = {2, 11, 15, 24, 34, 37}
    return [pytest.param(p, id=str(p.number)) for p in find_problems(PROBLEMS, 1) if p.number in taken]


@pytest.mark.parametrize("problem", samples())
def test_the_shipped_problems_take_every_variation(problem: Problem) -> None:
    """But for the embedding, whose inputs are tokens: there the variation changes nothing."""
    found = Reference(small(problem), SizeSet.CPU, torch.device("cpu"), 1)
    variator = Variator(found)
    assert variator.draw(OWN, 1).name == OWN
    for name in NAMES:
        drawn = variator.draw(name, 2)
        assert drawn.name in (name, f"{name} (milder)"), f"{problem.name}: {drawn.name}"
        assert admissible(drawn.native, drawn.precise, summarise(drawn.native)) is not None


def plainly(x: torch.Tensor) -> domains.Domain | None:
    """What `inspect` says, element by element; None where it is fixed."""
    values = x.double().flatten().tolist()
    finite = [value for value in values if math.isfinite(value)]
    whole = all(value == round(value) for value in finite)
    counts = {value: finite.count(value) for value in set(finite)}
    codes = len(counts) <= domains.CODES and 4 * len(counts) <= len(finite)
    if len(values) < 2 or whole or len(counts) < 2 or codes:
        return None
    rows = x.reshape(-1, x.shape[-1]).double().tolist()
    steps = [[after - before for before, after in pairwise(row)] for row in rows]
    return domains.Domain(
        False,
        torch.tensor(finite, dtype=torch.float64),
        lowest=min(finite),
        highest=max(finite),
        zeros=counts.get(0.0, 0) > domains.MANY_ZEROS * len(finite),
        zero_share=counts.get(0.0, 0) / len(finite),
        infinite=len(finite) < len(values),
        symmetric=x.dim() > 1 and x.shape[-1] == x.shape[-2] and x.tolist() == x.mT.tolist(),
        ordered=x.shape[-1] >= 8 and (all(s >= 0 for r in steps for s in r) or all(s <= 0 for r in steps for s in r)),
    )


TENSORS = {
    "normal": normal(12, 16),
    "square": normal(16, 16),
    "symmetric": normal(16, 16) + normal(16, 16).T,
    "symmetric in its first row": torch.where(torch.arange(16) == 0, normal(16, 16)[0][:, None], normal(16, 16)),
    "triangular": normal(3, 16, 16).tril(),
    "few zeros": torch.nn.functional.dropout(normal(64, 64), 0.002),
    "nan": torch.where(uniform(12, 16) < 0.1, torch.nan, normal(12, 16)),
    "infinite": torch.where(uniform(12, 16) < 0.1, -torch.inf, normal(12, 16)),
    "nan alone": torch.full((12, 16), torch.nan),
    "one number": torch.where(torch.arange(32) == 5, 0.5, torch.nan),
    "whole beside nan": torch.where(uniform(12, 16) < 0.1, torch.nan, normal(12, 16).mul(9).round()),
    "whole but for one": torch.arange(64.0).index_fill(0, torch.tensor([40]), 0.5),
    "rising": normal(5, 32).sort(-1).values,
    "falling": normal(32).sort(descending=True).values,
    "transposed": normal(16, 12).T,
    "sliced": normal(16, 24)[:, ::2],
    "codes": (uniform(32, 32) * 4).floor() + 0.25,
    "codes beside infinity": torch.where(uniform(32, 32) < 0.1, torch.inf, (uniform(32, 32) * 4).floor() + 0.25),
    "too many codes": (uniform(32, 32) * 40).floor() + 0.25,
    "constant": torch.full((9,), 0.5),
    "one": torch.randn(1),
    "empty": torch.empty(0, 4),
}


@pytest.mark.parametrize("chunk", [40, domains.CHUNK])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", TENSORS)
def test_a_domain_is_what_every_element_says(
    name: str, dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "CHUNK", chunk)
    x = TENSORS[name].to(dtype)
    found, wanted = domains.inspect(x), plainly(x) if x.numel() else None
    assert domains.all_finite(x) is all(math.isfinite(value) for value in x.flatten().tolist())
    if wanted is None:
        assert found.fixed
        return
    kept = ("fixed", "lowest", "highest", "zeros", "zero_share", "infinite", "symmetric", "ordered")
    assert {field: getattr(found, field) for field in kept} == {field: getattr(wanted, field) for field in kept}
    assert torch.equal(found.sample.sort().values, wanted.sample.sort().values)


@pytest.mark.parametrize("share", [0.0, 0.0002, 0.004, 0.009, 0.011, 0.3])
def test_zeros_are_counted_where_they_may_be_structure(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one block: the sample's places are drawn, so it does not matter where they lie."""
    monkeypatch.setattr(domains, "CHUNK", 1000)
    x = normal(512, 1024)
    count = int(share * x.numel())
    x.view(-1)[77 : 77 + count] = 0.0
    found = domains.inspect(x)
    assert found.zeros is (share > domains.MANY_ZEROS)
    if share < domains.MANY_ZEROS / 20:
        assert found.zero_share < domains.MANY_ZEROS / 10
    else:
        assert found.zero_share == count / x.numel()


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.int32, torch.bool, torch.complex64])
def test_whether_all_is_finite_holds_for_any_dtype(dtype: torch.dtype) -> None:
    assert domains.all_finite(torch.ones(5).to(dtype)) and domains.all_finite(torch.empty(0).to(dtype))
    if not dtype.is_floating_point and not dtype.is_complex:
        return
    for bad in (torch.nan, torch.inf, -torch.inf):
        assert not domains.all_finite(torch.tensor([1.0, bad, 2.0]).to(dtype))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["normal", "infinite", "triangular"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_laws_are_their_formulas(name: str, dtype: torch.dtype, seed: int) -> None:
    """One expression each, over the whole tensor, with the same draws."""
    x = TENSORS[name].to(dtype)
    domain = domains.inspect(x)
    wide = x.double() if dtype is torch.float64 else x.float()
    gen = torch.Generator().manual_seed(seed)
    first = float(torch.rand((), generator=gen))
    second = float(torch.rand((), generator=gen))
    a = 1.5 + 1.5 * second if first < 0.5 else 0.5 + (0.7 - 0.5) * second
    new = a * wide
    if not domain.zeros:
        b = (0.5 + 2.5 * float(torch.rand((), generator=gen))) * domain.deviation
        new = new + b * (1.0 if float(torch.rand((), generator=gen)) < 0.5 else -1.0)
    assert torch.equal(varied("shifted", x, seed), torch.where(torch.isfinite(wide), new, wide).to(dtype))

    centre = 0.0 if domain.zeros else domain.mean
    spread = domain.deviation if centre else domain.rms

    def raw(values: torch.Tensor) -> torch.Tensor:
        c = (values - centre) / spread
        return c * c.abs().pow(1.0)

    new = centre + spread / float(raw(domain.sample).square().mean().sqrt()) * raw(wide)
    assert torch.equal(varied("heavy-tailed", x, seed), torch.where(torch.isfinite(wide), new, wide).to(dtype))

    for u in (wide.sigmoid(), wide.sin(), -wide.sigmoid(), wide.sigmoid() * (wide > 0.3)):
        if domains.inspect(u).bounded and name == "normal":
            made, top = varied("heavy-tailed", u, seed), float(u.abs().max())
            assert torch.equal(made, torch.sign(u) * (u.abs() / top).pow(3.0) * top)
