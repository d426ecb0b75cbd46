"""The reference: the problem's own code, its inputs, and what its outputs ought to be."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from types import MappingProxyType, ModuleType
from typing import Any

import torch

from hkbench.analysis.dispatch import QuickDispatchMode
from hkbench.errors import ProblemError
from hkbench.problems import apply_sizes, constants_in_force
from hkbench.problems.sizes import Constants
from hkbench.protocol.drawing import quick_draws
from hkbench.protocol.memory import mapped, overlap
from hkbench.protocol.wire import leaves
from hkbench.records import Problem, SizeSet

#: Of the device, not of the problem: the caller knows what to say.
_OUT_OF_MEMORY = (torch.OutOfMemoryError, torch.AcceleratorError)

_TRANSPOSED = 6  #: among the arguments of aten.convolution

Leaves = dict[str, object]  #: by path: tensors, and whatever else the reference returns


class ProblemCode:
    """The file of one problem, executed with its sizes in force: its constants and its inputs on one device."""

    def __init__(
        self, problem: Problem, sizes: SizeSet, device: torch.device, shape: Constants = MappingProxyType({})
    ) -> None:
        """Execute the file; `shape` changes constants further than the `sizes` do. Raises ProblemError."""
        self.problem = problem
        self.device = device
        self.constants: Constants = {**constants_in_force(sizes, problem), **shape}  #: that the file's own give way to
        self._namespace = _execute(problem, self.constants)

    @property
    def integers(self) -> dict[str, int]:
        """The whole numbers among the file's constants, as they are in force."""
        return {
            name: value
            for name, value in self._namespace.items()
            if type(value) is int and value > 0 and not name.startswith("_")
        }

    def inputs(self, seed: int) -> list[Any]:
        """Make fresh inputs on the device itself: `get_inputs` runs under the seed and the device's context."""
        self._seed(seed)
        try:
            with torch.device(self.device):
                made = list(self._namespace["get_inputs"]())
        except _OUT_OF_MEMORY:
            raise
        except Exception as error:
            raise ProblemError(f"{self.problem.path}: get_inputs() raised {error!r}") from error
        return [mapped(value, lambda tensor: tensor.to(self.device)) for value in made]

    def _seed(self, seed: int) -> None:
        """Seed the generators of the host and the device; torch.manual_seed takes 2 ms to note those of absent ones."""
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed_all(seed)  # the current device may be another one


class Reference(ProblemCode):
    """The `Model` of one problem on one device."""

    def __init__(
        self,
        problem: Problem,
        sizes: SizeSet,
        device: torch.device,
        seed: int,
        shape: Constants = MappingProxyType({}),
        on_host: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Make the model; `shape` changes constants further than the `sizes` do.

        What is done before it is moved to the device, where it may draw values for long, is done within `on_host`.
        """
        super().__init__(problem, sizes, device, shape)
        torch.manual_seed(seed)
        try:
            with on_host(), quick_draws():
                self.init_inputs = list(self._namespace["get_init_inputs"]())
                torch.manual_seed(seed)  # as right before ModelNew is made, whatever the arguments took of it
                made = self._namespace["Model"](*self.init_inputs)
            self.model = made.to(device)
        except Exception as error:
            raise ProblemError(f"{problem.path}: Model(*get_init_inputs()) raised {error!r}") from error
        self._precise_model: torch.nn.Module | None = None
        self.precision = "native"
        self.shares_memory = False  #: whether `native`'s last outputs lay in its inputs' memory (a view, an identity)

    @property
    def has_parameters(self) -> bool:
        return any(True for _ in self.model.parameters())

    def forget(self) -> None:
        """Drop what holds memory, in a process that goes on without this problem."""
        sys.modules.pop(_module_name(self.problem), None)
        self._namespace.clear()
        self._precise_model = None

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Give the model other parameters; the precise one is made anew from it."""
        self.model.load_state_dict(state)
        self._precise_model = None

    def native(
        self, inputs: list[object], copies: bool = True, around: AbstractContextManager[object] | None = None
    ) -> Leaves:
        """Return the reference's outputs as eager PyTorch gives them. It gets copies: its code may work in place.

        Without `copies`, who calls has to look whether their memory is what it was; their shapes cannot change.
        `around` is entered for `forward` alone.
        """
        try:
            with torch.no_grad():
                given = mapped(inputs, torch.clone if copies else torch.detach)
                with around or nullcontext():
                    made = self.model(*given)
                outputs = dict(leaves(made, "output"))
        except _OUT_OF_MEMORY:
            raise
        except Exception as error:
            raise ProblemError(f"{self.problem.path}: Model.forward raised {error!r}") from error
        own = _tensors(leaf for _, leaf in leaves(given, ""))
        self.shares_memory = any(overlap(out, tensor) for out in _tensors(outputs.values()) for tensor in own)
        return outputs

    def precise(self, inputs: list[object], native: Leaves) -> Leaves:
        """Return the outputs in higher precision: float64, or float32 for half inputs; native where that fails.

        `precision` says which it was. Code that insists on a dtype, or that needs more memory than there is, cannot
        be widened.
        """
        wide = self._wide_dtype(inputs, native)
        try:
            if self._precise_model is None:
                self._precise_model = _cast_model(self.model, wide)
            with torch.no_grad(), _QuickTransposed():
                made = dict(leaves(self._precise_model(*_cast(inputs, wide)), "output"))
        except (RuntimeError, TypeError, ValueError, AssertionError, AttributeError, LookupError):
            self.precision = "native"
            return native
        if made.keys() != native.keys():
            self.precision = "native"
            return native
        self.precision = str(wide).removeprefix("torch.")
        return made

    def _wide_dtype(self, inputs: list[object], native: Leaves) -> torch.dtype:
        tensors = [leaf for _, leaf in leaves(inputs, "")] + list(native.values())
        tensors += [*self.model.state_dict().values()]
        dtypes = {t.dtype for t in tensors if isinstance(t, torch.Tensor) and t.is_floating_point()}
        return torch.float64 if dtypes & {torch.float32, torch.float64} else torch.float32


class _QuickTransposed(QuickDispatchMode):
    """Have PyTorch's own kernels make transposed convolutions in float64 on a GPU, where there is the memory.

    cuDNN's take eight times as long in three dimensions (1.1 s and 0.14 s, of 2 GB of outputs on an H200).
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        _types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func is torch.ops.aten.convolution.default and _is_wide(args[0]) and args[_TRANSPOSED]:
            with suppress(torch.OutOfMemoryError), torch.backends.cudnn.flags(enabled=False):
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _is_wide(value: torch.Tensor) -> bool:
    return value.is_cuda and value.dtype is torch.float64


def _tensors(values: Iterable[object]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]


def _execute(problem: Problem, constants: Constants) -> dict[str, Any]:
    module = ModuleType(_module_name(problem))
    module.__file__ = str(problem.path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(problem.source, str(problem.path), "exec"), module.__dict__)  # noqa: S102 - trusted
    except Exception as error:
        raise ProblemError(f"{problem.path}: importing it raised {error!r}") from error
    apply_sizes(module.__dict__, constants)
    return module.__dict__


def _module_name(problem: Problem) -> str:
    return f"problem_{problem.number}"


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """Copy with floating tensors in `dtype`; integers stay: a cast token id would lose digits."""
    return mapped(value, lambda t: t.to(dtype, copy=True) if t.is_floating_point() else t.clone())


def _cast_model(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Return a copy whose floating parameters, buffers and plain tensor attributes are in `dtype`."""
    wide = copy.deepcopy(model).to(dtype)
    for module in wide.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.to(dtype))
    return wide
