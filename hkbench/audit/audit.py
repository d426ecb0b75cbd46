"""Which null controls pass a problem's checks: KernelBench's own, and ours."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import torch

from hkbench.analysis import compare
from hkbench.analysis.input_distributions import OWN, Variator, trial_plan
from hkbench.analysis.parameters import randomised
from hkbench.analysis.reference import Leaves, Reference
from hkbench.audit.controls import KEPT, Control, Trial, null_controls
from hkbench.audit.formulas import formula_controls, precision_controls
from hkbench.audit.records import CheckAudit, ControlClass, Passed, ProblemAudit
from hkbench.audit.sampled import input_parts, statistic_parts
from hkbench.audit.shrink import MAX_ELEMENTS, shrunk, size_of
from hkbench.errors import ProblemError
from hkbench.problems.sizes import sizes_in_force
from hkbench.records import Problem, SizeSet, Tolerance

BYTES_AN_ELEMENT = 64  #: of an audit at its height: native and precise outputs, changed inputs, intermediates
#: Two results are the same in exact arithmetic when they differ by less than rounding, relative to the largest element.
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
_DOES_NOT_FIT = (ProblemError, RuntimeError, TypeError, ValueError, LookupError, NotImplementedError)


def audit_problem(problem: Problem, sizes: SizeSet, device: torch.device, trials: int) -> ProblemAudit:
    """Put every control through both checks. The same problem gives the same audit: seeds come from its hash.

    Where smaller sizes are asked for, a problem without them is scaled down (`shrink.py`).

    Raises:
        ProblemError: the problem's code fails, or it is too large for this machine.
    """
    started = time.perf_counter()
    small, scaled = problem, dict[str, str]()
    if sizes is not SizeSet.FULL and sizes_in_force(sizes, problem) is SizeSet.FULL:
        small, scaled = shrunk(problem)
    elif device.type == "cpu" and sizes is SizeSet.FULL:
        _check_memory(problem, sizes)
    reference = Reference(small, sizes, device, seed=0)
    own = {name: value.clone() for name, value in reference.model.state_dict().items()}
    kernelbench = _check(reference, "kernelbench", _own_trials(reference, trials), _kernelbench_passes)
    reference.load(own)
    hkbench = _check(reference, "hkbench", _hkbench_trials(reference, trials), HkbenchCheck())
    return ProblemAudit(
        problem=problem.name,
        number=problem.number,
        level=problem.level,
        sha256=problem.sha256,
        sizes="scaled" if scaled else sizes.value,
        scaled=scaled,
        notes=() if reference.precision != "native" else ("no reference in higher precision",),
        kernelbench=kernelbench,
        hkbench=hkbench,
        seconds=round(time.perf_counter() - started, 2),
    )


def _check_memory(problem: Problem, sizes: SizeSet) -> None:
    needed = size_of(problem, sizes).elements * BYTES_AN_ELEMENT
    free = psutil.virtual_memory().available
    if needed > free // 2:
        raise ProblemError(
            f"{problem.path}: an audit at these sizes takes about {needed >> 30} GiB, {free >> 30} GiB are free; "
            f"use --sizes cpu (fewer than {MAX_ELEMENTS:,} elements)"
        )


def _seeds(reference: Reference, purpose: str) -> Iterator[int]:
    source = random.Random(f"{reference.problem.sha256} {purpose}")
    while True:
        yield source.getrandbits(31)


def _trial(reference: Reference, inputs: list[Any], repeat: int) -> Trial:
    torch.manual_seed(repeat)
    native = reference.native(inputs)
    torch.manual_seed(repeat)
    return Trial(inputs, native, reference.precise(inputs, native))


def _own_trials(reference: Reference, trials: int) -> Iterator[Trial]:
    """Yield the problem's own inputs and parameters."""
    seeds = _seeds(reference, "own")
    for _ in range(trials):
        yield _trial(reference, reference.inputs(next(seeds)), 0)


def _hkbench_trials(reference: Reference, trials: int) -> Iterator[Trial]:
    """Yield trials of several input distributions, and of parameters other than the constructor's."""
    seeds = _seeds(reference, "varied")
    variator = Variator(reference)
    own = {name: value.clone() for name, value in reference.model.state_dict().items()}
    for plan in trial_plan(trials, any(True for _ in reference.model.parameters())):
        state = own if plan.parameters == OWN else randomised(reference.model, next(seeds))
        reference.load(state)
        drawn = variator.draw(plan.inputs, next(seeds))
        yield Trial(drawn.inputs, drawn.native, drawn.precise)


Passes = Callable[[Trial, Leaves], bool]


