"""Other formulas for the operators that a reference calls: cheaper wrong ones, and close ones.

The replacement happens at PyTorch's dispatcher, so that `nn.Softmax`, `F.softmax` and `x.softmax` are all met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hkbench.analysis.reference import Leaves, Reference
from hkbench.audit.controls import Control, Run, Trial
from hkbench.audit.records import ControlClass

aten = torch.ops.aten
Formula = Callable[..., Any]  #: called with the operator's arguments; NotImplemented leaves the operator as it is
TINY = 1e-3  #: a constant up to this that is added is there against a division by zero


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype is torch.float64 else x.float()


def _softmax(x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    powers = _wide(x).exp()
    return (powers / powers.sum(dim, keepdim=True)).to(x.dtype)


def _log_softmax(x: torch.Tensor, dim: int, *_: Any) -> torch.Tensor:
    wide = _wide(x)
    return (wide - wide.exp().sum(dim, keepdim=True).log()).to(x.dtype)


def _other_gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate == "none":
        return (0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))).to(x.dtype)
    return (0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))).to(x.dtype)


Statistics = Callable[[torch.Tensor, list[int]], tuple[Any, Any]]


def _scaled(x: torch.Tensor, weight: Any, bias: Any) -> torch.Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _layer_norm(statistics: Statistics) -> Formula:
    def formula(x: torch.Tensor, shape: list[int], weight: Any, bias: Any, eps: float) -> Any:
        wide = _wide(x)
        mean, variance = statistics(wide, list(range(x.dim() - len(shape), x.dim())))
        normal = (wide - mean) * (torch.as_tensor(variance, device=x.device) + eps).rsqrt()
        return _scaled(normal, weight, bias).to(x.dtype), wide.mean(), wide.var()

    return formula


def _group_norm(statistics: Statistics) -> Formula:
    def formula(x: torch.Tensor, weight: Any, bias: Any, n: int, c: int, _hw: int, groups: int, eps: float) -> Any:
        wide = _wide(x).reshape(n, groups, -1)
        mean, variance = statistics(wide, [2])
        normal = ((wide - mean) * (torch.as_tensor(variance, device=x.device) + eps).rsqrt()).reshape(x.shape)
        sizes = [1, c] + [1] * (x.dim() - 2)
        scale, shift = (None if p is None else p.reshape(sizes) for p in (weight, bias))
        return _scaled(normal, scale, shift).to(x.dtype), wide.mean(), wide.var()

    return formula


def _batch_norm(statistics: Statistics) -> Formula:
    def formula(
        x: torch.Tensor, weight: Any, bias: Any, _mean: Any, _var: Any, training: bool, _momentum: float, eps: float
    ) -> Any:
        if not training:
            return NotImplemented
        wide = _wide(x)
        mean, variance = statistics(wide, [dim for dim in range(x.dim()) if dim != 1])
        normal = (wide - mean) * (torch.as_tensor(variance, device=x.device) + eps).rsqrt()
        sizes = [1, -1] + [1] * (x.dim() - 2)
        scale, shift = (None if p is None else p.reshape(sizes) for p in (weight, bias))
        return _scaled(normal, scale, shift).to(x.dtype), wide.mean(), wide.var()

    return formula


def norms(statistics: Statistics) -> dict[Any, Formula]:
    return {
        aten.native_layer_norm.default: _layer_norm(statistics),
        aten.native_group_norm.default: _group_norm(statistics),
        aten.native_batch_norm.default: _batch_norm(statistics),
    }


def _raw_variance(x: torch.Tensor, dim: Any = None, *, keepdim: bool = False, **_: Any) -> torch.Tensor:
    """Return E[x^2], without the square of the mean."""
    return _wide(x).square().mean(dim, keepdim=keepdim).to(x.dtype)


def _other_correction(x: torch.Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> torch.Tensor:
    return torch.var(x, dim, correction=0 if correction in (None, 1) else 1, keepdim=keepdim)


def _mse_by_moments(x: torch.Tensor, y: torch.Tensor, reduction: int = 1) -> Any:
    """Return what the mean is when the two are independent: E[x^2] - 2 E[x] E[y] + E[y^2]."""
    if reduction != 1:
        return NotImplemented
    a, b = x.double(), y.double()
    return (a.square().mean() - 2 * a.mean() * b.mean() + b.square().mean()).to(x.dtype)


def _huber_by_moments(x: torch.Tensor, y: torch.Tensor, reduction: int = 1, _width: float = 1.0) -> Any:
    """Return the quadratic part everywhere, by moments."""
    mse = _mse_by_moments(x, y, reduction)
    return mse if mse is NotImplemented else 0.5 * mse


def _without_eps(x: Any, other: Any, *_: Any, **__: Any) -> Any:
    number = other if isinstance(other, float) else None
    return x.clone() if number is not None and 0.0 < abs(number) <= TINY else NotImplemented


def _norm_without_eps(op: Any, at: int) -> Formula:
    def formula(*args: Any) -> Any:
        return op(*args[:at], 0.0, *args[at + 1 :])

    return formula


def _unmasked_attention(op: Any) -> Formula:
    def formula(q: Any, k: Any, v: Any, dropout: float = 0.0, is_causal: bool = False, **more: Any) -> Any:
        return op(q, k, v, dropout, False, **more) if is_causal else NotImplemented

    return formula


def _same(x: Any, *_: Any, **__: Any) -> Any:
    return x.clone()


_CPU_ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default
_GPU_ATTENTION = aten._scaled_dot_product_flash_attention.default

#: Wrong in exact arithmetic: when one of them passes, a part of the work is not seen.
WRONG: dict[str, dict[Any, Formula]] = {
    "normalisation without subtracting the mean": norms(lambda x, dims: (0.0, x.square().mean(dims, keepdim=True))),
    "normalisation by mean 0 and variance 1": norms(lambda _x, _dims: (0.0, 1.0)),
    "normalisation by the whole tensor's statistics": norms(lambda x, _dims: (x.mean(), x.var(correction=0))),
    "variance without subtracting the mean": {aten.var.correction: _raw_variance},
    "loss by moments": {
        aten.mse_loss.default: _mse_by_moments,
        aten.smooth_l1_loss.default: _huber_by_moments,
        aten.huber_loss.default: _huber_by_moments,
    },
    "mask left out": {
        aten.masked_fill.Scalar: _same,
        aten.tril.default: _same,
        aten.triu.default: _same,
        _CPU_ATTENTION: _unmasked_attention(_CPU_ATTENTION),
        _GPU_ATTENTION: _unmasked_attention(_GPU_ATTENTION),
    },
}

#: The same in exact arithmetic, or nearly: a pass says how sharp a check is.
CLOSE: dict[str, dict[Any, Formula]] = {
    "softmax without subtracting the maximum": {
        aten._softmax.default: _softmax,
        aten._log_softmax.default: _log_softmax,
    },
    "GELU by the other of erf and tanh": {aten.gelu.default: _other_gelu},
    "GELU by a sigmoid": {aten.gelu.default: lambda x, **_: (x * torch.sigmoid(1.702 * x)).to(x.dtype)},
    "variance over n in place of n - 1": {aten.var.correction: _other_correction},
    "epsilon left out": {
        aten.add.Tensor: _without_eps,
        aten.add.Scalar: _without_eps,
        aten.native_layer_norm.default: _norm_without_eps(aten.native_layer_norm.default, 4),
        aten.native_group_norm.default: _norm_without_eps(aten.native_group_norm.default, 7),
        aten.native_batch_norm.default: _norm_without_eps(aten.native_batch_norm.default, 7),
    },
}


class Replaced(TorchDispatchMode):
    """While it is entered, the operators of the table are computed by its formulas; `met` counts them."""

    def __init__(self, table: dict[Any, Formula]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._table = table
        self.met = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        formula = self._table.get(func)
        made = NotImplemented if formula is None else formula(*args, **(kwargs or {}))
        if made is NotImplemented:
            return func(*args, **(kwargs or {}))
        self.met += 1
        return made


def formula_controls() -> Iterator[Control]:
    for kind, tables in ((ControlClass.NULL, WRONG), (ControlClass.CLOSE, CLOSE)):
        for name, table in tables.items():

            def make(trial: Trial, run: Run, table: dict[Any, Formula] = table) -> Leaves | None:
                with Replaced(table) as mode:
                    answer = run(trial.inputs)
                return answer if mode.met else None

            yield Control(name, kind, make)


def precision_controls(reference: Reference, trial: Trial) -> Iterator[Control]:
    """Round inputs and parameters to half precision, where the problem asks for more; sums stay as they were."""
    dtypes = {leaf.dtype for leaf in trial.native.values() if isinstance(leaf, torch.Tensor)}
    if not dtypes & {torch.float32, torch.float64}:
        return
    for half in (torch.float16, torch.bfloat16):
        name = str(half).removeprefix("torch.")

        def make(trial: Trial, run: Run, half: torch.dtype = half) -> Leaves | None:
            state = {key: value.clone() for key, value in reference.model.state_dict().items()}
            reference.load({key: _rounded(value, half) for key, value in state.items()})
            try:
                return run([_rounded(value, half) for value in trial.inputs])
            finally:
                reference.load(state)

        yield Control(f"inputs and parameters rounded to {name}", ControlClass.PRECISION, make, exact=True)


def _rounded(value: Any, half: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(half).to(value.dtype)
    return value
