"""A model's opinion on a kernel. What the run folder holds of it already is read from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkbench.categories import key_metrics, metric_names
from hkbench.errors import HkbenchError, RunStopped
from hkbench.lab.prompting import Prompter
from hkbench.lab.stop import CallPermit, Stop
from hkbench.llm.client import ModelClient
from hkbench.llm.structured import ReadAnswer, read_answer, shape_of
from hkbench.prompts import Question, Reflection
from hkbench.records import (
    FORMS,
    Advice,
    AdviceAsked,
    AdviceFailed,
    AdviceKey,
    AdviceRead,
    AdviceReceived,
    AnswerForm,
    Decided,
    Problem,
    QuestionKind,
    Record,
    Reply,
    SampleKey,
    Verdict,
)
from hkbench.store.recorder import Recorder

CALLS = 2  #: the question, and one request to put an unusable answer right


@dataclass(frozen=True)
class Inquiry:
    """A question on the kernel that `reflection` shows, for the prompt of `attempt`."""

    kind: QuestionKind
    form: type[Advice]  #: of the answer
    problem: Problem
    about: SampleKey
    reflection: Reflection
    attempt: int
    told: Record | None = None  #: what an agent is given besides


@dataclass(frozen=True)
class Answer:
    """What became of a question."""

    advice: Advice | None  #: `None`: no answer could be used
    text: str  #: of the last reply
    note: str | None  #: what was wrong with it


class Adviser:
    """Ask a second model about the kernels of a run."""

    def __init__(
        self,
        client: ModelClient,
        model: str,
        prompter: Prompter,
        recorder: Recorder,
        request: dict[str, Any] | None = None,
        stop: Stop | None = None,
    ) -> None:
        self._client = client
        self._model = model
        self._prompter = prompter
        self._recorder = recorder
        self._stop = stop or Stop()
        self._request = None if request is None else request | {"model": model}

    async def ask(
        self, kind: QuestionKind, problem: Problem, about: SampleKey, reflection: Reflection, attempt: int
    ) -> Advice | None:
        """Return what the judge says of the kernel that `reflection` shows, for the prompt of `attempt`.

        `None` when neither its answer nor the one to a second request can be used; the journal says so.

        Raises:
            HkbenchError: the service failed.
            RunStopped: the run ends, and the judge was not asked.
        """
        answer = await self.inquire(Inquiry(kind, FORMS[kind], problem, about, reflection, attempt))
        if answer.advice is None:
            why = f"{CALLS} answers of the judge could not be used, the last because {answer.note}"
            choice = "none: the verdict alone goes into the prompt"
            self._recorder.event(Decided(problem=problem.name, attempt=attempt, what="advice", choice=choice, why=why))
        return answer.advice

    async def inquire(self, inquiry: Inquiry, *, empty_again: bool = True) -> Answer:
        """Return the answer, asked for once more where the first one cannot be used.

        `empty_again`: also where the first one is empty, as that of a model that refuses.

        Raises:
            HkbenchError, RunStopped: as of `ask`.
        """
        unusable: Answer | None = None
        for call in range(1, CALLS + 1):
            key = AdviceKey(problem=inquiry.problem.name, attempt=inquiry.attempt, call=call, role=inquiry.kind.role)
            text, read = await self._call(key, inquiry, unusable)
            answer = Answer(read.advice, text, read.note)
            if read.advice is not None or not (text.strip() or empty_again):
                return answer
            unusable = answer
        return answer

    async def _call(self, key: AdviceKey, inquiry: Inquiry, unusable: Answer | None) -> tuple[str, ReadAnswer]:
        known = self._recorder.reply(key, self._model)
        if known is not None:
            read = _read(known, inquiry.form)
            self._recorder.save_advice(key, _advice_read(inquiry, read))
            return known.text, read
        prompt = await self._question(key, inquiry, unusable)
        event, kind, about = self._recorder.event, inquiry.kind, inquiry.about
        try:
            with CallPermit(
                self._stop, key, event, lambda: event(AdviceAsked(key=key, kind=kind, about=about))
            ) as turn:
                reply = await self._stop.run_within_grace(self._client.complete(key, prompt, inquiry.form, turn))
        except RunStopped:
            raise
        except HkbenchError as error:
            self._recorder.event(AdviceFailed.of(key, error))
            raise
        self._recorder.save_reply(key, reply, self._request)
        stored = self._recorder.reply(key, self._model)
        assert stored is not None
        read = _read(stored, inquiry.form)
        self._recorder.save_advice(key, _advice_read(inquiry, read))
        event(AdviceReceived.of(key, stored, kind=kind, about=about, form=read.form, note=read.note))
        return stored.text, read

    async def _question(self, key: AdviceKey, inquiry: Inquiry, unusable: Answer | None) -> str:
        """Return the text of a call; the one that was sent, when it was sent before."""
        text = self._recorder.question(key)
        if text is not None:
            return text
        question = Question(
            shape=shape_of(inquiry.form),
            unusable=unusable.text if unusable is not None else None,
            because=unusable.note if unusable is not None else None,
            told=_told(inquiry) or {},
        )
        prompt = await self._prompter.question(inquiry.problem, inquiry.kind, inquiry.reflection, question)
        self._recorder.save_question(key, prompt)
        return prompt.text


def _read(reply: Reply, form: type[Advice]) -> ReadAnswer:
    read = read_answer(reply.text, form)
    if read.form is AnswerForm.UNUSABLE and reply.finish_reason not in (None, "stop"):
        return ReadAnswer(None, read.form, f"{read.note}; the reply ended by {reply.finish_reason}")
    return read


def _told(inquiry: Inquiry) -> dict[str, Any] | None:
    return inquiry.told.model_dump(mode="json") if inquiry.told is not None else None


def _advice_read(inquiry: Inquiry, read: ReadAnswer) -> AdviceRead:
    return AdviceRead(
        kind=inquiry.kind,
        about=inquiry.about,
        metrics=inquiry.reflection.metrics,
        form=read.form,
        note=read.note,
        said=read.advice.model_dump() if read.advice is not None else None,
        version=inquiry.form.version,
        told=_told(inquiry),
    )


def with_metrics(reflection: Reflection, verdict: Verdict | None) -> Reflection:
    """Return the reflection on a kernel with all metrics of its profile, where there is one."""
    if verdict is None or verdict.profile is None:
        return reflection
    return reflection.model_copy(update={"metrics": key_metrics(verdict.profile, metric_names(verdict.profile))})
