"""One candidate on its device: parameters, trials, and the check of every answer."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from hkbench.devices.peaks import flush_bytes
from hkbench.errors import DeviceUnavailable
from hkbench.judge import advice, failures
from hkbench.judge.checker import Checker
from hkbench.judge.clock_check import broken_clock
from hkbench.judge.form import form_mismatch
from hkbench.judge.layout import LayoutCost
from hkbench.judge.link import Samples
from hkbench.judge.parameters import Fit, Form, fit, forms, randomised
from hkbench.judge.quiet import Quiet
from hkbench.judge.reference import Leaves, Reference
from hkbench.judge.shared_memory import SharedMemory
from hkbench.judge.side import BaselineSide, Side, times_of
from hkbench.judge.taking import taken, why_unreadable
from hkbench.judge.variations import OWN, Drawn, Variator, trial_plan
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    Failure,
    FailureKind,
    JudgeSettings,
    SizeSet,
    Stage,
    Trial,
)
from hkbench.runner.profile import FORWARDS as PROFILED_FORWARDS
from hkbench.runner.wire import Message

Weights = Literal["state_dict", "order", "none"]
MOST_SINGLE = 16  #: parameters of which one after the other is taken for stale
#: Calls that follow one another at once: as many as this where inputs and outputs are small, else two.
MOST_SUCCESSIVE = 4
SMALL_BYTES = 1 << 26  #: of inputs and outputs together


def draw_seed() -> int:
    return secrets.randbits(31)


def device_request(device: torch.device, facts: DeviceFacts) -> Message:
    """What a runner is told that is to take its device, for which a GPU's driver needs some 0.3 s.

    On a machine with several NVIDIA GPUs the runner hides the others from itself first: the driver opens all that it
    sees, which takes 0.2 s for each.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    only = None
    if facts.kind is DeviceKind.CUDA and facts.uuid is not None:
        only = {"visible": (visible[facts.index] if visible[0] else str(facts.index)).strip(), "uuid": facts.uuid}
    return {"device": str(device), "threads": torch.get_num_threads(), "only": only}


@dataclass(frozen=True)
class Call:
    """One call of the candidate: its times as the runner says, its answer, a private copy of its outputs."""

    seconds: float
    idle: float
    answer: Message
    outputs: dict[str, torch.Tensor]
    sampled: Samples | None  #: whose code ran, of a sampled call


