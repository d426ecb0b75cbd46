"""One candidate on its device: memory, parameters, calls, comparison, measurement."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any, Literal

import torch

from hkbench.devices.probe import flush_bytes
from hkbench.errors import DeviceUnavailable, ProblemError, WorkerLost
from hkbench.judge import compare, failures, measure
from hkbench.judge.arena import Arena, Layout, fill, overlaps, same
from hkbench.judge.link import RunnerBabble, RunnerGone, RunnerLink, RunnerTimeout
from hkbench.judge.reference import Leaves, Reference
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    Failure,
    FailureKind,
    JudgeSettings,
    Mismatch,
    SizeSet,
    Stage,
    Tolerance,
    Trial,
)
from hkbench.runner.wire import Message

MOST_ROUNDS = 3  #: of timed runs, while it is not settled which side is faster
CHECKED_TIMED_RUNS = 6  #: timed runs whose outputs are compared too, at places that the judge draws
SETTLE_SECONDS = 0.02  #: libgomp spins 300,000 times by default, up to some 15 ms


def draw_seed() -> int:
    return secrets.randbits(31)


class Session:
    """From a loaded candidate to its measurement. Raises `CandidateFailed` where the candidate fails."""

    def __init__(
        self,
        reference: Reference,
        links: tuple[RunnerLink, RunnerLink],
        facts: DeviceFacts,
        settings: JudgeSettings,
        files: tuple[int, int],
        weights_seed: int,
    ) -> None:
        self._reference = reference
        self._link, self._baseline = links
        self._facts = facts
        self._settings = settings
        self._files = files
        self._weights_seed = weights_seed
        self.flush_bytes = flush_bytes(facts)
        self.tolerances: dict[str, Tolerance] = {}
        self.seeds: list[int] = []
        self.passed: list[Trial] = []
        self.weights: Literal["state_dict", "seed", "none"] = "none"
        self.notes: list[str] = []
        inputs = reference.inputs(draw_seed())
        outputs = self._run_reference(inputs)
        self._lay_out(inputs, outputs)
        # Only the form is needed from here on; the memory may be most of the device's.
        self._form = {
            path: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for path, leaf in outputs.items()
        }

    def _run_reference(self, inputs: list[Any]) -> Leaves:
        try:
            return self._reference.native(inputs)
        except torch.OutOfMemoryError as error:
            raise DeviceUnavailable(
                f"{self._reference.problem.name} does not fit into the memory of {self._facts.name} ({error}); "
                "free the device or run the problem on a larger one"
            ) from error

    def _lay_out(self, inputs: list[Any], outputs: Leaves) -> None:
        inbox, outbox = Layout(), Layout()
        self._state = {name: inbox.place(value) for name, value in self._reference.model.state_dict().items()}
        self._init_places = [inbox.argument(value) for value in self._reference.init_inputs]
        self._input_places = [inbox.argument(value) for value in inputs]
        self._output_places = {
            path: outbox.place(leaf.detach().contiguous())
            for path, leaf in outputs.items()
            if isinstance(leaf, torch.Tensor)
        }
        self._sizes = (inbox.size, outbox.size)
        self._allocate(by_host=self._settings.host_copies)

    def _allocate(self, by_host: bool) -> None:
        """Makes the two regions, on the device where handles can be shared, and fills in what never changes."""
        self._inbox, self._outbox = self._arenas(*self._sizes, by_host)
        for name, value in self._reference.model.state_dict().items():
            self._inbox.put(self._state[name], value)
        for places, value in zip(self._init_places, self._reference.init_inputs, strict=True):
            fill(self._inbox, places, value)

    def _arenas(self, inbox: int, outbox: int, by_host: bool) -> tuple[Arena, Arena]:
        device = self._reference.device
        if device.type == "cuda" and not by_host:
            try:
                return Arena.on_device(inbox, device), Arena.on_device(outbox, device)
            except RuntimeError as error:
                self.notes.append(f"no device memory handles between processes here ({error}); copies go by the host")
        return Arena.on_host(self._files[0], inbox), Arena.on_host(self._files[1], outbox)

    def prepare(self) -> None:
        """Gives the candidate's runner its device and memory, has it make ModelNew, and binds inputs and outputs."""
        opened = self._link.request("device", self._settings.load_timeout, **self._device())
        if not opened["ok"] and self._inbox.description["kind"] == "device":
            # Containers without a shared IPC namespace: the handle exists, but no other process can open it.
            self.notes.append(f"device memory cannot be shared here ({opened.get('message')}); copies go by the host")
            self._allocate(by_host=True)
            opened = self._link.request("device", self._settings.load_timeout, **self._device())
        if not opened["ok"]:
            raise failures.from_exception(Stage.LOAD, opened)
        for op, fields in self._model_steps():
            answer = self._ask(Stage.LOAD, op, **fields)
            if answer.get("weights") in ("state_dict", "seed"):
                self.weights = answer["weights"]

    def _device(self) -> dict[str, Any]:
        return {
            "device": str(self._reference.device),
            "threads": torch.get_num_threads(),
            "inbox": self._inbox.description,
            "outbox": self._outbox.description,
            "flush_bytes": self.flush_bytes,
        }

    def _model_steps(self) -> list[tuple[str, dict[str, Any]]]:
        construct = {"seed": self._weights_seed, "init_inputs": self._init_places, "state": self._state}
        bind = {"inputs": self._input_places, "outputs": self._output_places}
        return [("construct", construct), ("bind", bind)]

    def _prepare_baseline(self) -> None:
        problem = self._reference.problem
        overrides = problem.cpu_sizes if self._reference.sizes is SizeSet.CPU and problem.cpu_sizes else {}
        load = {"path": str(problem.path.resolve()), "class": "Model", "capture": False, "overrides": overrides}
        for op, fields in [("load", load), ("device", self._device()), *self._model_steps()]:
            self._ask_baseline(op, **fields)

    def _ask_baseline(self, op: str, **fields: Any) -> Message:
        """A request to the baseline's runner, whose failure is never the candidate's."""
        try:
            answer = self._baseline.request(op, self._settings.load_timeout, **fields)
        except (RunnerGone, RunnerTimeout, RunnerBabble) as error:
            raise WorkerLost(f"the baseline of {self._reference.problem.name} could not be timed: {error}") from error
        if not answer["ok"]:
            raise ProblemError(f"{self._reference.problem.path}: the reference fails: {answer.get('message')}")
        return answer

    def trials(self) -> None:
        """Correctness on fresh inputs, one seed a trial, drawn now. Stops at the first failing trial."""
        for number in range(1, self._settings.trials + 1):
            seed = draw_seed()
            self.seeds.append(seed)
            inputs = self._reference.inputs(seed)
            native = self._run_reference(inputs)
            precise = self._reference.precise(inputs, native)
            self._fill(inputs)
            self._call(inputs, number)
            worst, error = self._check(native, precise, number)
            self.passed.append(Trial(seed=seed, passed=True, max_abs_error=error, max_error_over_tolerance=worst))

    def measure(self) -> measure.Measurement:
        """Baseline and candidate in turn, each pair on fresh inputs; some timed outputs are compared too."""
        runs = self._settings.timing_runs or measure.DEFAULT_RUNS[self._facts.kind]
        checked = {0, *(secrets.randbelow(runs) for _ in range(CHECKED_TIMED_RUNS - 1))}
        inputs: list[Any] = []
        self._prepare_baseline()

        seeds: dict[int, int] = {}

        def renew(number: int) -> None:
            """The pair's inputs, made anew for each call: what comes before a call has to be alike too."""
            inputs.clear()  # first: their memory has to be free before the new ones are made
            inputs.extend(self._reference.inputs(seeds.setdefault(number, draw_seed())))
            self._fill(inputs)
            self._settle()

        def baseline(samples: measure.Samples, number: int) -> None:
            renew(number)
            started = time.perf_counter()
            answer = self._ask_baseline("call")
            samples.add(answer["seconds"], answer["idle_seconds"], time.perf_counter() - started)

        def candidate(samples: measure.Samples, number: int) -> None:
            renew(number)
            started = time.perf_counter()
            seconds, idle = self._call(inputs, None, stage=Stage.TIME)
            samples.add(seconds, idle, time.perf_counter() - started)
            if number in checked:
                native = self._run_reference(inputs)
                self._check(native, self._reference.precise(inputs, native), None)

        clock = "perf_counter" if self._facts.kind is DeviceKind.CPU else "device events"
        warmups = self._settings.warmups
        left, right = measure.Samples(), measure.Samples()
        for _ in range(MOST_ROUNDS):
            seeds.clear()
            more = measure.interleave(baseline, candidate, runs, self._settings.timing_seconds, warmups)
            left.extend(more[0])
            right.extend(more[1])
            found = measure.conclude(left, right, clock, warmups)
            if found.settled:
                break
        return found

    def profile(self) -> Message:
        """What torch's profiler sees of the candidate; the inputs of the measurement are still in place."""
        return self._link.request("profile", self._settings.run_timeout + 30.0)

    def _call(self, inputs: list[Any], trial: int | None, stage: Stage = Stage.RUN) -> tuple[float, float]:
        """One forward pass of the candidate; checks the outputs' form and that the inputs are as they were."""
        answer = self._ask(stage, "call", trial=trial)
        self._check_form(answer.get("leaves"), trial)
        for number, (places, value) in enumerate(zip(self._input_places, inputs, strict=True)):
            if not same(self._inbox, places, value):
                message = f"forward changed its input {number} in place; inputs have to stay as they were given"
                raise failures.failed(Stage.COMPARE, FailureKind.INPUT_MODIFIED, message, trial=trial)
        seconds, idle = answer.get("seconds"), answer.get("idle_seconds")
        if not (isinstance(seconds, float) and isinstance(idle, float) and 0 < seconds < 1e6 and 0 < idle < 1e6):
            message = f"the runner reported {seconds!r} and {idle!r} as the times of a call"
            raise failures.failed(stage, FailureKind.PROTOCOL, message, trial=trial)
        return seconds, idle

    def _fill(self, inputs: list[Any]) -> None:
        """Puts the inputs into the inbox and poisons the outbox, the same before each call of either side."""
        for places, value in zip(self._input_places, inputs, strict=True):
            fill(self._inbox, places, value)
        self._outbox.poison()
        if self._reference.device.type == "cuda":
            torch.cuda.synchronize(self._reference.device)

    def _settle(self) -> None:
        """On a CPU, lets the OpenMP threads of the other processes go to sleep: after a parallel region they spin."""
        if self._reference.device.type == "cpu":
            time.sleep(SETTLE_SECONDS)

    def _ask(self, stage: Stage, op: str, trial: int | None = None, **fields: Any) -> Message:
        limit = self._settings.load_timeout if stage is Stage.LOAD else self._settings.run_timeout
        # A Triton kernel is compiled at its first launch; building inside forward has the build's own limit.
        answer = self._link.request(op, limit, self._settings.build_timeout, **fields)
        if not answer["ok"]:
            raise failures.from_exception(stage, answer, trial)
        return answer

    def _check_form(self, described: Any, trial: int | None) -> None:
        problem = form_mismatch(described, self._form, self._reference.device.type)
        if problem is not None:
            raise failures.failed(Stage.COMPARE, problem[0], problem[1], trial=trial)

    def _check(self, native: Leaves, precise: Leaves, trial: int | None) -> tuple[float, float | None]:
        """The largest error over its tolerance, and the largest absolute error. Raises at a mismatch."""
        worst, error = 0.0, None
        for path, place in self._output_places.items():
            eager, wanted = native[path], precise[path]
            assert isinstance(eager, torch.Tensor) and isinstance(wanted, torch.Tensor)
            got = self._outbox.get(place)
            got = got.to(eager.device)
            if eager.dtype not in compare.RTOL:
                mismatch = compare.compare_exact(path, eager, wanted, got)
                if mismatch is not None:
                    raise _wrong(FailureKind.WRONG_VALUES, mismatch, trial)
                continue
            if path not in self.tolerances:
                self.tolerances[path] = compare.tolerance_for(eager, wanted, path)
            wanted = compare.settled(eager, wanted, got)
            result = compare.compare_leaf(path, wanted, got, self.tolerances[path])
            if result.mismatch is not None:
                kind = FailureKind.NOT_FINITE if result.not_finite else FailureKind.WRONG_VALUES
                raise _wrong(kind, result.mismatch, trial, result.not_finite)
            worst = max(worst, result.worst)
            error = max(error or 0.0, result.max_abs_error or 0.0)
        return worst, error


