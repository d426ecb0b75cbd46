"""One candidate on its device: parameters, trials, and the check of every answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from hkbench.analysis import integer_inputs
from hkbench.analysis.input_distributions import OWN, Drawn, TrialPlan
from hkbench.analysis.reference import Leaves, Reference
from hkbench.device_kinds import model_of
from hkbench.devices.peaks import flush_bytes
from hkbench.errors import DeviceUnavailable
from hkbench.evaluation import failures
from hkbench.evaluation.clock_check import broken_clock
from hkbench.evaluation.contract import SAME_SEED, Contract
from hkbench.evaluation.form import Leaf, form_mismatch, leaves_of
from hkbench.evaluation.layout import LayoutCost
from hkbench.evaluation.link import Samples
from hkbench.evaluation.parameters import CandidateParameters
from hkbench.evaluation.quiet import IdleProbe
from hkbench.evaluation.shared_memory import SharedMemory
from hkbench.evaluation.sharing import DeviceShare
from hkbench.evaluation.side import BaselineClient, RunnerClient, device_request, times_of
from hkbench.evaluation.taking import taken, why_unreadable
from hkbench.protocol import messages
from hkbench.protocol.constants import PROFILED_FORWARDS
from hkbench.records import (
    DeviceFacts,
    EvaluationSettings,
    FailureKind,
    RuleSet,
    Stage,
    Trial,
)

#: Calls that follow one another at once: up to this where inputs and outputs are small and calls brief, else two.
MAX_SUCCESSIVE = 4
SMALL_BYTES, BRIEF_SECONDS = 1 << 26, 1.0  #: of inputs and outputs together, and of a call


CALL = messages.Call()  #: on a GPU with the gate of the evaluator's clock


def draw_seed() -> int:
    return secrets.randbits(31)


@dataclass(frozen=True)
class Call:
    """One call of the candidate: its times as the runner says, its answer, a private copy of its outputs."""

    seconds: float
    idle: float
    answer: messages.Called | messages.Traced
    outputs: dict[str, torch.Tensor]
    sampled: Samples | None  #: whose code ran, of a sampled call


class Session:
    """From a loaded candidate to its passed trials. Raises `CandidateFailed` where the candidate fails."""

    def __init__(
        self,
        reference: Reference,
        sides: tuple[RunnerClient, BaselineClient],
        facts: DeviceFacts,
        settings: EvaluationSettings,
        files: tuple[int, int],
        weights_seed: int,
        share: DeviceShare,
    ) -> None:
        """Take `sides`, the candidate's and the baseline's, neither on the device yet, and the `share` in that."""
        self.reference = reference
        self.side, self.baseline = sides
        self.facts = facts
        self.settings = settings
        self.tell: Callable[[str], None] = lambda _: None  #: told of the steps of a stage, for whoever waits
        self._weights_seed = weights_seed
        self.quiet = IdleProbe(reference.device)  # learns what is usual before the candidate has the device
        device = torch.device(model_of(facts.kind).candidates_device(facts.index))
        self._device_type = device.type
        self._device_request = device_request(device, facts)
        self.side.begin(self._device_request)
        self.flush_bytes = flush_bytes(facts)
        self.seeds: list[int] = []
        self.passed: list[Trial] = []
        self.seconds = 0.0  #: that the candidate's last call took
        own_state = {name: value.clone() for name, value in reference.model.state_dict().items()}
        self.contract = Contract(settings.rules)
        self._drawing = self.contract.drawing(reference, settings.rtol)
        self._drawn: tuple[int, Drawn] | None = None  # for the first trial
        inputs = reference.inputs(draw_seed())
        outputs = self.run_reference(inputs)
        self.share = share
        share.need((inputs, outputs, own_state), facts.memory_bytes)
        self._may_share = reference.shares_memory
        self.memory = SharedMemory(reference, (inputs, outputs), files, self.flush_bytes, facts, settings.host_copies)
        self.regions = self.memory.regions
        self.parameters = CandidateParameters(reference, self.side, self.regions, own_state, self.contract)
        self.side.before = self.regions.scrub_if_dirty
        # Only the form is needed from here on; the memory may be most of the device's.
        self._form = {
            path: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for path, leaf in outputs.items()
        }
        self._layout = LayoutCost(self.regions.output_places, outputs, reference.device)
        self._baseline_bound = False
        self.checker = self.contract.checker(reference, self.run_reference, self._form, settings.rtol)

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

    def fresh_inputs(self, seed: int) -> list[object]:
        """Return inputs for a call that is timed, traced or sampled: the problem's own, by our rules with extremes."""
        return self._drawing.inputs(seed)

    def plant_nothing(self) -> None:
        """Leave extremes out of the inputs, before the first are drawn: to look for their size takes a CPU long."""
        self._drawing = self.contract.drawing(self.reference, self.settings.rtol, plants=False)

    def run_reference(self, inputs: list[object]) -> Leaves:
        try:
            return self.reference.native(inputs)
        except torch.OutOfMemoryError as error:
            raise DeviceUnavailable(
                f"{self.reference.problem.name} does not fit into the memory of {self.facts.name} ({error}); "
                "free the device or run the problem on a larger one"
            ) from error

    def prepare(self) -> None:
        """Give the candidate's runner its device and memory, let it make ModelNew, and bind inputs and outputs.

        On a GPU the baseline's runner comes first: how the device is shared, and whether the evaluator's clock works on
        it, is settled before a process in which code of the candidate's has run has any part in it.
        """
        self._drawn = self._draw_ahead()
        if self.reference.device.type == "cuda":
            self._bind_baseline()
        else:
            self._settle_taking()
        self._enter()

    def _enter(self) -> None:
        for work in (partial(self.side.finish, self._device_request), partial(self.memory.open, self.side)):
            if isinstance(answer := work(), messages.Raised):
                raise failures.from_exception(Stage.LOAD, answer)
            self.share.pause()
        with self.share.unused(self.parameters.state):  # a processor draws as many values
            made = self.side.ask(Stage.LOAD, self._construct())
        self.parameters.match(made)
        if self.contract.loads_parameters:
            self.parameters.load()
        self.side.ask(Stage.LOAD, self._bind())

    def _settle_taking(self) -> None:
        """Decide whether the evaluator reads outputs from the runners' memory, as the baseline's runner allows it."""
        why = why_unreadable(self.baseline)
        self.memory.leaves_outputs = self.memory.halts = why is None
        if why is not None:
            self.not_checked.append(f"that no work was put off until outputs were handed over: {why}")

    def _draw_ahead(self) -> tuple[int, Drawn] | None:
        """Draw seed and inputs of the first trial while the candidate's runner takes the device; both stay here.

        Most wrong candidates fail at it. So extremes, whose sizes have to be found first, are for those that come after
        it, if one of them has the problem's own inputs too.
        """
        first, *others = self.contract.plan(self.settings.trials, self.reference.has_parameters)
        if first.parameters != OWN:
            return None
        if first.inputs == OWN and any(plan.inputs == OWN for plan in others):
            seed = draw_seed()
            return seed, self._drawing.plain(seed)
        return self._draw(first.inputs, None)

    def _draw(self, name: str, integers: str | None) -> tuple[int, Drawn]:
        seed = draw_seed()
        return seed, self._drawing.draw(name, seed, integers)

    def _construct(self, draws: bool = True) -> messages.Construct:
        return messages.Construct(seed=self._weights_seed, init_inputs=self.regions.init_places, draws=draws)

    def _bind(self) -> messages.Bind:
        return messages.Bind(inputs=self.regions.input_places, outputs=self.regions.output_places)

    def prepare_baseline(self) -> None:
        """Let the baseline's runner make its model, unless it has one, and take over the parameters in force."""
        if not self._baseline_bound:
            self._bind_baseline()
            return
        self.memory.baseline_regions.put_state(self.parameters.state)
        self.baseline.request(messages.Parameters(state=self.regions.state))

    def _bind_baseline(self) -> None:
        while (why := self._not_bound()) is not None:
            self.memory.fall_back(why)
            self.baseline.request(messages.Reset())
        self._baseline_bound = True

    def _not_bound(self) -> str | None:
        """Let the baseline's runner make its model and bind its memory; return why this device fails, if it does."""
        problem = self.reference.problem
        load = messages.Load(
            path=str(problem.path.resolve()),
            class_="Model",
            capture=False,
            overrides={**self.reference.constants},
            text=problem.source,
        )
        self.baseline.request(load)
        self.memory.separate()
        opened = self.baseline.answered(partial(self.memory.open, self.baseline))
        if isinstance(opened, messages.Raised) and self.regions.on_device:
            return opened.message
        self.baseline.checked(opened)
        # Its values are loaded next: to draw a thousand million of them would take a processor ten seconds.
        self.baseline.request(self._construct(draws=False))
        self.baseline.request(messages.Parameters(state=self.regions.state))
        self.baseline.request(self._bind())
        if not self.memory.timed_here:
            return None
        return broken_clock(self.memory, self.baseline, self.reference.inputs(draw_seed()), self.run_reference)

    def release(self) -> messages.MemoryHeld:
        """Give back what the baseline's runner and this process have of the device; return what that runner still has.

        Raises:
            WorkerLost, RuntimeError
        """
        held = self.baseline.request(messages.Reset())
        self.baseline.forget_segments()
        self.memory.release()
        self.reference.forget()
        return held

    def forget_suspicions(self) -> None:
        """Forget suspicions before a measurement is repeated."""
        self.side.ran_while_frozen = 0
        self.quiet.forget()

    def trials(self, further: bool = False) -> None:
        """Check correctness on fresh inputs, with one seed a trial, drawn now. Stop at the first failing trial.

        At a `further` shape nothing is looked at that the candidate does alike at all of them.
        """
        self._make_trials(self._plan(self.contract))
        if not further:
            self.successive(Stage.RUN)
        self.not_checked.extend(
            f"that all of input {number} is read: what single elements of it change is within the tolerance"
            for number in self._drawing.unseen
        )
        self.not_checked.extend(
            f"integer inputs that are {kind}: the reference does not take them, or says nothing by them"
            for kind in sorted(self._drawing.not_taken)
        )

    def probe(self) -> None:
        """Make the trials of hkbench's rules where others are in force; the contract keeps what they would refuse.

        It is the last that is asked of a candidate: what they ask for may end it.
        """
        ours, drawing, checker, passed = Contract(RuleSet.HKBENCH), self._drawing, self.checker, self.passed
        self._drawing = ours.drawing(self.reference, self.settings.rtol)
        self.checker = ours.checker(self.reference, self.run_reference, self._form, self.settings.rtol)
        self.passed = []
        try:
            self.parameters.load()
            self._make_trials(self._plan(ours))
        except failures.CandidateFailed as failed:
            self.contract.keep(failed.failure)
        finally:
            self._drawing, self.checker, self.passed = drawing, checker, passed

    def _plan(self, contract: Contract) -> tuple[TrialPlan, ...]:
        return contract.plan(self.settings.trials, self.reference.has_parameters and self.parameters.matched)

    def _make_trials(self, plans: Sequence[TrialPlan]) -> None:
        self.side.ask(Stage.RUN, messages.Watch(on=True))
        kinds = integer_inputs.drawn_kinds(len(plans))
        for number, plan in enumerate(plans, 1):
            self.tell(f"trial {number} of {len(plans)}")
            self.parameters.use(plan.parameters)
            self._trial(number, plan, kinds[number - 1])
        self.parameters.check_unchanged()
        self.side.ask(Stage.RUN, messages.Watch(on=False))

    def _trial(self, number: int, plan: TrialPlan, integers: str | None) -> None:
        parameters = plan.parameters
        seed, drawn = self._drawn or self._draw(plan.inputs, integers)
        self._drawn = None
        self.seeds.append(seed)
        got = self.call(drawn.inputs, number).outputs
        try:
            worst, error = self.checker.check(got, drawn.native, drawn.precise, number, drawn.tolerances)
        except failures.CandidateFailed as failed:
            if drawn.name != OWN or parameters != OWN or drawn.integers is not None:
                whole = f"; integers: {drawn.integers}" if drawn.integers else ""
                failed = failed.with_note(f"inputs: {drawn.name}{whole}; parameters: {parameters}")
            elif self.reference.has_parameters and not self.parameters.loaded:
                failed = failed.with_note(SAME_SEED)
            raise self._stale(drawn.inputs, got, number, failed, parameters) from None
        if number == 1:
            self._repeat(drawn, got)
        self.passed.append(
            Trial(
                seed=seed,
                passed=True,
                inputs=drawn.name,
                integers=drawn.integers,
                parameters=parameters,
                max_abs_error=error,
                max_error_over_tolerance=worst,
            )
        )

    def _stale(
        self,
        inputs: list[object],
        got: dict[str, torch.Tensor],
        number: int,
        failed: failures.CandidateFailed,
        parameters: str,
    ) -> failures.CandidateFailed:
        """Return whether a wrong answer is the right one for what some parameters were before they were changed."""
        if parameters == "own" or failed.failure.kind is not FailureKind.WRONG_VALUES:
            return failed
        for names, state in self.parameters.perhaps_stale():
            self.reference.load(state)
            native = self.run_reference(inputs)
            try:
                self.checker.check(got, native, self.reference.precise(inputs, native), number)
            except failures.CandidateFailed:
                continue
            what = names[0] if len(names) == 1 else "all parameters"
            message = (
                f"the answer is right for the values before load_state_dict of {what}: either it is not used or "
                "something derived from it was not renewed"
            )
            return failures.failed(Stage.COMPARE, FailureKind.STALE_PARAMETERS, message, trial=number)
        return failed

    def _repeat(self, drawn: Drawn, first: dict[str, torch.Tensor]) -> None:
        """Run the same inputs once more: the result has to be right.

        Different bits are worth a note where eager repeats its own.
        """
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
        """Make calls that follow one another at once, as in production, on fresh inputs; compare all results.

        Two to four, drawn anew each time. Who answers from memory when calls come quickly is right in calls that the
        evaluator waits between, and wrong here.
        """
        size = self.regions.bytes
        if not self.memory.spacious:
            missing = f"calls that follow one another at once: {size >> 20} MiB of inputs and outputs leave no room"
            if missing not in self.not_checked:
                self.not_checked.append(missing)
            return
        few = size > SMALL_BYTES or self.seconds > BRIEF_SECONDS
        count = 2 + (0 if few else secrets.randbelow(MAX_SUCCESSIVE - 1))
        given = [self.fresh_inputs(draw_seed()) for _ in range(count)]
        for inputs in given[1:]:
            self.regions.put_inputs(inputs)
            self.side.ask(stage, messages.Ahead())
        self.regions.put_inputs(given[0])
        self.side.ask(stage, messages.Successive(), forwards=count)
        for number, inputs in enumerate(given):
            described = self.side.ask(stage, messages.Result(number=number)).leaves
            leaves = self.check_leaves(described, given[0], None)
            if number + 1 < count and self.contract.has_kept(FailureKind.ALIASED_OUTPUT):
                continue  # the call after it has overwritten it
            try:
                self.checker.check_again(self._outputs(leaves, stage), inputs)
            except failures.CandidateFailed as failed:
                which = f"call {number + 1} of {count} that followed one another at once, each on other inputs"
                why = "a result may depend neither on the time since the call before nor on it"
                raise failed.with_note(f"{which}: {why}") from None
        self.regions.clear()
        self.side.ask(stage, messages.Prepare())

    def call(
        self,
        inputs: list[object],
        trial: int | None,
        stage: Stage = Stage.RUN,
        request: messages.Request[messages.Called | messages.Traced] = CALL,
        then: Callable[[], None] = lambda: None,
        sample: bool = False,
        keep: bool = True,
    ) -> Call:
        """Make one forward pass of the candidate; check the outputs' form and that the inputs are unchanged.

        `then` is done once the inputs are in place, before the call begins; `sample` has the guard look whose code
        runs; without `keep` the outputs are not copied, and the inputs not looked at. What is left of them in the
        shared regions the candidate knows, and the baseline's next call overwrites it.
        """
        self.share.pause()
        gated, reveal = self.memory.call(self.side, inputs, then, takes=keep, gated=request is CALL)
        prepare = not keep or gated is not None  # else its outputs are still to be taken
        answer, sampled = self.side.call(stage, request, reveal, trial, sample, prepare, gated)
        self._check_device(answer.device_error, trial)
        leaves = self.check_leaves(answer.leaves, inputs if keep else None, trial)
        if gated is None:
            seconds, idle = times_of(answer, stage, trial)
            if not self.memory.leaves_outputs:
                more = self._layout_seconds(leaves)
                seconds, idle = seconds + more, idle + more
                answer = replace(answer, seconds=seconds, idle_seconds=idle)
            outputs = self._outputs(leaves, stage) if keep else {}
        else:
            if gated.lost is not None:
                raise failures.failed(stage, FailureKind.PROTOCOL, gated.lost, trial=trial)
            if gated.changed is not None:
                message = f"{gated.changed} was not finished when the current stream was: work went on outside of it"
                raise failures.failed(stage, FailureKind.SUSPECT, message, trial=trial)
            assert self.side.seconds is not None
            seconds, idle, outputs = self.side.seconds, self.side.seconds, gated.outputs
        if not prepare:
            self.side.ask(stage, messages.Prepare())
        self.seconds = seconds
        return Call(seconds, idle, answer, outputs, sampled)

    def _outputs(self, leaves: Sequence[Leaf], stage: Stage) -> dict[str, torch.Tensor]:
        """Return a private copy of the outputs of the last call."""
        if self.memory.leaves_outputs:
            return taken(self.side, leaves, self.regions.output_places, stage)
        return self.regions.outputs()

    def _layout_seconds(self, leaves: Sequence[Leaf]) -> float:
        """Return the time of a call's outputs' layout, which its stamps hold from now on in the call, not behind it."""
        more = self._layout.seconds(leaves)
        stamps = self.side.stamps
        self.side.stamps = replace(stamps, wall=stamps.wall + more, rest=max(0.0, stamps.rest - more))
        return more

    def profile(self) -> messages.Profiled | messages.Raised:
        """Return the kernels of some forward passes on fresh inputs, or the candidate's exception as an answer."""
        self.regions.put_inputs(self.reference.inputs(draw_seed()))
        answer = self.side.try_ask(Stage.TIME, messages.Profile(), forwards=PROFILED_FORWARDS)
        self.regions.clear()
        return answer

    @staticmethod
    def _check_device(error: str | None, trial: int | None) -> None:
        if error is not None:
            message = f"after forward the device's last error was: {error[:500]}"
            raise failures.failed(Stage.RUN, FailureKind.DEVICE_ERROR, message, trial=trial)

    def check_leaves(
        self, described: list[messages.Object], inputs: list[object] | None, trial: int | None
    ) -> list[Leaf]:
        """Check what can be checked without the outputs' values and, where `inputs` is None, without the inputs'.

        Returns the tensors among the outputs.
        """
        problem = form_mismatch(described, self._form, self._device_type, self._may_share)
        if problem is not None:
            self.contract.demand(failures.failed(Stage.COMPARE, problem[0], problem[1], trial=trial))
        changed = None if inputs is None else self.regions.changed_input(inputs)
        if changed is not None:
            message = f"forward changed its input {changed} in place; inputs have to stay as they were given"
            self.contract.demand(failures.failed(Stage.COMPARE, FailureKind.INPUT_MODIFIED, message, trial=trial))
        return leaves_of(described, self._form)


def _tensors(leaves: Leaves) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor)}


def _equal(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, right[path]) for path, value in left.items())
