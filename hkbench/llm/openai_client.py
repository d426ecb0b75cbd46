"""A client of any service that speaks OpenAI's chat completions or Responses API."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, retry_if_exception_type

from hkbench.errors import AccessRefused, ModelUnavailable, ServiceOutage
from hkbench.llm.answers import (
    Answer,
    BadAnswer,
    ChatStream,
    EmptyStream,
    ResponsesStream,
    Stream,
    chat_answer,
    responses_answer,
)
from hkbench.llm.client import ALWAYS, Permit, Retry
from hkbench.llm.key import redact
from hkbench.llm.retry import Patience, Transient, is_outage, is_retried, refuses_access, requested_wait
from hkbench.llm.settings import ModelSettings
from hkbench.llm.structured import schema_of
from hkbench.records import Advice, CallKey, Reply

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI, AsyncStream

_log = logging.getLogger(__name__)
_PATHS = {"chat": "/chat/completions", "responses": "/responses"}
_MESSAGE_LIMIT = 500  #: characters of a server's own message that are worth showing
_REFUSES_FORMS = frozenset({400, 422})  #: what services answer to a request for JSON of a form that they do not offer
_NEXT_STEP = {
    401: "check LLM_GATEWAY_KEY (or OPENAI_API_KEY, GOOGLE_API_KEY)",
    402: "the account has no credit left: pay in, or use another key",
    429: "the quota is used up: raise it, or use another key",
    403: "this key may not use the model: choose another --model or another key",
    404: "check --model and --base-url",
    422: "check --model, the sampling options and whether the service accepts streams",
    400: "check --model, the sampling options and whether the service accepts streams",
}


class _FormRefused(Exception):
    """The request with a form for its answer was refused; without one it may be served."""


class _Messages(NamedTuple):
    """What a call says, as each API wants it."""

    system: str | None
    user: str

    def chat(self) -> dict[str, object]:
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return {"messages": [*system, {"role": "user", "content": self.user}]}

    def responses(self) -> dict[str, object]:
        system = {} if self.system is None else {"instructions": self.system}
        return {"input": self.user, **system}


class OpenAIClient:
    """Ask one model. Retry what may pass, refuse at once what will not, and never show the key."""

    def __init__(self, settings: ModelSettings, key: str) -> None:
        """Take `key`, which is sent to the service and kept nowhere else (see `hkbench.llm.api_key`)."""
        self._settings = settings
        self._key = key
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._library: AsyncOpenAI | None = None
        self._offers_forms = True  # until it refuses one
        self._answered: float | None = None  # when the last reply came, by the monotonic clock

    async def complete(
        self,
        key: CallKey,  # noqa: ARG002 - for clients that know replies by it
        prompt: str,
        form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        """Return one reply.

        Raises:
            AccessRefused: the key or the quota; no other call will be served.
            ServiceOutage: there was no answer for as long as `outage` says.
            ModelUnavailable: this request is refused, or `max_tries` answers could not be used.
        """
        messages = _Messages(system, prompt)
        if form is not None and self._offers_forms:
            try:
                return await self._complete(messages, form, permit)
            except _FormRefused:
                self._offers_forms = False
        return await self._complete(messages, None, permit)

    async def _complete(self, prompt: _Messages, form: type[Advice] | None, permit: Permit) -> Reply:
        patience, tries, last = Patience(self._settings), 0, Transient("")
        stream = self._settings.stream
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Transient),
            wait=patience.wait,
            stop=patience.stop,
            before_sleep=lambda state: _tell_retry(permit, patience.told(state)),
            sleep=permit.wait,
            reraise=True,
        )
        try:
            async for attempt in retrying:
                tries = attempt.retry_state.attempt_number
                with attempt:
                    try:
                        reply = await self._try(prompt, form, tries, permit, stream)
                    except Transient as error:
                        stream = self._settings.stream and not error.mute
                        raise
                    self._answered = time.monotonic()
                    return reply
        except Transient as error:
            last = error
        # Raised out here so that no library error, which may quote the key, hangs on it as its context.
        raise self._given_up(last, tries, patience.first_failure or 0.0)

    def _given_up(self, last: Transient, tries: int, since: float) -> ModelUnavailable:
        made = f"{tries} {'try' if tries == 1 else 'tries'}"
        said = f"{self._endpoint()} {{}}: {made}, the last one: {last}. Try again later"
        if not last.outage:
            return ModelUnavailable(said.format("kept failing"))
        waited = f"gave no answer for {_span(self._settings.outage)}"
        total = self._answered is None or self._answered < since
        return ServiceOutage(f"{said.format(waited)}, or wait longer with --outage", total=total)

    async def try_once(self, prompt: str) -> Reply:
        """Return one try. Raises Transient, which another may mend, ModelUnavailable or AccessRefused."""
        return await self._try(_Messages(None, prompt), None, 1, ALWAYS, self._settings.stream)

    async def close(self) -> None:
        if self._library is not None:
            await self._library.close()
            self._library = None

    async def _try(
        self, prompt: _Messages, form: type[Advice] | None, number: int, permit: Permit, stream: bool
    ) -> Reply:
        """Return one call, within a slot and a time limit. Raises Transient, ModelUnavailable or _FormRefused."""
        import httpx2  # comes with openai; both are imported late because they take a second
        import openai

        failure: Transient | ModelUnavailable | _FormRefused
        async with self._slots:
            permit.begin()
            begun = time.perf_counter()
            _log.debug("call %s of %s: %d characters", number, self._settings.model, len(prompt.user))
            try:
                async with asyncio.timeout(self._settings.timeout):
                    answer, request_id = await self._call(prompt, form, stream)
                return self._reply(answer, request_id, time.perf_counter() - begun, number)
            except (TimeoutError, openai.APITimeoutError) as error:
                failure = Transient(f"no whole reply within {self._settings.timeout:g} s", slow=True)
                if isinstance(error.__cause__, httpx2.ConnectTimeout):
                    failure = Transient(f"no connection within {self._settings.connect_timeout:g} s", outage=True)
            except openai.APIError as error:
                failure = self._classify(error)
                if form is not None and _refuses_form(error):
                    failure = _FormRefused()
            except httpx2.HTTPError as error:
                failure = Transient(self._clean(f"the connection broke: {error}"))
            except BadAnswer as error:
                failure = Transient(self._clean(str(error)), mute=isinstance(error, EmptyStream))
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                failure = Transient(self._clean(f"the body is not JSON: {error}"))
        raise failure

    async def _call(self, prompt: _Messages, form: type[Advice] | None, stream: bool) -> tuple[Answer, str | None]:
        import httpx2
        from openai import AsyncStream

        library = self._open()
        path, body = _PATHS[self._settings.api], self._request(prompt, form, stream)
        if not stream:
            response = await library.post(path, body=body, cast_to=httpx2.Response)
            return self._whole(response.text, response.headers), _request_id(response.headers)
        events = await library.post(path, body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object])
        async with events:
            headers = events.response.headers
            if "event-stream" in headers.get("content-type", "event-stream"):
                return await self._streamed(events), _request_id(headers)
            # A service that does not stream answers with the whole object, and a proxy with its own page.
            await events.response.aread()
            return self._whole(events.response.text, headers), _request_id(headers)

    async def _streamed(self, events: AsyncStream[object]) -> Answer:
        from openai import APIConnectionError

        chat = self._settings.api == "chat"
        stream: Stream = ChatStream(self._settings.max_tokens) if chat else ResponsesStream()
        try:
            async for event in events:
                stream.add(event)
                if stream.cut:
                    break
        except APIConnectionError:
            if not stream.finished:  # else the whole reply is here, and it is paid for
                raise
        return stream.answer()

    def _whole(self, text: str, headers: Mapping[str, str]) -> Answer:
        try:
            body = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            kind = headers.get("content-type", "no content type")
            raise BadAnswer(f"the body is not JSON ({kind}): {text[:200]!r}") from None
        return chat_answer(body) if self._settings.api == "chat" else responses_answer(body)

    def _request(self, prompt: _Messages, form: type[Advice] | None, stream: bool) -> dict[str, object]:
        """Return the request's JSON; only what the settings name is sent."""
        settings = self._settings
        chat = settings.api == "chat"
        optional = {
            "temperature": settings.temperature,
            ("max_completion_tokens" if chat else "max_output_tokens"): settings.max_tokens,
            ("reasoning_effort" if chat else "reasoning"): settings.reasoning_effort
            if chat or settings.reasoning_effort is None
            else {"effort": settings.reasoning_effort},
            ("response_format" if chat else "text"): None if form is None else _formatted(form, chat),
            "stream": True if stream else None,
            "stream_options": {"include_usage": True} if chat and stream else None,
        }
        asked = prompt.chat() if chat else prompt.responses()
        given = {name: value for name, value in optional.items() if value is not None}
        return {"model": settings.model, **asked, **given, **settings.extra_body}

    def _classify(self, error: APIError) -> Transient | ModelUnavailable:
        """Sort the library's error into what may pass and what will not."""
        import httpx2
        from openai import APIConnectionError, APIStatusError

        if isinstance(error, APIConnectionError):
            if isinstance(error.__cause__, httpx2.ConnectError):
                return Transient(self._clean(f"no connection: {error.__cause__}"), outage=True)
            return Transient(self._clean(f"the connection broke: {error.__cause__ or error.message}"))
        if not isinstance(error, APIStatusError):  # an error event inside a stream
            return Transient(self._clean(f"the service reported: {error.message}"))
        said = f"HTTP {error.status_code}: {self._clean(error.message)}"
        final = refuses_access(error.status_code, (error.code, error.type))
        if is_retried(error.status_code) and not final:
            wait = requested_wait(error.response.headers)
            return Transient(said, wait, outage=is_outage(error.status_code))
        step = _NEXT_STEP.get(error.status_code, "check --base-url and the request's options")
        kind = AccessRefused if final else ModelUnavailable
        refusal = kind(f"{self._endpoint()} refused the request with {said}; {step}")
        refusal.status = error.status_code
        return refusal

    def _reply(self, answer: Answer, request_id: str | None, seconds: float, tries: int) -> Reply:
        reply = Reply(
            text=redact(answer.text, self._key),
            model=redact(answer.model or self._settings.model, self._key),
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            seconds=seconds,
            tries=tries,
            request_id=redact(request_id, self._key) if request_id else None,
        )
        told = (reply.model, seconds, tries, reply.usage.input, reply.usage.output, reply.finish_reason)
        _log.info("reply of %s in %.1f s (try %d), tokens %s in, %s out, ended by %s", *told)
        if not reply.text.strip():
            _log.warning("empty answer of %s, ended by %s: it counts as a reply without code", *told[:1], told[-1])
        return reply

    def _open(self) -> AsyncOpenAI:
        if self._library is None:
            from openai import AsyncOpenAI, Timeout

            settings = self._settings
            self._library = AsyncOpenAI(
                api_key=self._key,
                base_url=settings.base_url,
                timeout=Timeout(settings.timeout, connect=settings.connect_timeout),
                max_retries=0,
            )
        return self._library

    def _endpoint(self) -> str:
        """Return the address that is called, without any user and password in it."""
        url = urlsplit(str(self._open().base_url))
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}{_PATHS[self._settings.api]}"

    def _clean(self, message: str) -> str:
        line = " ".join(redact(message, self._key).split())
        return line if len(line) <= _MESSAGE_LIMIT else line[:_MESSAGE_LIMIT] + "..."


def _refuses_form(error: APIError) -> bool:
    """Return whether a request for JSON of a form was refused for that form, as far as can be told.

    llama-cpp-python's server answers with an error of its own (500), which names the field.
    """
    status = getattr(error, "status_code", None)
    return status in _REFUSES_FORMS or (status is not None and "json_schema" in error.message)


def _tell_retry(permit: Permit, retry: Retry) -> None:
    _log.warning("try %d failed: %s; the next one in %.1f s", retry.tries, retry.cause, retry.wait)
    permit.retrying(retry)


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _formatted(form: type[Advice], chat: bool) -> dict[str, object]:
    """Return structured output as each API asks for it."""
    named: dict[str, object] = {"name": form.__name__, "schema": schema_of(form), "strict": True}
    return {"type": "json_schema", "json_schema": named} if chat else {"format": {"type": "json_schema"} | named}


def _request_id(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-request-id")
