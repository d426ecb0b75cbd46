"""Run a strategy over all problems of a plan."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hkbench.engine import Evaluator
from hkbench.errors import (
    AccessRefused,
    HkbenchError,
    Interrupted,
    ModelUnavailable,
    RunStopped,
    ServiceLost,
    ServiceOutage,
    unexpected,
)
from hkbench.headline import plural
from hkbench.lab import Lab, Stop
from hkbench.lab.advice import Adviser
from hkbench.lab.experience import Memory, Recaller
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ModelClient
from hkbench.records import Problem, ProblemClosed, ProblemStarted, RunClosed, RunConfig, RunStarted, RunStopping
from hkbench.store.recorder import Recorder
from hkbench.store.samples import ProblemState
from hkbench.strategies import find_strategy


@dataclass
class Outcome:
    """How a run ended: problems solved, and what the machine or the service failed at, by problem."""

    solved: int = 0
    finished: int = 0
    errors: dict[str, HkbenchError] = field(default_factory=dict)
    stopped: RunStopped | None = None  #: why problems were left, where some were

    @property
    def complete(self) -> bool:
        return not self.errors and self.stopped is None


class Batch:
    """One run in one folder. `side_by_side` problems are under way at once; those `finished` before are left alone."""

    def __init__(
        self,
        config: RunConfig,
        recorder: Recorder,
        evaluator: Evaluator,
        client: ModelClient,
        prompter: Prompter,
        side_by_side: int,
        record: bool = True,
        finished: Mapping[str, ProblemClosed] | None = None,
        stop: Stop | None = None,
        judge: ModelClient | None = None,
        before: Mapping[str, ProblemState] | None = None,
        memory: Memory | None = None,
        first: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Set up.

        `before`: by problem what the journal held at the start; `memory`: what is asked of earlier runs; `first`: done
        when the session has begun, before any problem.
        """
        self._config = config
        self._recorder = recorder
        self._evaluator = evaluator
        self._client = client
        self._prompter = prompter
        fields = {"model", "base_url", "api", "temperature", "max_tokens", "reasoning_effort", "replay"}
        self._request = config.model_dump(mode="json", include=fields) if record else None
        self._finished = finished or {}
        self._before = before or {}
        self._memory = memory
        self._first = first
        self._stop = stop or Stop()
        self._adviser: Adviser | None = None
        if config.judge_model is not None:
            service = (judge or client, config.judge_model)
            self._adviser = Adviser(*service, prompter, recorder, self._request, self._stop)
        self._strategy = find_strategy(config.strategy.name)
        self._options = self._strategy.recorded(config)
        self._turns = asyncio.Semaphore(side_by_side)
        self._labs: set[Lab] = set()  # under way
        self._answered = False  # by the service, for a problem that is done
        self._outcome = Outcome()

    async def run(self, problems: tuple[Problem, ...], resumed: bool) -> Outcome:
        """Return all problems. A failure of the machine or of hkbench ends its problem only.

        A service that never answered ends the run, and so does a file that cannot be written.

        A run that is asked to stop finishes what is under way; problems that it leaves are not closed in the journal.
        """
        for problem in problems:
            self._recorder.save_reference(problem)
        places = self._evaluator.places
        self._stop.on_request = lambda why: self._recorder.event(RunStopping(reason=_said(why)))
        self._recorder.event(RunStarted(resumed=resumed, host=platform.node(), devices=places))
        reason: str | None = "interrupted"
        try:
            if self._first is not None:
                with suppress(RunStopped):  # so do the problems
                    await self._stop.run_unless_cancelled(self._first())
            async with asyncio.TaskGroup() as group:
                for problem in problems:
                    if problem.name in self._finished:
                        self._outcome.finished += 1
                        self._outcome.solved += self._finished[problem.name].solved
                    else:
                        group.create_task(self._problem(problem))
            reason = None
        except ExceptionGroup as errors:
            reason = str(_first(errors))
            raise
        finally:
            if reason is None and self._stop.skipped:
                self._outcome.stopped = self._stop.reason()
                reason = _said(self._outcome.stopped)
            elif reason is None and self._outcome.errors:
                reason = f"{plural(len(self._outcome.errors), 'problem')} could not be finished"
            self._recorder.event(RunClosed(complete=reason is None, reason=reason))
        return self._outcome

    async def _problem(self, problem: Problem) -> None:
        async with self._turns:
            if self._stop.cancels_evaluations or (
                self._stop.requested and self._recorder.prompt(problem.name, 1) is None
            ):
                self._stop.mark_skipped()
                return
            config = self._config
            parts = (self._prompter, self._client, self._evaluator, self._recorder)
            services = (config.model, self._request, self._stop, self._adviser)
            before = self._before.get(problem.name, ProblemState())
            recaller = self._recaller(problem, before)
            lab = Lab(problem, *parts, *services, before, self._strategy.describe, recaller)
            self._labs.add(lab)
            self._recorder.event(ProblemStarted(problem=problem.name))
            error: HkbenchError | None = None
            try:
                await self._strategy.run(lab, self._options)
            except ModelUnavailable as failure:
                if not (self._answered or any(lab.answered for lab in self._labs)):
                    raise  # it never answered: the other problems would only repeat this
                if isinstance(failure, AccessRefused) or (isinstance(failure, ServiceOutage) and failure.total):
                    self._stop.request(partial(ServiceLost, f"{failure}; the same command resumes the run"))
                error = failure
            except RunStopped:
                return
            except HkbenchError as failure:
                error = failure
            except OSError:
                raise  # of the run folder: nothing more can be recorded
            except Exception as failure:  # noqa: BLE001 - a task ends: the other problems go on
                error = unexpected(problem.name, failure)
            finally:
                self._labs.discard(lab)
                self._answered |= lab.answered
            self._close(lab, error or lab.failed)

    def _recaller(self, problem: Problem, before: ProblemState) -> Recaller | None:
        if self._memory is None:
            return None
        return Recaller(self._memory, problem, self._config.backend, self._recorder, before.recalled)

    def _close(self, lab: Lab, error: HkbenchError | None) -> None:
        name, best = lab.problem.name, lab.best_of_all
        solved = best is not None and best.solved
        self._outcome.finished += 1
        self._outcome.solved += solved
        if error is not None:
            self._outcome.errors[name] = error
        judged = (best.key, best.verdict) if best is not None and best.verdict is not None else None
        said = f"{type(error).__name__}: {error}" if error is not None else None
        self._recorder.event(ProblemClosed.of(name, judged, lab.category, said))


def _said(reason: RunStopped) -> str:
    return "interrupted" if isinstance(reason, Interrupted) else str(reason)


async def run_batch(batch: Batch, problems: tuple[Problem, ...], resumed: bool) -> Outcome:
    """Run the batch; a failure that ends it comes as itself, not wrapped in a group."""
    try:
        return await batch.run(problems, resumed)
    except ExceptionGroup as errors:
        raise _first(errors) from None


def _first(group: ExceptionGroup[Exception]) -> Exception:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, ExceptionGroup) else inner