def _wrong(kind: FailureKind, found: Mismatch, trial: int | None, not_finite: int = 0) -> failures.CandidateFailed:
    share = f"{found.wrong_elements} of {found.elements} elements"
    text = f"{found.output}{list(found.index)}: expected {found.expected!r}, got {found.got!r}; {share} are wrong"
    if not_finite:
        text += f", {not_finite} of them NaN or Inf"
    failure = Failure(stage=Stage.COMPARE, kind=kind, message=text, mismatch=found, trial=trial)
    return failures.CandidateFailed(failure)


def form_mismatch(described: Any, native: Leaves, device: str) -> tuple[FailureKind, str] | None:
    """Why the described outputs do not have the form of the reference's, or None."""
    if not isinstance(described, list) or not all(isinstance(item, dict) for item in described):
        return FailureKind.PROTOCOL, "the runner did not describe the outputs"
    paths = [item.get("path") for item in described]
    if paths != list(native):
        return FailureKind.WRONG_TYPE, f"forward returns {paths}, the reference {list(native)}"
    checks: tuple[Callable[[dict[str, Any], object, str], tuple[FailureKind, str] | None], ...]
    checks = (_type_mismatch, _tensor_mismatch)
    for item, leaf in zip(described, native.values(), strict=True):
        for check in checks:
            found = check(item, leaf, device)
            if found is not None:
                return found
    return None


