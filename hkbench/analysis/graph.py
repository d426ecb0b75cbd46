"""What one forward pass of a reference contains, read off the operators that it calls.

Works on the meta device: shapes are enough. What eager PyTorch gives as one operator counts as one, so
`scaled_dot_product_attention`, which the meta device takes to pieces, is looked at from above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import flop_registry

from hkbench.analysis.dispatch import QuickDispatchMode
from hkbench.analysis.operators import class_of
from hkbench.records import Convolution, GraphFacts, OperatorClass, Product

_ATTENTION = "scaled_dot_product_attention"
_SOFTMAX = frozenset({"_softmax", "_log_softmax", "_safe_softmax"})
#: Of a call whose arguments are not what is expected: the problem runs all the same, its graph is unknown.
_UNREAD = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError)


class GraphTrace(AbstractContextManager["GraphTrace"]):
    """Around one forward pass; `facts` says afterwards what was in it."""

    def __init__(self) -> None:
        self._tally = _Tally()
        self._modes = ExitStack()

    def __enter__(self) -> GraphTrace:
        self._modes.enter_context(_FromAbove(self._tally))
        self._modes.enter_context(_Operators(self._tally))
        return self

    def __exit__(self, *error: object) -> None:
        self._modes.close()

    def facts(self, held: Sequence[torch.Tensor]) -> GraphFacts | None:
        """Return the facts of `held`: inputs, parameters, buffers and outputs. `None` if a call could not be read."""
        return self._tally.facts(sum(tensor.numel() * tensor.element_size() for tensor in held))


class _FromAbove(TorchFunctionMode):
    """Attention before it is taken to pieces."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()
        self._tally = tally

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if getattr(func, "__name__", "") != _ATTENTION:
            return func(*args, **(kwargs or {}))
        self._tally.muted = True
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self._tally.muted = False
        named = dict(zip(("query", "key", "value"), args, strict=False)) | (kwargs or {})
        query, key, value = (named[name] for name in ("query", "key", "value"))
        assert isinstance(query, torch.Tensor) and isinstance(key, torch.Tensor) and isinstance(value, torch.Tensor)
        self._tally.attention(query, key, value)
        return result


