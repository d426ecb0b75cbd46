"""A judge's opinion on a kernel. What the run folder holds of it already is read from there."""

from __future__ import annotations

from typing import Any

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
    Reply,
    SampleKey,
)
from hkbench.store.recorder import Recorder

CALLS = 2  #: the question, and one request to put an unusable answer right


class Adviser:
    """Ask a judge about the kernels of a run."""

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
        unusable: tuple[str, str | None] | None = None
        for call in range(1, CALLS + 1):
            key = AdviceKey(problem=problem.name, attempt=attempt, call=call)
            text, read = await self._call(key, kind, problem, about, reflection, unusable)
            if read.advice is not None:
                return read.advice
            unusable = text, read.note
        why = f"{CALLS} answers of the judge could not be used, the last because {read.note}"
        self._recorder.event(
            Decided(
                problem=problem.name,
                attempt=attempt,
                what="advice",
                choice="none: the verdict alone goes into the prompt",
                why=why,
            )
        )
        return None

    async def _call(
        self,
        key: AdviceKey,
        kind: QuestionKind,
        problem: Problem,
        about: SampleKey,
        reflection: Reflection,
        unusable: tuple[str, str | None] | None,
    ) -> tuple[str, ReadAnswer]:
        form = FORMS[kind]
        known = self._recorder.reply(key, self._model)
        if known is not None:
            read = _read(known, form)
            self._recorder.save_advice(key, _advice_read(kind, about, reflection, read))
            return known.text, read
        prompt = await self._question(key, kind, problem, reflection, unusable)
        event = self._recorder.event
        try:
            with CallPermit(
                self._stop, key, event, lambda: event(AdviceAsked(key=key, kind=kind, about=about))
            ) as turn:
                reply = await self._stop.run_within_grace(self._client.complete(key, prompt, form, turn))
        except RunStopped:
            raise
        except HkbenchError as error:
            self._recorder.event(AdviceFailed.of(key, error))
            raise
        self._recorder.save_reply(key, reply, self._request)
        stored = self._recorder.reply(key, self._model)
        assert stored is not None
        read = _read(stored, form)
        self._recorder.save_advice(key, _advice_read(kind, about, reflection, read))
        event(AdviceReceived.of(key, stored, kind=kind, about=about, form=read.form, note=read.note))
        return stored.text, read

    async def _question(
        self,
        key: AdviceKey,
        kind: QuestionKind,
        problem: Problem,
        reflection: Reflection,
        unusable: tuple[str, str | None] | None,
    ) -> str:
        """Return the text of a call; the one that was sent, when it was sent before."""
        text = self._recorder.question(key)
        if text is not None:
            return text
        answer, because = unusable or (None, None)
        question = Question(shape=shape_of(FORMS[kind]), unusable=answer, because=because)
        prompt = await self._prompter.question(problem, kind, reflection, question)
        self._recorder.save_question(key, prompt)
        return prompt.text


def _read(reply: Reply, form: type[Advice]) -> ReadAnswer:
    read = read_answer(reply.text, form)
    if read.form is AnswerForm.UNUSABLE and reply.finish_reason not in (None, "stop"):
        return ReadAnswer(None, read.form, f"{read.note}; the reply ended by {reply.finish_reason}")
    return read


def _advice_read(kind: QuestionKind, about: SampleKey, reflection: Reflection, read: ReadAnswer) -> AdviceRead:
    return AdviceRead(
        kind=kind,
        about=about,
        metrics=reflection.metrics,
        form=read.form,
        note=read.note,
        said=read.advice.model_dump() if read.advice is not None else None,
    )