def _type_mismatch(item: dict[str, Any], leaf: object, _device: str) -> tuple[FailureKind, str] | None:
    expected = "Tensor" if isinstance(leaf, torch.Tensor) else type(leaf).__name__
    if item.get("type") != expected:
        return FailureKind.WRONG_TYPE, f"{item['path']} is of type {item.get('type')}, expected {expected}"
    if not isinstance(leaf, torch.Tensor) and item.get("value") != leaf:
        return FailureKind.WRONG_VALUES, f"{item['path']} is {item.get('value')!r}, expected {leaf!r}"
    return None


def _tensor_mismatch(item: dict[str, Any], leaf: object, device: str) -> tuple[FailureKind, str] | None:
    if not isinstance(leaf, torch.Tensor):
        return None
    path = item["path"]
    dtype = str(leaf.dtype).removeprefix("torch.")
    if item.get("dtype") != dtype:
        return FailureKind.WRONG_DTYPE, f"{path} has dtype {item.get('dtype')}, expected {dtype}"
    if item.get("shape") != list(leaf.shape):
        return FailureKind.WRONG_SHAPE, f"{path} has shape {item.get('shape')}, expected {list(leaf.shape)}"
    if item.get("device") != device:
        return FailureKind.WRONG_TYPE, f"{path} is on device {item.get('device')}, expected {device}"
    strides = item.get("strides")
    if not overlaps(leaf.shape, leaf.stride()) and _shares_memory(list(leaf.shape), strides):
        return FailureKind.WRONG_STRIDES, f"{path} has strides {strides}: several elements share one place in memory"
    return None


def _shares_memory(shape: list[int], strides: Any) -> bool:
    """The same of what the runner says, which may be anything."""
    if not isinstance(strides, list) or len(strides) != len(shape) or not all(type(s) is int for s in strides):
        return True
    return overlaps(shape, strides)