class Session:
    """From a loaded candidate to its passed trials. Raises `CandidateFailed` where the candidate fails."""

    def __init__(
        self,
        reference: Reference,
        sides: tuple[Side, BaselineSide],
        facts: DeviceFacts,
        settings: JudgeSettings,
        files: tuple[int, int],
        weights_seed: int,
    ) -> None:
        """`sides`: the candidate's and the baseline's, neither on the device yet."""
        self.reference = reference
        self.side, self.baseline = sides
        self.facts = facts
        self.settings = settings
        self.tell: Callable[[str], None] = lambda _: None  #: told of the steps of a stage, for whoever waits
        self._weights_seed = weights_seed
        self.quiet = Quiet(reference.device)  # learns what is usual before the candidate has the device
        self.side.begin("device", **device_request(reference.device, facts))
        self.flush_bytes = flush_bytes(facts)
        self.seeds: list[int] = []
        self.passed: list[Trial] = []
        self.weights: Weights = "none"
        self.seconds = 0.0  #: that the candidate's last call took
        self._fit = Fit(mapping={})
        self._own_state = {name: value.clone() for name, value in reference.model.state_dict().items()}
        self._state = self._own_state  # what is in force
        self._variator = Variator(reference, settings.rtol)
        self._drawn: tuple[int, Drawn] | None = None  # for the first trial
        inputs = reference.inputs(draw_seed())
        outputs = self.run_reference(inputs)
        self._may_share = reference.shares_memory
        self.memory = SharedMemory(reference, (inputs, outputs), files, self.flush_bytes, facts, settings.host_copies)
        self.regions = self.memory.regions
        self.side.before = self.regions.conceal
        # Only the form is needed from here on; the memory may be most of the device's.
        self._form = {
            path: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for path, leaf in outputs.items()
        }
        self._layout = LayoutCost(self.regions.output_places, outputs, reference.device)
        self._baseline_bound = False
        self.checker = Checker(reference, self.run_reference, self._form, settings.rtol)

    @property
    def notes(self) -> list[str]:
        return self.memory.notes

    @property
    def not_checked(self) -> list[str]:
        return self.memory.not_checked

    @property
    def computes(self) -> bool:
        """Whether a forward pass has anything to compute: views of inputs need no kernel."""
        return bool(self.regions.output_places) and not self._may_share

    def fresh_inputs(self, seed: int) -> list[Any]:
        """Of a call that is timed, traced or sampled: the problem's own, with planted extremes."""
        return self._variator.inputs(seed)

    def run_reference(self, inputs: list[Any]) -> Leaves:
        try:
            return self.reference.native(inputs)
        except torch.OutOfMemoryError as error:
            raise DeviceUnavailable(
                f"{self.reference.problem.name} does not fit into the memory of {self.facts.name} ({error}); "
                "free the device or run the problem on a larger one"
            ) from error

    def prepare(self) -> None:
        """Gives the candidate's runner its device and memory, has it make ModelNew, and binds inputs and outputs.

        On a GPU the baseline's runner comes first: how the device is shared, and whether the judge's clock works on it,
        is settled before a process in which code of the candidate's has run has any part in it.
        """
        self._drawn = self._draw_ahead()
        if self.reference.device.type == "cuda":
            self._bind_baseline()
        else:
            self._settle_taking()
        for work in (self.side.finish, partial(self.memory.open, self.side)):
            if not (answer := work())["ok"]:
                raise failures.from_exception(Stage.LOAD, answer)
        made = self.side.ask(Stage.LOAD, "construct", **self._construct())
        self._fit_parameters(made)
        self._load_parameters()
        self.side.ask(Stage.LOAD, "bind", **self._bind())

    def _settle_taking(self) -> None:
        """Whether the judge reads outputs from the runners' memory, by what the baseline's runner lets it do."""
        why = why_unreadable(self.baseline)
        self.memory.leaves_outputs = why is None
        if why is not None:
            self.not_checked.append(f"that no work was put off until outputs were handed over: {why}")

    def _draw_ahead(self) -> tuple[int, Drawn] | None:
        """Seed and inputs of the first trial, while the candidate's runner takes the device; they stay in the judge."""
        first = trial_plan(self.settings.trials, self.reference.has_parameters)[0]
        if first.parameters != OWN:
            return None
        return self._draw(first.inputs)

    def _draw(self, name: str) -> tuple[int, Drawn]:
        seed = draw_seed()
        return seed, self._variator.draw(name, seed)

    def _construct(self) -> dict[str, Any]:
        return {"seed": self._weights_seed, "init_inputs": self.regions.init_places}

    def _bind(self) -> dict[str, Any]:
        return {"inputs": self.regions.input_places, "outputs": self.regions.output_places}

    def _fit_parameters(self, made: Message) -> None:
        self._fit = fit(forms(self.reference.model), _forms_of(made))
        if self._fit.problem is not None:
            further = self._fit.unexpected and not self._fit.missing
            message = f"{self._fit.problem}. {advice.SAME_PARAMETERS}" if further else self._fit.problem
            raise failures.failed(Stage.LOAD, FailureKind.WRONG_PARAMETERS, message)
        mapping = self._fit.mapping
        if mapping:
            self.weights = "state_dict" if all(new == old for new, old in mapping.items()) else "order"

    def _load_parameters(self) -> None:
        if self._fit.mapping:
            places = {name: self.regions.state[old] for name, old in self._fit.mapping.items()}
            self.side.ask(Stage.LOAD, "parameters", state=places)

    def prepare_baseline(self) -> None:
        """Has the baseline's runner make its model, unless it has, and take over the parameters that are in force."""
        if not self._baseline_bound:
            self._bind_baseline()
            return
        self.memory.baseline_regions.put_state(self._state)
        self.baseline.must("parameters", None, state=self.regions.state)

    def _bind_baseline(self) -> None:
        while (why := self._not_bound()) is not None:
            self.memory.fall_back(why)
            self.baseline.must("reset")
        self._baseline_bound = True

    def _not_bound(self) -> str | None:
        """Has the baseline's runner make its model and bind its memory; why that does not work on this device."""
        problem = self.reference.problem
        overrides = problem.cpu_sizes if self.reference.sizes is SizeSet.CPU and problem.cpu_sizes else {}
        load = {"path": str(problem.path.resolve()), "class": "Model", "capture": False, "overrides": overrides}
        self.baseline.must("load", None, text=problem.source, **load)
        self.memory.separate()
        opened = self.baseline.answered(partial(self.memory.open, self.baseline))
        if not opened["ok"] and self.regions.on_device:
            return str(opened.get("message"))
        self.baseline.succeeded(opened)
        self.baseline.must("construct", None, **self._construct())
        self.baseline.must("parameters", None, state=self.regions.state)
        self.baseline.must("bind", None, **self._bind())
        if self.memory.stopwatch is None:
            return None
        return broken_clock(self.memory, self.baseline, self.reference.inputs(draw_seed()), self.run_reference)

    def release(self) -> Message:
        """Gives back what the baseline's runner and this process have of the device; what that runner still has.

        Raises:
            WorkerLost, RuntimeError
        """
        held = self.baseline.must("reset")
        self.memory.release()
        self.reference.forget()
        return held

    def forget_suspicions(self) -> None:
        """Before a measurement that is made once more."""
        self.side.restless = self.quiet.busy = self.quiet.looks = 0

    def trials(self) -> None:
        """Correctness on fresh inputs, one seed a trial, drawn now. Stops at the first failing trial."""
        self.side.ask(Stage.RUN, "watch", on=True)
        plans = trial_plan(self.settings.trials, self.reference.has_parameters and bool(self._fit.mapping))
        for number, plan in enumerate(plans, 1):
            self.tell(f"trial {number} of {len(plans)}")
            self._use_parameters(plan.parameters)
            self._trial(number, plan.inputs, plan.parameters)
        self.check_state()
        self.side.ask(Stage.RUN, "watch", on=False)
        self.successive(Stage.RUN)
        self.not_checked.extend(
            f"that all of input {number} is read: what single elements of it change is within the tolerance"
            for number in self._variator.unseen
        )

    def _use_parameters(self, kind: str) -> None:
        """Changes the parameters of reference and candidate alike."""
        wanted = self._own_state if kind == "own" else None
        if wanted is self._state:
            return
        self._state = randomised(self.reference.model, draw_seed()) if wanted is None else wanted
        self.reference.load(self._state)
        self.regions.put_state(self._state)
        self._load_parameters()

    def _trial(self, number: int, inputs: str, parameters: str) -> None:
        seed, drawn = self._drawn or self._draw(inputs)
        self._drawn = None
        self.seeds.append(seed)
        got = self.call(drawn.inputs, number).outputs
        try:
            worst, error = self.checker.check(got, drawn.native, drawn.precise, number, drawn.tolerances)
        except failures.CandidateFailed as failed:
            if drawn.name != "own" or parameters != "own":
                message = f"{failed.failure.message} (inputs: {drawn.name}; parameters: {parameters})"
                failed = failures.CandidateFailed(failed.failure.model_copy(update={"message": message}))
            raise self._stale(drawn.inputs, got, number, failed, parameters) from None
        if number == 1:
            self._repeat(drawn, got)
        self.passed.append(
            Trial(
                seed=seed,
                passed=True,
                inputs=drawn.name,
                parameters=parameters,
                max_abs_error=error,
                max_error_over_tolerance=worst,
            )
        )

    def _stale(
        self,
        inputs: list[Any],
        got: dict[str, torch.Tensor],
        number: int,
        failed: failures.CandidateFailed,
        parameters: str,
    ) -> failures.CandidateFailed:
        """Whether a wrong answer is the right one for what some parameters were before they were changed."""
        if parameters == "own" or failed.failure.kind is not FailureKind.WRONG_VALUES:
            return failed
        for names in self._perhaps_stale():
            old = {name: self._own_state[self._fit.mapping[name]] for name in names}
            self.reference.load(self._state | {self._fit.mapping[name]: value for name, value in old.items()})
            native = self.run_reference(inputs)
            try:
                self.checker.check(got, native, self.reference.precise(inputs, native), number)
            except failures.CandidateFailed:
                continue
            what = names[0] if len(names) == 1 else "all parameters"
            message = (
                f"the answer is right for the values before load_state_dict of {what}: either it is not used or "
                f"something derived from it was not renewed. {advice.renew(what)}"
            )
            return failures.failed(Stage.COMPARE, FailureKind.STALE_PARAMETERS, message, trial=number)
        return failed

    def _perhaps_stale(self) -> list[tuple[str, ...]]:
        """The candidate's names of parameters that may be stale together: all, each alone, all matrices."""
        changed = [name for name, old in self._fit.mapping.items() if self._state[old] is not self._own_state[old]]
        matrices = [name for name in changed if self._state[self._fit.mapping[name]].dim() > 1]
        singles = [(name,) for name in changed][:MOST_SINGLE]
        return list(dict.fromkeys([tuple(changed), *singles, tuple(matrices)])) if changed else []

    def _repeat(self, drawn: Drawn, first: dict[str, torch.Tensor]) -> None:
        """The same inputs once more: right again, and where eager repeats its bits that is worth a note."""
        again = self.call(drawn.inputs, 1).outputs
        try:
            self.checker.check(again, drawn.native, drawn.precise, 1, drawn.tolerances)
        except failures.CandidateFailed as failed:
            message = f"right at first, wrong when the same inputs came again: {failed.failure.message}"
            raise failures.failed(Stage.COMPARE, FailureKind.NOT_REPEATABLE, message, trial=1) from failed
        if _equal(first, again):
            return
        if _equal(_tensors(drawn.native), _tensors(self.run_reference(drawn.inputs))):
            self.notes.append("the same inputs give answers that differ in their last bits (the reference's do not)")

    def successive(self, stage: Stage) -> None:
        """Calls that follow one another at once, as in production, each on fresh inputs; all results are compared.

        Two to four, drawn anew each time. Who answers from memory when calls come quickly is right in calls that the
        judge waits between, and wrong here.
        """
        size = self.regions.bytes
        if not self.memory.spacious:
            missing = f"calls that follow one another at once: {size >> 20} MiB of inputs and outputs leave no room"
            if missing not in self.not_checked:
                self.not_checked.append(missing)
            return
        count = 2 + (secrets.randbelow(MOST_SUCCESSIVE - 1) if size <= SMALL_BYTES else 0)
        given = [self.fresh_inputs(draw_seed()) for _ in range(count)]
        for inputs in given[1:]:
            self.regions.put_inputs(inputs)
            self.side.ask(stage, "ahead")
        self.regions.put_inputs(given[0])
        self.side.ask(stage, "successive", forwards=count)
        for number, inputs in enumerate(given):
            answer = self.side.ask(stage, "result", number=number)
            self.check_answer(answer, given[0], None)
            try:
                self.checker.check_again(self._outputs(answer, stage), inputs)
            except failures.CandidateFailed as failed:
                raise _when_successive(failed.failure, number, count) from None
        self.regions.clear()
        self.side.ask(stage, "prepare")

    def check_state(self) -> None:
        """Parameters and buffers have to be as they were given, except those that the reference changes too."""
        if not self._fit.mapping:
            return
        self.side.ask(Stage.RUN, "state")
        now = self.reference.model.state_dict()
        for name, old in self._fit.mapping.items():
            given = self._state[old]
            untouched = torch.equal(now[old], given) or bool(torch.isnan(given).any())
            if untouched and not torch.equal(self.regions.get_state(old).to(given.device), given):
                message = f"forward changed {name}, which the reference leaves as it is"
                raise failures.failed(Stage.COMPARE, FailureKind.STATE_MODIFIED, message)
        self.regions.put_state(self._state)

    def call(
        self,
        inputs: list[Any],
        trial: int | None,
        stage: Stage = Stage.RUN,
        op: str = "call",
        then: Callable[[], None] = lambda: None,
        sample: bool = False,
        keep: bool = True,
    ) -> Call:
        """One forward pass of the candidate; checks the outputs' form and that the inputs are as they were.

        `then` is done once the inputs are in place, before the call begins; `sample` has the guard look whose code
        runs; without `keep` the outputs are not copied, and the inputs not looked at. What is left of them in the
        shared regions the candidate knows, and the baseline's next call overwrites it.
        """
        gated = self.memory.gated(self.side, inputs) if op == "call" else None

        def reveal() -> None:
            if gated is None:
                self.regions.put_inputs(inputs)
            else:
                self.regions.clear()
            then()

        answer, sampled = self.side.call(stage, op, reveal, trial, sample, prepare=not keep, gated=gated)
        self.check_answer(answer, inputs if keep else None, trial)
        if gated is None:
            seconds, idle = times_of(answer, stage, trial)
            if not self.memory.leaves_outputs:
                answer = self._with_layout(answer, seconds, idle)
                seconds, idle = answer["seconds"], answer["idle_seconds"]
            outputs = self._outputs(answer, stage) if keep else {}
        else:
            assert self.side.seconds is not None
            seconds, idle, outputs = self.side.seconds, self.side.seconds, gated.outputs
        if keep:
            self.side.ask(stage, "prepare")
        self.seconds = seconds
        return Call(seconds, idle, answer, outputs, sampled)

    def _outputs(self, answer: Message, stage: Stage) -> dict[str, torch.Tensor]:
        """A private copy of the outputs of the last call, whose form has been checked."""
        if self.memory.leaves_outputs:
            return taken(self.side, answer, self.regions.output_places, stage)
        return self.regions.outputs()

    def _with_layout(self, answer: Message, seconds: float, idle: float) -> Message:
        """The answer to a call with the time of its outputs' layout in the call, not behind it."""
        more = self._layout.seconds(answer)
        stamps = self.side.stamps
        self.side.stamps = replace(stamps, wall=stamps.wall + more, rest=max(0.0, stamps.rest - more))
        return {**answer, "seconds": seconds + more, "idle_seconds": idle + more}

    def profile(self) -> Message:
        """The kernels of some forward passes on fresh inputs; an exception of the candidate's is an answer."""
        self.regions.put_inputs(self.reference.inputs(draw_seed()))
        answer = self.side.try_ask(Stage.TIME, "profile", forwards=PROFILED_FORWARDS)
        self.regions.clear()
        return answer

    def check_answer(self, answer: Message, inputs: list[Any] | None, trial: int | None) -> None:
        """What can be said without looking at the outputs' values; None: nor at the inputs'."""
        error = answer.get("device_error")
        if error is not None:
            message = f"after forward the device's last error was: {str(error)[:500]}"
            raise failures.failed(Stage.RUN, FailureKind.DEVICE_ERROR, message, trial=trial)
        problem = form_mismatch(answer.get("leaves"), self._form, self.reference.device.type, self._may_share)
        if problem is not None:
            raise failures.failed(Stage.COMPARE, problem[0], problem[1], trial=trial)
        changed = None if inputs is None else self.regions.changed_input(inputs)
        if changed is not None:
            message = f"forward changed its input {changed} in place; inputs have to stay as they were given"
            raise failures.failed(Stage.COMPARE, FailureKind.INPUT_MODIFIED, message, trial=trial)


def _forms_of(made: Message) -> dict[str, Form]:
    """The runner's description of ModelNew's parameters and buffers, checked."""
    try:
        return {
            str(item["name"]): Form(tuple(int(n) for n in item["shape"]), str(item["dtype"]), item["parameter"] is True)
            for item in made["state"]
        }
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        message = "the runner did not describe the parameters"
        raise failures.failed(Stage.LOAD, FailureKind.PROTOCOL, message) from error


def _tensors(leaves: Leaves) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)}


def _equal(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, right[path]) for path, value in left.items())


def _when_successive(failure: Failure, number: int, count: int) -> failures.CandidateFailed:
    which = f"call {number + 1} of {count} that followed one another at once, each on other inputs"
    message = f"{failure.message} ({which}: a result may depend neither on the time since the call before nor on it)"
    return failures.CandidateFailed(failure.model_copy(update={"message": message}))
