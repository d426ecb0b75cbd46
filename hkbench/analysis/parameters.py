"""Parameters: values that hide no missing term, and which of a candidate's belong to which of the reference's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from hkbench.protocol.memory import first_names

SPREAD = 0.25  #: relative change of each element
NUDGE = 0.1  #: added noise, as a share of the parameter's rms
FROM_ZERO = 0.3  #: standard deviation of what replaces zeros: visible beside outputs of unit size
BIAS = 0.2  #: added to biases, however small: missing ones must stand out from half-precision rounding
TINY = 1e-6  #: a parameter with an rms below this is a zero
RUNNING = ("running_mean", "running_var")


def randomised(model: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Return a `state_dict` in which a missing gain, bias or statistic shows. Deterministic in `seed`.

    Floating parameters: p (1 + 0.25 u) + 0.1 rms(p) n, u uniform in -1..1, n normal; of one sign (gains, variances,
    decays): the product alone, so that the sign stays. Zeros get values of a scale of their own. Integers, complex
    numbers and buffers stay, but for running means and variances. Tied entries share their new storage as they did.
    """
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    state = model.state_dict()
    views: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    for value in state.values():
        views[_storage(value)].add(_view(value))
    made: dict[tuple[object, ...], torch.Tensor] = {}
    generators: dict[torch.device, torch.Generator] = {}
    for name, value in state.items():
        storage = _storage(value)
        key = (storage, *_view(value))
        if key in made and value.numel():
            continue
        if value.device not in generators:
            generators[value.device] = torch.Generator(value.device).manual_seed(seed)
        made[key] = value.detach().clone()
        if not value.is_floating_point() or value.element_size() < 2 or not value.numel() or len(views[storage]) > 1:
            continue  # different views of one storage cannot be drawn apart
        if name in parameters:
            made[key] = _parameter(name, value.detach(), generators[value.device])
        elif _leaf(name) in RUNNING:
            made[key] = _statistic(name, state, generators[value.device])
    return {name: made[(_storage(value), *_view(value))] for name, value in state.items()}


