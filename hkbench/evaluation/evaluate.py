"""The stages of one evaluation, from a file to a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from hkbench.analysis.drawn_model import draw_model
from hkbench.analysis.reference import Reference
from hkbench.backends import find_backend
from hkbench.backends.language import defined_kernels
from hkbench.device_kinds import model_of
from hkbench.devices.probe import torch_device, versions
from hkbench.evaluation import failures
from hkbench.evaluation.baselines import further_baselines
from hkbench.evaluation.emulated_device import DeviceLost, EmulatedDevice
from hkbench.evaluation.emulated_session import EmulatedSession, make_session, require_possible
from hkbench.evaluation.frames import Built, LaunchesCompiled
from hkbench.evaluation.job import EvaluateJob, Loaded
from hkbench.evaluation.lack_of_memory import PERHAPS_OF_MEMORY, memory_failure
from hkbench.evaluation.lacking import lacking
from hkbench.evaluation.launches import absent_gpu, launched
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerLink, RunnerTimeout, read_answer
from hkbench.evaluation.measure import Measurement
from hkbench.evaluation.precision import lowered
from hkbench.evaluation.profiling import ProfilerHandle, profiled
from hkbench.evaluation.refusal import forbidden
from hkbench.evaluation.rehearsal import rehearse
from hkbench.evaluation.session import Session, draw_seed
from hkbench.evaluation.shapes import ShapeChecks, not_right
from hkbench.evaluation.sharing import DeviceShare
from hkbench.evaluation.side import BaselineClient, RunnerClient
from hkbench.evaluation.source import require_python, source_of
from hkbench.evaluation.timing import Timing
from hkbench.evaluation.trust import CandidateContext, TrustReport, assess, compare_clocks, name_kernels, seen_isolation
from hkbench.problems.sizes import sizes_in_force
from hkbench.profile.kernel_owner import owner_of_kernel
from hkbench.profile.names import BuildFolder
from hkbench.profile.ownership import MAX_UNEXPLAINED, owner_of_operator
from hkbench.protocol import messages
from hkbench.reading import SourceLines, placed, read_apart
from hkbench.records import (
    REFUSALS,
    Conditions,
    DeviceFacts,
    Failure,
    FailureKind,
    Finding,
    FurtherBaseline,
    KernelLanguage,
    KernelProfile,
    Ownership,
    RuleSet,
    Shapes,
    Stage,
    StageTime,
    Status,
    Track,
    Verdict,
    Work,
)
from hkbench.sandbox.apart import NotFinished
from hkbench.sandbox.folders import TooDeep


class CandidateEvaluation:
    """Run the stages in order and keep what the verdict will say of them."""

    def __init__(
        self,
        job: EvaluateJob,
        link: RunnerLink,
        baseline: RunnerLink | None,
        profiler: ProfilerHandle,
        files: tuple[int, int],
        enter: Callable[[Stage], None],
        memory_bytes: int,
        loaded: Loaded | None = None,
        tell: Callable[[str], None] = lambda _: None,
        emulated: EmulatedDevice | None = None,
        another: Callable[[], RunnerLink] | None = None,
        share: DeviceShare | None = None,
    ) -> None:
        """Take over the runners.

        `emulated` executes the candidate's kernels where no GPU does. `another` runner of the candidate is forked for
        a further shape, when one has ended the first.

        `loaded` is what another process's `load` came to, by `loaded` there; then `run` may follow at once.

        `enter` is told of each stage, `tell` of the steps within one. `baseline` has the device; only `run` needs it.
        `share` is what the evaluation has of a device that others use.
        """
        self._job = job
        self._link = link
        self._baseline = baseline
        self._profiler = profiler
        self._emulated = emulated
        self._files = files
        self._another = another
        self._share = share or DeviceShare()
        self._says_little: str | None = None  # of the reference's outputs
        self._shapes: Shapes | None = None
        self._held: messages.MemoryHeld | None = None  # by the baseline's runner, once it was given back
        self._enter, self._tell = enter, tell
        self._memory_bytes = memory_bytes
        self._source, self._sha256 = (b"", loaded.sha256) if loaded else source_of(Path(job.code))
        self._text = loaded.text if loaded else self._source.decode(errors="replace")
        self._times: dict[Stage, float] = dict(loaded.seconds) if loaded else {}
        self._stage = Stage.PARSE
        self._session: Session | None = None
        self._evidence: CandidateContext | None = None
        self._reference: Reference | None = None
        self._facts: DeviceFacts | None = None
        self._further: tuple[FurtherBaseline, ...] = ()
        self._language: KernelLanguage | None = None
        self._findings: tuple[Finding, ...] = loaded.findings if loaded else ()
        self._lines = loaded.lines if loaded else SourceLines()
        self._built = BuildFolder(job.folder, loaded.built) if loaded else BuildFolder(job.folder)
        self.extensions: list[object] = []
        self.launched: LaunchesCompiled | None = None

    def load(self) -> Failure | None:
        """Parse, build and import: do everything that needs no device."""
        return self._guarded(self._load)

    @property
    def loaded(self) -> Loaded:
        """For the process that goes on from here."""
        return Loaded(
            text=self._text,
            sha256=self._sha256,
            findings=self._findings,
            lines=self._lines,
            seconds=self._times,
            build_seconds=self._link.build_seconds,
            said=self._link.said.decode(),
            lowered=tuple(self._link.lowered),
            built=self._built.whole,
        )

    def run(self, facts: DeviceFacts) -> Verdict:
        """Return the rest, with the device to ourselves."""
        self._facts = facts
        self._link.ends = time.monotonic() + self._job.settings.evaluation_timeout
        self._share.on_waited, self._link.away = self._link.put_off, self._share.away
        measured: Measurement | None = None
        trusted: TrustReport | None = None
        profile: KernelProfile | None = None

        def stages() -> None:
            nonlocal measured, trusted, profile
            self._compare(facts)
            if self._emulated is not None:
                self._forbid()
                self._look_at_shapes(facts)
                return
            measured, trusted = self._measure()
            self._language = trusted.language
            self._further = self._baselines(measured, trusted)
            if trusted.refusal is not None:
                return
            self._forbid()
            if self._profiles(measured):
                profile = self._profile()
            self._probe()
            self._look_at_shapes(facts)

        failure = self._guarded(stages)
        if isinstance(self._session, EmulatedSession):
            unread = self._guarded(self._name_kernels)
            failure = failure or unread
        return self.verdict(failure or not_right(self._shapes), measured, trusted, profile)

    def _guarded(self, work: Callable[[], None]) -> Failure | None:
        """Run a part; what the candidate or its runner did wrong comes back as a failure."""
        try:
            work()
        except failures.CandidateFailed as error:
            return error.failure if self._emulated is None else lacking(error.failure, self._text)
        except RunnerTimeout as error:
            self._link.end()
            late = self._link.ends is not None and time.monotonic() >= self._link.ends
            return failures.from_timeout(error, self._job.settings, self._stage, late).failure
        except RunnerExited:
            end = self._link.end()
            return failures.from_end(self._stage, end, self._memory_bytes).failure
        except ProtocolError as error:
            return failures.failed(self._stage, FailureKind.PROTOCOL, str(error)).failure
        except DeviceLost as error:
            return failures.failed(self._stage, FailureKind.UNSUPPORTED, str(error)).failure
        except PERHAPS_OF_MEMORY as error:
            return memory_failure(error, self._job, self._facts, self._stage, self._link.end)
        except TooDeep as error:
            return failures.failed(self._stage, FailureKind.LIMIT, f"in the candidate's folder {error}").failure
        except NotFinished as error:
            message = f"what the candidate built and wrote cannot be looked through: {error}"
            return failures.failed(self._stage, FailureKind.LIMIT, message).failure
        return None

    @contextmanager
    def _timed(self, stage: Stage) -> Iterator[None]:
        self._stage = stage
        self._enter(stage)
        start = time.perf_counter() - self._share.waited
        try:
            yield
        finally:
            seconds = time.perf_counter() - self._share.waited - start
            self._times[stage] = self._times.get(stage, 0.0) + seconds

    def _load(self) -> None:
        with self._timed(Stage.PARSE):
            read = read_apart(self._source, self._job.backend, self._job.settings.track)
            require_python(self._source, read)
            self._findings, self._lines = read.findings, read.lines
        with self._timed(Stage.LOAD):
            settings = self._job.settings
            load = messages.Load(
                path=self._job.code,
                class_="ModelNew",
                capture=self._job.build_only == "capture",
                overrides={},
                gpu=None if self._job.arch is None else absent_gpu(self._job.arch),
            )
            with ExitStack() as stack:
                descriptors: tuple[int, ...] = ()
                if self._emulated is not None:
                    gpu, descriptors = stack.enter_context(self._emulated.handed_over())
                    load = replace(load, emulated=gpu)
                told = self._link.request(
                    load,
                    settings.load_timeout,
                    settings.build_timeout,
                    lambda: self._enter(Stage.BUILD),
                    descriptors=descriptors,
                )
            answer = read_answer(load, told)
            if self._emulated is not None:
                require_possible(self._emulated.report([]), Stage.LOAD, None)
            if isinstance(answer, messages.Raised):
                raise failures.from_exception(Stage.LOAD, answer)
            if not answer.has_class:
                message = "the file defines no class ModelNew; the evaluator looks for that name"
                raise failures.failed(Stage.LOAD, FailureKind.NO_MODEL_NEW, message)
            self.extensions = answer.extensions
            if self._job.build_only is None:
                if self._emulated is None:
                    rehearse(self._link, self._job, self._text, lambda: self._enter(Stage.BUILD))
                self._link.freeze()  # while it waits for the device, nothing of it runs beside other measurements
                self._built.read_apart()  # before it has the device, which would wait
        if self._job.build_only == "launch":
            with self._timed(Stage.RUN):
                self.launched = launched(self._link, self._job, lambda: self._enter(Stage.BUILD))

    def _name_kernels(self) -> None:
        session = self._session
        assert isinstance(session, EmulatedSession)
        evidence = CandidateContext(session, self._job, self._text, self._built)
        self._language, session.foreign = name_kernels(evidence, session.kernels)

    def _forbid(self) -> None:
        """End the evaluation of a candidate that nothing else caught, but that no honest one resembles."""
        failed = forbidden(self._findings)
        if failed is not None:
            raise failed

    def _compare(self, facts: DeviceFacts) -> None:
        job = self._job
        with self._timed(Stage.LOAD):
            device, on_host = torch_device(facts), self._share.unused
            make = partial(Reference, job.problem, job.sizes, device, on_host=on_host)
            self._reference, weights_seed, self._says_little = draw_model(make, draw_seed)
            assert self._baseline is not None
            baseline = BaselineClient(self._baseline, job.settings, str(job.problem.path))
            candidate = RunnerClient(self._link, job.settings)
            candidate.on_build = lambda: self._enter(Stage.BUILD)
            candidate.on_built = lambda: self._enter(self._stage)
            sides = (candidate, baseline)
            arguments = (self._reference, sides, facts, job.settings, self._files, weights_seed, self._share)
            self._session = make_session(*arguments, self._emulated)
            self._session.tell = self._tell
            self._session.prepare()
        with self._timed(Stage.RUN):
            self._session.trials()

    def _look_at_shapes(self, facts: DeviceFacts) -> None:
        """Look at a correct candidate at further shapes, where any are asked for."""
        if self._job.settings.shapes == 0 or self._baseline is None or self._another is None:
            return
        with self._timed(Stage.SHAPES):
            self.release()
            links = (self._link, self._baseline)
            told = (self._memory_bytes, self._text, self._built, self._share, self._emulated)
            checks = ShapeChecks(self._job, facts, links, self._another, *told)
            checks.tell = self._tell
            self._shapes = checks.check()
            self._held = checks.held or self._held

    def _measure(self) -> tuple[Measurement, TrustReport]:
        assert self._session is not None
        session = self._session
        with self._timed(Stage.TIME):
            session.prepare_baseline()
            self._evidence = CandidateContext(session, self._job, self._text, self._built)
            measured, trusted = self._assessed(session, self._evidence)
            if trusted.refusal is not None and self._perhaps_noise(trusted.refusal.kind, trusted.work):
                # Whoever lies does it again; a neighbour's noise hardly comes twice.
                self._tell("once more, to tell noise from a lie")
                session.forget_suspicions()
                measured, trusted = self._assessed(session, self._evidence)
            return measured, trusted

    def _baselines(self, measured: Measurement, trusted: TrustReport) -> tuple[FurtherBaseline, ...]:
        """Time the baselines that were asked for besides eager."""
        assert self._session is not None
        names = self._job.settings.further_baselines
        if not names or trusted.refusal is not None:
            return ()
        with self._timed(Stage.TIME), self._share.alone():
            return further_baselines(self._session, names, measured.speedup)

    def _assessed(self, session: Session, evidence: CandidateContext) -> tuple[Measurement, TrustReport]:
        timing = Timing(session)
        with self._share.alone():
            measured, seen = timing.measure(), timing.witness()
        trusted = assess(evidence, measured, seen, compare_clocks(evidence, measured, seen))
        if trusted.refusal is None and not model_of(self._job.device).on_host:
            self._begin_end(measured)
        return measured, trusted

    def _perhaps_noise(self, kind: FailureKind, work: Work | None) -> bool:
        """Return whether a refusal has to be found twice: what it goes by may be late for want of a processor.

        On a CPU a trace of a few calls tells by time whose work it was. On a GPU the host may have come late to queue
        or to end a call, which no kernel accounts for.
        """
        late = model_of(self._job.device).on_host or (work is not None and work.unexplained > MAX_UNEXPLAINED)
        return kind is FailureKind.SUSPECT or (kind is FailureKind.NOT_OWN and late)

    def _begin_end(self, measured: Measurement) -> None:
        """Begin to end the candidate's runner where it is not needed any more: a GPU's driver takes 0.1 s for that."""
        settings = self._job.settings
        if settings.rules is RuleSet.HKBENCH and settings.shapes == 0 and not self._profiles(measured):
            self._link.begin_end()

    def _probe(self) -> None:
        """See what hkbench's rules make of a candidate that others let pass; whatever it does then, it has passed."""
        assert self._session is not None
        if self._job.settings.rules is RuleSet.HKBENCH:
            return
        self._tell("trials by hkbench's rules")
        failure = self._guarded(self._session.probe)
        if failure is not None:
            self._session.contract.keep(failure)

    def _profiles(self, measured: Measurement) -> bool:
        settings = self._job.settings
        return settings.profile_slow if measured.speedup.value < 1.0 else settings.profile_fast

    def _profile(self) -> KernelProfile | None:
        assert self._session is not None and self._facts is not None and self._evidence is not None
        on_cpu = model_of(self._job.device).on_host
        defined = defined_kernels(self._text, self._job.backend)
        owner_of = owner_of_operator if on_cpu else owner_of_kernel(defined, self._evidence.built)
        with self._share.alone():
            return profiled(self._job, self._session, self._profiler, self._facts, owner_of, self._tell)

    def built(self) -> Built:
        """Return what came of a build that is not measured; ends the runners."""
        return Built(extensions=self.extensions, launched=self.launched, output=self._link.end().output)

    def release(self) -> messages.MemoryHeld | None:
        """Give back what it has of the device, in a process that goes on without this evaluation.

        Returns what the baseline's runner has then; None where it ended before that one had anything to do.

        Raises:
            WorkerLost, RuntimeError: of the baseline's runner, of the driver.
        """
        if self._held is None and self._session is not None:
            self._held = self._session.release()
        return self._held

    def verdict(
        self,
        failure: Failure | None,
        measured: Measurement | None = None,
        trusted: TrustReport | None = None,
        profile: KernelProfile | None = None,
    ) -> Verdict:
        """Close the runner and put everything together.

        Raises:
            DeviceUnavailable: a process of the candidate could not be killed, so the device is not free.
        """
        end = failures.ended(self._link, self._job.code)
        if failure is not None:
            status = Status.REFUSED if failure.kind in REFUSALS else Status.INCORRECT
            measured, trusted, profile = None, None, None
        elif trusted is not None and trusted.refusal is not None:
            status, failure = Status.REFUSED, trusted.refusal
        elif isinstance(self._session, EmulatedSession):
            refused = self._session.not_own() if self._job.settings.track is Track.OWN else None
            status, failure = (Status.EMULATED, None) if refused is None else (Status.REFUSED, refused)
        else:
            assert measured is not None
            status = Status.FAST if measured.speedup.value >= 1.0 else Status.SLOW
        build = self._link.build_seconds
        times = dict(self._times)
        if build:
            times[Stage.LOAD] = max(0.0, times.get(Stage.LOAD, 0.0) - build)
            times[Stage.BUILD] = build
        return Verdict(
            problem=self._job.problem.name,
            status=status,
            failure=self._placed(failure) if failure is not None else None,
            would_fail=tuple(map(self._placed, self._session.contract.kept)) if self._session else (),
            trials=tuple(self._session.passed) if self._session else (),
            baseline=measured.baseline if measured else None,
            candidate=measured.candidate if measured else None,
            speedup=measured.speedup if measured and failure is None else None,
            baselines=self._further if failure is None else (),
            shapes=self._shapes,
            clocks=trusted.clocks if trusted else None,
            contention=measured.contention if measured else None,
            readback=measured.readback if measured else None,
            floor=trusted.floor if trusted else None,
            work=trusted.work if trusted else None,
            ownership=self._ownership(trusted),
            language=self._language,
            precision=lowered(self._link.lowered, self._built, self._findings),
            findings=self._findings,
            profile=profile,
            idle_waits=self._session.idle_waits if isinstance(self._session, EmulatedSession) else (),
            stages=tuple(StageTime(stage=s, seconds=times[s]) for s in Stage if s in times),
            conditions=self._conditions(measured, trusted),
            output=end.output or None,
        )

    def _placed(self, failure: Failure) -> Failure:
        return placed(failure, self._lines, self._findings)

    def _reference_precision(self) -> str | None:
        if self._reference is None or self._session is None:
            return None
        return "native" if self._job.settings.rules is RuleSet.KERNELBENCH else self._reference.precision

    def _ownership(self, trusted: TrustReport | None) -> Ownership | None:
        if isinstance(self._session, EmulatedSession):
            return self._session.ownership
        return trusted.ownership if trusted else None

    def _conditions(self, measured: Measurement | None, trusted: TrustReport | None) -> Conditions:
        session, facts = self._session, self._facts
        warnings = [*(session.notes if session else ()), *(measured.warnings if measured else ())]
        warning = find_backend(self._job.backend).language_warning(self._language)
        warnings += [] if warning is None else [warning]
        not_checked = [f"confinement: {reason}" for reason in self._job.isolation.missing]
        not_checked += session.not_checked if session else ()
        not_checked += [self._says_little] if self._says_little else ()
        not_checked += trusted.not_checked if trusted else ()
        return Conditions(
            backend=self._job.backend,
            device=self._job.device,
            device_name=facts.name if facts else "not reached",
            arch=facts.arch if facts else None,
            device_facts=facts,
            sizes=sizes_in_force(self._job.sizes, self._job.problem),
            versions=versions(),
            candidate_sha256=self._sha256,
            problem_sha256=self._job.problem.sha256,
            track=self._job.settings.track,
            rules=self._job.settings.rules,
            isolation=seen_isolation(self._job.isolation, trusted.unseen if trusted else None),
            seeds=tuple(session.seeds) if session else (),
            tolerances=tuple(session.checker.tolerances.values()) if session else (),
            weights=session.parameters.weights if session else None,
            reference_precision=self._reference_precision(),
            flush_bytes=session.flush_bytes if session else None,
            warmups=self._job.settings.warmups if measured else None,
            not_checked=tuple(not_checked),
            warnings=tuple(warnings),
        )