def _check(reference: Reference, name: str, trials: Iterator[Trial], passes: Passes) -> CheckAudit:
    """Return all trials of one check; a control that has failed is not tried again."""
    seeds = _seeds(reference, "earlier")
    earlier = [reference.native(reference.inputs(next(seeds))) for _ in range(KEPT)]
    left: list[Control] | None = None
    tried: list[str] = []
    count = 0
    for count, trial in enumerate(trials, 1):  # noqa: B007 - the number of trials is a result
        first = left is None
        if left is None:
            left = [
                *null_controls(reference, trial, earlier),
                *input_parts(trial.inputs),
                *formula_controls(),
                *statistic_parts(),
                *precision_controls(reference, trial),
            ]
        survivors = []
        for control in left:
            answer = _answer(reference, control, trial)
            if answer is None or not _same_form(answer, trial.native):
                continue
            if first:
                tried.append(control.name)
            if passes(trial, answer):
                survivors.append(control)
        left = survivors
        last = trial
    passed = [control for control in left or [] if control.exact or not _is_equivalent(reference, control, last)]
    return CheckAudit(
        check=name,
        trials=count,
        tried=tuple(tried),
        passed=tuple(Passed(control=control.name, kind=control.kind) for control in passed),
    )


def _answer(reference: Reference, control: Control, trial: Trial, precise: bool = False) -> Leaves | None:
    """Return the control's answer; `None` where it does not fit the problem (its code fails on such inputs)."""

    def run(inputs: list[Any]) -> Leaves:
        return reference.precise(inputs, trial.native) if precise else reference.native(inputs)

    before = {name: value.clone() for name, value in reference.model.state_dict().items()} if control.state else {}
    try:
        if before:
            changed = {name: torch.full_like(before[name], value) for name, value in control.state}
            reference.load(before | changed)
        return control.make(trial, run)
    except torch.OutOfMemoryError:
        raise
    except _DOES_NOT_FIT:
        return None
    finally:
        if before:
            reference.load(before)


def _same_form(answer: Leaves, native: Leaves) -> bool:
    if answer.keys() != native.keys():
        return False
    for path, leaf in native.items():
        made = answer[path]
        if not isinstance(leaf, torch.Tensor):
            if made != leaf:
                return False
        elif not isinstance(made, torch.Tensor) or made.shape != leaf.shape or made.dtype != leaf.dtype:
            return False
    return True


def _is_equivalent(reference: Reference, control: Control, trial: Trial) -> bool:
    """Return whether the control gives the reference's result in exact arithmetic: then it does the same work.

    A row-wise operator may take each half of the rows by itself, and a bias before a normalisation has no effect.
    """
    if control.kind is not ControlClass.NULL:
        return False
    before = {name: value.clone() for name, value in reference.model.state_dict().items()}
    wanted = trial.precise
    try:
        if control.state:  # what a parameter happens to be at the start says nothing of its effect
            reference.load(randomised(reference.model, next(_seeds(reference, "equivalence"))))
            wanted = reference.precise(trial.inputs, trial.native)
        answer = _answer(reference, control, trial, precise=True)
    finally:
        reference.load(before)
    if answer is None:
        return False
    return all(_equal(leaf, answer[path]) if isinstance(leaf, torch.Tensor) else True for path, leaf in wanted.items())


def _equal(left: torch.Tensor, right: object) -> bool:
    assert isinstance(right, torch.Tensor)
    if left.dtype not in ROUNDING:
        return torch.equal(left, right)
    scale = float(left[torch.isfinite(left)].abs().max()) if bool(torch.isfinite(left).any()) else 0.0
    return torch.allclose(left, right, rtol=0.0, atol=ROUNDING[left.dtype] * scale, equal_nan=True)


def _tensors(trial: Trial, answer: Leaves) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]]:
    for path, native in trial.native.items():
        precise, made = trial.precise[path], answer[path]
        if isinstance(native, torch.Tensor):
            assert isinstance(precise, torch.Tensor) and isinstance(made, torch.Tensor)
            yield path, native, precise, made


def _kernelbench_passes(trial: Trial, answer: Leaves) -> bool:
    """Compare with eager PyTorch, by an absolute and a relative tolerance that are the same number."""
    for _, native, _, made in _tensors(trial, answer):
        if not compare.all_close(native, made, compare.kernelbench_tolerance_for(native.dtype)):
            return False
    return True


class HkbenchCheck:
    """The comparison that candidates are judged by; the controls of one trial share its tolerances."""

    def __init__(self) -> None:
        self._trial: Trial | None = None
        self._tolerances: dict[str, Tolerance | None] = {}

    def __call__(self, trial: Trial, answer: Leaves) -> bool:
        if trial is not self._trial:
            self._trial, self._tolerances = trial, {}
        for path, native, precise, made in _tensors(trial, answer):
            known = self._tolerances.get(path)
            result, self._tolerances[path] = compare.compare_output(path, native, precise, made, known)
            if result.mismatch is not None:
                return False
        return True