def _storage(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


def _view(value: torch.Tensor) -> tuple[object, ...]:
    return value.storage_offset(), tuple(value.shape), tuple(value.stride())


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _parameter(name: str, value: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
    p = value.to(torch.float64 if value.dtype is torch.float64 else torch.float32)

    def normal() -> torch.Tensor:
        return torch.randn(p.shape, generator=gen, device=p.device, dtype=p.dtype)

    rms = float(p.square().mean().sqrt())
    if not math.isfinite(rms):
        return value.clone()  # masks kept as parameters
    if rms < TINY:
        # A matrix sums over its inputs: its elements shrink with their number, the output keeps its scale.
        inputs = math.prod(p.shape[1:]) if p.dim() > 1 else 1
        return (FROM_ZERO / math.sqrt(inputs) * normal()).to(value.dtype)
    uniform = 2.0 * torch.rand(p.shape, generator=gen, device=p.device, dtype=p.dtype) - 1.0
    scaled = p * (1.0 + SPREAD * uniform)
    if bool((p > 0).all()) or bool((p < 0).all()):
        return scaled.to(value.dtype)
    noise = max(NUDGE * rms, BIAS) if "bias" in _leaf(name) else NUDGE * rms
    return (scaled + noise * normal()).to(value.dtype)


def _statistic(name: str, state: Mapping[str, torch.Tensor], gen: torch.Generator) -> torch.Tensor:
    value = state[name]
    noise = torch.randn(value.shape, generator=gen, device=value.device)
    if _leaf(name) == "running_var":
        return (value.float() * torch.exp(FROM_ZERO * noise)).to(value.dtype)
    variance = state.get(f"{name.removesuffix('running_mean')}running_var")
    spread = variance.float().sqrt() if variance is not None else 1.0
    return (value.float() + FROM_ZERO * spread * noise).to(value.dtype)


@dataclass(frozen=True)
class Form:
    """One entry of a `state_dict`."""

    shape: tuple[int, ...]
    dtype: str  #: without "torch."
    is_parameter: bool
    same: str | None = None  #: another name, before this one, of the very same tensor


@dataclass(frozen=True)
class Fit:
    """Which entry of the reference each of the candidate's takes its values from."""

    mapping: dict[str, str]  #: candidate's name -> reference's name
    missing: tuple[str, ...] = ()  #: the reference's, without a counterpart; buffers only if they are statistics
    unexpected: tuple[str, ...] = ()  #: the candidate's parameters without a counterpart
    problem: str | None = None  #: one sentence, where the parameters do not fit
    also: dict[str, str] = field(
        default_factory=dict
    )  #: candidate's further names of a tensor -> its name in `mapping`


def forms(model: nn.Module) -> dict[str, Form]:
    """Return the entries of a model's `state_dict`, in its order."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    state = model.state_dict()
    first = first_names(state)
    return {
        name: Form(
            tuple(value.shape),
            str(value.dtype).removeprefix("torch."),
            name in parameters,
            first[name] if first[name] != name else None,
        )
        for name, value in state.items()
    }


def fit(reference: Mapping[str, Form], candidate: Mapping[str, Form]) -> Fit:
    """Pair what has the same name and shape, then what alone has a last name and shape, then the rest in order.

    A dtype may differ among floating ones: loading casts. The candidate may have further buffers, and lack those of the
    reference's that are no running statistics. Several names of one tensor are one parameter, on either side: one of
    them in `mapping` is enough, and the candidate's others get its values `also`.
    """
    wanted = {name: form for name, form in reference.items() if form.is_parameter or _leaf(name) in RUNNING}
    mapping = {name: name for name, form in reference.items() if name in candidate and _alike(form, candidate[name])}
    _pair_by_last_name(wanted, candidate, mapping)
    wanted, single = _one_name_each(wanted, reference, mapping.values()), _one_name_each(candidate, candidate, mapping)
    for parameters in (True, False):
        _pair_in_order(wanted, single, mapping, parameters)
    held, taken = _first(candidate, mapping), _first(reference, mapping.values())
    missing = tuple(name for name in wanted if _of(reference, name) not in taken)
    unexpected = tuple(name for name, form in single.items() if form.is_parameter and _of(candidate, name) not in held)
    also = {
        name: held[_of(candidate, name)] for name in candidate if name not in mapping and _of(candidate, name) in held
    }
    return Fit(mapping, missing, unexpected, _problem(reference, candidate, missing, unexpected), also)


def _of(forms: Mapping[str, Form], name: str) -> str:
    """Return the first name of an entry's tensor."""
    return forms[name].same or name


def _one_name_each(entries: Mapping[str, Form], forms: Mapping[str, Form], paired: Iterable[str]) -> dict[str, Form]:
    """Return the entries that are paired, and one name of each tensor none of whose names is; statistics by theirs."""
    known = set(paired)
    seen = set(_first(forms, known))
    kept = {name for name in entries if name in known}
    for name in sorted(entries, key=lambda name: _leaf(name) not in RUNNING):
        if name not in known and _of(forms, name) not in seen:
            seen.add(_of(forms, name))
            kept.add(name)
    return {name: form for name, form in entries.items() if name in kept}


def _first(forms: Mapping[str, Form], names: Iterable[str]) -> dict[str, str]:
    """Return, by the first name of a tensor, one of `names` that it has."""
    return {_of(forms, name): name for name in names}


def _alike(one: Form, other: Form) -> bool:
    return one.shape == other.shape and _floating(one) == _floating(other)


def _floating(form: Form) -> bool:
    return "float" in form.dtype


def _left(
    wanted: Mapping[str, Form], candidate: Mapping[str, Form], mapping: Mapping[str, str]
) -> tuple[dict[str, Form], dict[str, Form]]:
    taken = set(mapping.values())
    return (
        {name: form for name, form in wanted.items() if name not in taken},
        {name: form for name, form in candidate.items() if name not in mapping},
    )


def _pair_by_last_name(wanted: Mapping[str, Form], candidate: Mapping[str, Form], mapping: dict[str, str]) -> None:
    """Pair `norm.bias` with `bias`, where no other entry could be meant: order misleads if two swap places."""
    lacking, free = _left(wanted, candidate, mapping)
    places: dict[tuple[str, tuple[int, ...]], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, entries in enumerate((lacking, free)):
        for name, form in entries.items():
            places[_leaf(name), form.shape][side].append(name)
    for ours, theirs in places.values():
        if len(ours) == len(theirs) == 1 and _alike(lacking[ours[0]], free[theirs[0]]):
            mapping[theirs[0]] = ours[0]


def _pair_in_order(
    wanted: Mapping[str, Form], candidate: Mapping[str, Form], mapping: dict[str, str], parameters: bool
) -> None:
    lacking, free = (
        [(name, form) for name, form in side.items() if form.is_parameter is parameters]
        for side in _left(wanted, candidate, mapping)
    )
    if not parameters:
        free = [(name, form) for name, form in free if _leaf(name) in RUNNING]
    if len(lacking) == len(free) and all(_alike(ours[1], its[1]) for ours, its in zip(lacking, free, strict=True)):
        mapping.update((its[0], ours[0]) for ours, its in zip(lacking, free, strict=True))


def _problem(
    reference: Mapping[str, Form], candidate: Mapping[str, Form], missing: tuple[str, ...], unexpected: tuple[str, ...]
) -> str | None:
    parts = [
        f"{name} has shape {list(candidate[name].shape)}, Model's has {list(reference[name].shape)}"
        if name in candidate and candidate[name].shape != reference[name].shape
        else f"it lacks {name} of shape {list(reference[name].shape)}"
        for name in missing
    ]
    parts += [
        f"it has a parameter {name} of shape {list(candidate[name].shape)} that Model does not have"
        for name in unexpected
        if name not in reference
    ]
    parts += [f"{name} does not fit" for name in unexpected if name in reference and name not in missing]
    return f"ModelNew's parameters do not fit Model's: {'; '.join(parts)}" if parts else None
