"""Runs a strategy over all problems of a plan."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hkbench.engine import Evaluating
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
from hkbench.lab import Lab, Plan, Stop
from hkbench.lab.advice import Adviser
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ModelClient
from hkbench.records import Problem, ProblemClosed, ProblemStarted, RunClosed, RunConfig, RunStarted, RunStopping
from hkbench.store.recorder import Recorder
from hkbench.strategies import STRATEGIES


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
        evaluator: Evaluating,
        client: ModelClient,
        prompter: Prompter,
        side_by_side: int,
        record: bool = True,
        finished: Mapping[str, ProblemClosed] | None = None,
        stop: Stop | None = None,
        judge: ModelClient | None = None,
        deciding: Mapping[str, Mapping[int, frozenset[int]]] | None = None,
    ) -> None:
        self._config = config
        self._recorder = recorder
        self._evaluator = evaluator
        self._client = client
        self._prompter = prompter
        fields = {"model", "base_url", "api", "temperature", "max_tokens", "reasoning_effort", "replay"}
        self._request = config.model_dump(mode="json", include=fields) if record else None
        self._finished = finished or {}
        self._deciding = deciding or {}
        self._stop = stop or Stop()
        self._adviser: Adviser | None = None
        if config.judge_model is not None:
            service = (judge or client, config.judge_model)
            self._adviser = Adviser(*service, prompter, recorder, self._request, self._stop)
        self._turns = asyncio.Semaphore(side_by_side)
        self._labs: set[Lab] = set()  # under way
        self._answered = False  # by the service, for a problem that is done
        self._outcome = Outcome()

    async def run(self, problems: tuple[Problem, ...], resumed: bool) -> Outcome:
        """All problems. A failure of the machine or of hkbench ends its problem only.

        A service that never answered ends the run, and so does a file that cannot be written.

        A run that is told to end finishes what is under way; problems that it leaves are not closed in the journal.
        """
        for problem in problems:
            self._recorder.save_reference(problem)
        places = self._evaluator.places
        self._stop.on_told = self._stopping
        self._recorder.event(RunStarted(time=time.time(), resumed=resumed, host=platform.node(), devices=places))
        reason: str | None = "interrupted"
        try:
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
            if reason is None and self._stop.refused:
                self._outcome.stopped = self._stop.reason()
                reason = _said(self._outcome.stopped)
            elif reason is None and self._outcome.errors:
                reason = f"{_problems(len(self._outcome.errors))} could not be finished"
            self._recorder.event(RunClosed(time=time.time(), complete=reason is None, reason=reason))
        return self._outcome

    def _stopping(self, reason: RunStopped) -> None:
        self._recorder.event(RunStopping(time=time.time(), reason=_said(reason)))

    async def _problem(self, problem: Problem) -> None:
        async with self._turns:
            if self._stop.leaves_evaluations or (self._stop.told and self._recorder.prompt(problem.name, 1) is None):
                self._stop.refuse()
                return
            config = self._config
            parts = (self._prompter, self._client, self._evaluator, self._recorder)
            deciding = self._deciding.get(problem.name)
            lab = Lab(problem, *parts, config.model, self._request, self._stop, self._adviser, deciding)
            self._labs.add(lab)
            self._recorder.event(ProblemStarted(time=time.time(), problem=problem.name))
            plan = Plan(config.samples, config.attempts, config.exhaust, config.from_best)
            error: HkbenchError | None = None
            try:
                await STRATEGIES[config.strategy].run(lab, plan)
            except ModelUnavailable as failure:
                if not (self._answered or any(lab.answered for lab in self._labs)):
                    raise  # it never answered: the other problems would only repeat this
                if isinstance(failure, AccessRefused) or (isinstance(failure, ServiceOutage) and failure.total):
                    self._stop.end(_lost(failure))
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

    def _close(self, lab: Lab, error: HkbenchError | None) -> None:
        name, best = lab.problem.name, lab.best_of_all
        solved = best is not None and best.solved
        self._outcome.finished += 1
        self._outcome.solved += solved
        if error is not None:
            self._outcome.errors[name] = error
        speedup = best.verdict.speedup if best is not None and best.verdict is not None else None
        self._recorder.event(
            ProblemClosed(
                time=time.time(),
                problem=name,
                solved=solved,
                compiled=best is not None and best.compiled,
                best=best.key if best is not None else None,
                speedup=speedup.value if speedup is not None else None,
                category=lab.category,
                error=f"{type(error).__name__}: {error}" if error is not None else None,
            )
        )


def _said(reason: RunStopped) -> str:
    return "interrupted" if isinstance(reason, Interrupted) else str(reason)


async def run_batch(batch: Batch, problems: tuple[Problem, ...], resumed: bool) -> Outcome:
    """Runs the batch; a failure that ends it comes as itself, not wrapped in a group."""
    try:
        return await batch.run(problems, resumed)
    except ExceptionGroup as errors:
        raise _first(errors) from None


def _problems(count: int) -> str:
    return f"{count} problem{'' if count == 1 else 's'}"


def _lost(failure: ModelUnavailable) -> Callable[[], ServiceLost]:
    return lambda: ServiceLost(f"{failure}; the same command resumes the run")


def _first(group: ExceptionGroup[Exception]) -> Exception:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, ExceptionGroup) else inner