class _Operators(QuickDispatchMode):
    """Every other operator."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()
        self._tally = tally

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if not self._tally.muted:
            self._tally.call(func, args, kwargs or {}, result)
        return result


class _Tally:
    """What was called so far."""

    def __init__(self) -> None:
        self.muted = False
        self._unread = False
        self._operators: Counter[str] = Counter()
        self._classes: Counter[OperatorClass] = Counter()
        self._steps = 0
        self._products: Counter[tuple[int, int, int, int]] = Counter()
        self._convolutions: Counter[Convolution] = Counter()
        self._pools: set[tuple[int, ...]] = set()
        self._reductions: set[int] = set()
        self._product_flops: Counter[str] = Counter()  # by dtype
        self._other_flops = 0
        self._scores: tuple[int, int, int, int] | None = None  # a product that may be an attention's first
        self._weights = False  # a softmax came after it

    def attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """Count two products a head: [Sq, D] by [D, Sk], [Sq, Sk] by [Sk, Dv], as torch's sdpa_flop counts them."""
        self._operators[_ATTENTION] += 1
        self._classes[OperatorClass.ATTENTION] += 1
        self._steps += 1
        each = key.shape[-2] * (query.shape[-1] + value.shape[-1])
        self._product_flops[_dtype(query)] += 2 * math.prod(query.shape[:-1]) * each

    def call(self, operator: torch._ops.OpOverload[..., object], args: Any, kwargs: Any, result: Any) -> None:
        name = operator.overloadpacket.__name__
        self._operators[name] += 1
        try:
            self._read(operator, name, args, kwargs, result)
        except _UNREAD:
            self._unread = True

    def _read(
        self, operator: torch._ops.OpOverload[..., object], name: str, args: Any, kwargs: Any, result: Any
    ) -> None:
        given, made = _tensors([*args, *kwargs.values()]), _tensors(result)
        largest_in, out = max((t.numel() for t in given), default=0), max((t.numel() for t in made), default=0)
        found = class_of(operator, largest_in, out)
        if found is None or max(largest_in, out) <= 1:
            return
        self._classes[found] += 1
        self._steps += 1
        match found:
            case OperatorClass.MATMUL:
                self._product(name, given)
            case OperatorClass.CONV:
                self._convolution(operator, args, kwargs, result)
            case OperatorClass.ATTENTION:
                self.attention(*given[:3])
            case OperatorClass.POOL:
                window = _window(name, args, given[0], made[0])
                self._pools.add(window)
                self._other_flops += made[0].numel() * math.prod(window)
            case OperatorClass.REDUCTION:
                self._reductions.add(largest_in // max(1, out))
                self._other_flops += largest_in
            case OperatorClass.NORMALISATION:
                self._reductions.add(_normalised(name, args))
                self._other_flops += largest_in
                self._weights |= name in _SOFTMAX and self._scores is not None
            case OperatorClass.SCAN:
                self._other_flops += largest_in
            case OperatorClass.ELEMENTWISE:
                self._other_flops += out

    def _product(self, name: str, given: list[torch.Tensor]) -> None:
        left, right = given[:2] if name.startswith(("_scaled", "_int")) else given[-2:]
        batch = left.shape[0] if left.dim() == 3 else 1
        m = left.shape[-2] if left.dim() > 1 else 1
        sizes = (batch, m, right.shape[-1] if right.dim() > 1 else 1, left.shape[-1])
        self._products[sizes] += 1
        self._product_flops[_dtype(left)] += 2 * math.prod(sizes)
        if self._weights and self._scores is not None and _attends(self._scores, sizes):
            self._classes[OperatorClass.ATTENTION] += 1
            self._scores, self._weights = None, False
        else:
            self._scores, self._weights = sizes, False

    def _convolution(self, operator: torch._ops.OpOverload[..., object], args: Any, kwargs: Any, result: Any) -> None:
        names = [argument.name for argument in operator._schema.arguments]
        named = dict(zip(names, args, strict=False)) | kwargs
        data, weight = named.get("input", named.get("self")), named["weight"]
        transposed, groups = bool(named.get("transposed", False)), int(named.get("groups", 1))
        kernel = tuple(weight.shape[2:])
        strides, padding, dilation = (
            _each(named.get(key), len(kernel), value) for key, value in (("stride", 1), ("padding", 0), ("dilation", 1))
        )
        made = Convolution(
            kernel=kernel, strides=strides, padding=padding, dilation=dilation, groups=groups, transposed=transposed,
            in_channels=data.shape[1], out_channels=result.shape[1], calls=1,
        )  # fmt: skip
        self._convolutions[made] += 1
        self._product_flops[_dtype(data)] += flop_registry[torch.ops.aten.convolution](
            data, weight, None, None, None, None, transposed, None, groups, out_val=result
        )

    def facts(self, held: int) -> GraphFacts | None:
        if self._unread:
            return None
        flops = sum(self._product_flops.values())
        edges = [edge for one in self._convolutions for edge in one.kernel]
        most = self._product_flops.most_common(1)
        return GraphFacts(
            operators=dict(self._operators.most_common()),
            classes=dict(self._classes.most_common()),
            steps=self._steps,
            products=tuple(
                Product(batch=batch, m=m, n=n, k=k, calls=calls)
                for (batch, m, n, k), calls in self._products.most_common()
            ),
            convolutions=tuple(
                one.model_copy(update={"calls": calls}) for one, calls in self._convolutions.most_common()
            ),
            pools=tuple(sorted(self._pools)),
            reductions=tuple(sorted(self._reductions, reverse=True)),
            kernel_size=max(edges, default=None),
            product_dtype=most[0][0] if most else None,
            product_flops=flops,
            other_flops=self._other_flops,
            bytes=held,
            intensity=(flops + self._other_flops) / held if held else None,
        )


def _attends(scores: tuple[int, int, int, int], sizes: tuple[int, int, int, int]) -> bool:
    """Return whether a product takes the result of the other: [m, k] by [k, n], then [m, n] by [n, k']."""
    return scores[:2] == sizes[:2] and scores[2] == sizes[3]


def _tensors(values: object) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    return [t for value in values for t in _tensors(value)] if isinstance(values, list | tuple) else []


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _each(values: Any, count: int, default: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    if values is None:
        return (default,) * count
    listed = [int(value) for value in values] if isinstance(values, list | tuple) else [int(values)]
    return tuple(listed * count if len(listed) == 1 else listed)


def _window(name: str, args: Any, data: torch.Tensor, made: torch.Tensor) -> tuple[int, ...]:
    """Return a pool's window: its second argument; of an adaptive pool, the input elements for one output."""
    sizes = [int(edge) for edge in args[1]]
    if "adaptive" not in name:
        return tuple(sizes)
    pairs = zip(data.shape[-len(sizes) :], made.shape[-len(sizes) :], strict=True)
    return tuple(math.ceil(before / max(1, after)) for before, after in pairs)


def _normalised(name: str, args: Any) -> int:
    """Return the number of elements that share a mean, a variance or a sum."""
    data: torch.Tensor = args[0]
    if name in _SOFTMAX:
        return int(data.shape[args[1]])
    if name in ("native_layer_norm", "_fused_rms_norm"):
        return math.prod(args[1])
    if name == "native_group_norm":
        return int(data.numel() // (args[4] * args[6]))
    return data.numel() // data.shape[1]
