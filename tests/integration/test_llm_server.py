"""The client against a real HTTP server that answers well and badly."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import pytest
from support.model_server import ModelServer, Request, Scripted, prompt_of, script

from hkbench.errors import AccessRefused, BudgetReached, ModelUnavailable, ServiceOutage
from hkbench.llm.client import Always, Retry
from hkbench.llm.openai_client import OpenAIClient
from hkbench.llm.settings import ModelSettings
from hkbench.records import AdviceKey, RepairAdvice, Reply, SampleKey, Usage

KEY = "sk-test-0123456789abcdef"
SAMPLE = SampleKey(problem="1_Add", attempt=1, sample=2)
ADVICE = AdviceKey(problem="1_Add", attempt=2, call=1)
GOOD = Scripted(text="the whole text", headers={"x-request-id": "req-7"})
EVERY_WAY = [("chat", True), ("chat", False), ("responses", True), ("responses", False)]

every_way = pytest.mark.parametrize(("api", "stream"), EVERY_WAY)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@asynccontextmanager
async def serving(
    handler: Callable[[Request], Scripted], **settings: Any
) -> AsyncIterator[tuple[OpenAIClient, ModelServer]]:
    with ModelServer(handler) as server:
        chosen = {
            "model": "test-model",
            "first_wait": 0.001,
            "timeout": 20.0,
            "outage": 9.0,
            "max_tries": 3,
            **settings,
        }
        client = OpenAIClient(ModelSettings(base_url=server.base_url, **chosen), KEY)
        try:
            yield client, server
        finally:
            await client.close()


async def ask(*answers: Scripted, **settings: Any) -> tuple[Reply, ModelServer]:
    async with serving(script(*answers), **settings) as (client, server):
        return await client.complete(SAMPLE, "write a kernel"), server


async def refused(*answers: Scripted, **settings: Any) -> tuple[ModelUnavailable, ModelServer]:
    async with serving(script(*answers), **settings) as (client, server):
        with pytest.raises(ModelUnavailable) as caught:
            await client.complete(SAMPLE, "write a kernel")
        return caught.value, server


@every_way
async def test_good_reply(api: str, stream: bool) -> None:
    reply, server = await ask(GOOD, api=api, stream=stream)
    assert reply.text == "the whole text"
    assert reply.model == "test-model"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(input=11, output=29, reasoning=17, cached_input=3)
    assert reply.request_id == "req-7"
    assert reply.tries == 1
    assert reply.seconds is not None
    assert reply.seconds > 0
    assert not reply.replayed
    assert prompt_of(server.requests[0]) == "write a kernel"
    assert server.authorizations == [f"Bearer {KEY}"]


@every_way
async def test_only_given_options_are_sent(api: str, stream: bool) -> None:
    _, plain = await ask(GOOD, api=api, stream=stream)
    asked = {"messages"} if api == "chat" else {"input"}
    streaming = ({"stream", "stream_options"} if api == "chat" else {"stream"}) if stream else set()
    assert set(plain.requests[0]) == {"model"} | asked | streaming
    _, full = await ask(
        GOOD, api=api, stream=stream, temperature=0.5, max_tokens=9, reasoning_effort="high", extra_body={"k": 1}
    )
    request = full.requests[0]
    assert request["temperature"] == 0.5
    assert request["k"] == 1
    if api == "chat":
        assert request["max_completion_tokens"] == 9
        assert request["reasoning_effort"] == "high"
    else:
        assert request["max_output_tokens"] == 9
        assert request["reasoning"] == {"effort": "high"}


async def test_a_stream_that_is_longer_than_asked_for_is_cut() -> None:
    chunk = b'data: {"choices": [{"index": 0, "delta": {"content": "word "}}]}\n\n'
    endless = Scripted(body=1000 * chunk, content_type="text/event-stream")
    reply, _ = await ask(endless, max_tokens=20)
    assert reply.finish_reason == "length" and reply.text.count("word") == 21


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_after_an_empty_stream_the_service_is_asked_why(api: str) -> None:
    too_long = b'{"error": {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}}'

    def handler(request: Request) -> Scripted:
        if "stream" in request:
            return Scripted(body=b"", content_type="text/event-stream")
        return Scripted(status=400, body=too_long)

    async with serving(handler, api=api) as (client, server):
        with pytest.raises(ModelUnavailable, match="context length"):
            await client.complete(SAMPLE, "write a kernel")
    assert ["stream" in request for request in server.requests] == [True, False]


async def test_after_an_empty_stream_one_call_alone_has_none() -> None:
    empty, broken = Scripted(body=b"", content_type="text/event-stream"), Scripted(status=500, body=b"{}")
    reply, server = await ask(empty, broken, GOOD)
    assert reply.text == GOOD.text
    assert ["stream" in request for request in server.requests] == [True, False, True]


@every_way
async def test_a_system_message_is_sent_as_each_api_has_it(api: str, stream: bool) -> None:
    async with serving(script(GOOD), api=api, stream=stream) as (client, server):
        await client.complete(SAMPLE, "write a kernel", system="You know {{HIP}}.")
    request = server.requests[0]
    assert prompt_of(request) == "write a kernel"
    if api == "chat":
        assert [message["role"] for message in request["messages"]] == ["system", "user"]
        assert request["messages"][0]["content"] == "You know {{HIP}}."
    else:
        assert request["instructions"] == "You know {{HIP}}."


@every_way
async def test_a_form_is_asked_for_as_each_api_has_it(api: str, stream: bool) -> None:
    async with serving(script(GOOD), api=api, stream=stream) as (client, server):
        await client.complete(ADVICE, "judge", RepairAdvice)
        await client.complete(SAMPLE, "write")
    formed, plain = server.requests
    assert "response_format" not in plain and "text" not in plain
    form = formed["response_format"]["json_schema"] if api == "chat" else formed["text"]["format"]
    assert form["strict"] is True and form["schema"]["required"] == list(RepairAdvice.model_fields)


@every_way
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_without_a_form_where_the_endpoint_offers_none(api: str, stream: bool, status: int) -> None:
    asked = "response_format" if api == "chat" else "text"

    def handler(request: Request) -> Scripted:
        refusal = b"""{"error": {"message": "'response_format', 'type': 'json_schema': what?"}}"""
        return Scripted(status=status, body=refusal) if asked in request else GOOD

    async with serving(handler, api=api, stream=stream) as (client, server):
        assert (await client.complete(ADVICE, "judge", RepairAdvice)).text == GOOD.text
        await client.complete(ADVICE, "judge", RepairAdvice)
    assert [asked in request for request in server.requests] == [True, False, False]


@pytest.mark.parametrize("status", [400, 401])
async def test_a_refusal_for_another_reason_stays_one(status: int) -> None:
    error = Scripted(status=status, body=b'{"error": {"message": "no such model"}}')
    async with serving(script(error), api="chat") as (client, _):
        with pytest.raises(ModelUnavailable, match="no such model"):
            await client.complete(ADVICE, "judge", RepairAdvice)


@every_way
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_passing_failures_are_tried_again(api: str, stream: bool, status: int) -> None:
    error = Scripted(status=status, body=b'{"error": {"message": "busy"}}')
    reply, server = await ask(error, error, GOOD, api=api, stream=stream)
    assert reply.text == "the whole text"
    assert reply.tries == 3
    assert server.count == 3


@pytest.mark.parametrize(
    "headers",
    [{"retry-after": "0"}, {"retry-after-ms": "2"}, {"retry-after": formatdate(0, usegmt=True)}],
)
async def test_retry_after_replaces_our_own_wait(headers: dict[str, str]) -> None:
    # Our own wait would be an hour: only by taking the server's does the test end.
    limit = Scripted(status=429, headers=headers, body=b"{}")
    reply, _ = await ask(limit, GOOD, first_wait=7200.0, longest_backoff=7200.0)
    assert reply.tries == 2


async def test_a_service_that_asks_for_no_wait_is_not_overrun() -> None:
    limit = Scripted(status=429, headers={"retry-after": "0"}, body=b"{}")
    error, server = await refused(limit, first_wait=0.1, outage=0.5)
    assert isinstance(error, ServiceOutage) and server.count < 10


async def test_retry_after_is_capped() -> None:
    limit = Scripted(status=429, headers={"retry-after": "86400"}, body=b"{}")
    reply, _ = await ask(limit, GOOD, longest_wait=0.01)
    assert reply.tries == 2


BROKEN = {
    "cut stream": Scripted(text="the whole text", cut_after=2),
    "stream without an end": Scripted(text="the whole text", ends_early=True),
    "empty text": Scripted(text=""),
    "only white space": Scripted(text=" \n"),
    "html": Scripted(body=b"<html>Bad gateway</html>", content_type="text/html"),
    "not json": Scripted(body=b'{"choices": [', content_type="application/json"),
    "not even text": Scripted(body=b"\xff\xfe\x00", content_type="application/json"),
    "no fields": Scripted(body=b"{}"),
    "a list": Scripted(body=b"[1, 2]"),
    "empty choices": Scripted(body=b'{"choices": [], "output": []}'),
    "null choices": Scripted(body=b'{"choices": null, "output": null}'),
    "junk in choices": Scripted(body=b'{"choices": [3], "output": [3]}'),
    "error with 200": Scripted(body=b'{"error": {"message": "upstream is gone"}}'),
    "junk events": Scripted(body=b"data: {oops\n\n", content_type="text/event-stream"),
    "junk bytes in a stream": Scripted(body=b"data: \xff\xfe\n\n", content_type="text/event-stream"),
    "number events": Scripted(body=b"data: 5\n\ndata: null\n\n", content_type="text/event-stream"),
    "error event": Scripted(
        body=b'event: error\ndata: {"type": "error", "error": {"message": "overloaded"}}\n\n',
        content_type="text/event-stream",
    ),
    "failed response": Scripted(
        body=b'{"status": "failed", "error": {"message": "oom"}, "output": []}',
    ),
    "short body": Scripted(body=b"{}", headers={"content-length": "100"}),
    "short error body": Scripted(status=500, body=b"{}", headers={"content-length": "100"}),
    "empty stream": Scripted(body=b"", content_type="text/event-stream"),
}


@pytest.mark.parametrize(
    ("api", "stream", "fault"),
    [
        (api, stream, fault)
        for api, stream in EVERY_WAY
        for fault, answer in BROKEN.items()
        if stream or not (answer.cut_after is not None or answer.ends_early)  # these are faults of streams
    ],
)
async def test_broken_answers_are_tried_again(api: str, stream: bool, fault: str) -> None:
    reply, server = await ask(BROKEN[fault], GOOD, api=api, stream=stream)
    assert reply.text == "the whole text"
    assert (reply.tries, server.count) == (2, 2)


async def test_a_cut_after_the_end_of_the_text_loses_nothing() -> None:
    # Four events: role, two halves, finish_reason; the usage event never comes.
    reply, server = await ask(Scripted(text="the whole text", cut_after=4))
    assert reply.text == "the whole text"
    assert reply.usage == Usage()
    assert server.count == 1


@every_way
async def test_exhausted_tries_name_count_and_cause(api: str, stream: bool) -> None:
    down = Scripted(status=503, body=b'{"error": {"message": "no capacity"}}')
    error, server = await refused(down, api=api, stream=stream, outage=0.2)
    assert isinstance(error, ServiceOutage) and error.total
    assert server.count > 1
    for part in (f"{server.count} tries", "no capacity", "503", server.base_url, "--outage"):
        assert part in str(error)


async def test_an_outage_of_no_time_is_not_waited_out() -> None:
    error, server = await refused(Scripted(status=503, headers={"retry-after": "9"}, body=b"{}"), outage=0.0)
    assert isinstance(error, ServiceOutage) and server.count == 1


@every_way
async def test_answers_that_may_have_been_paid_for_are_not_asked_for_without_end(api: str, stream: bool) -> None:
    """A server between gives up waiting, or the connection breaks off: the model may have written each reply."""
    for fault in (Scripted(status=504, body=b"{}"), Scripted(body=b"{}", headers={"content-length": "100"})):
        error, server = await refused(fault, api=api, stream=stream, max_tries=2)
        assert not isinstance(error, ServiceOutage) and server.count == 2


@every_way
@pytest.mark.parametrize(
    ("status", "code"), [(401, None), (402, None), (429, "insufficient_quota"), (429, "billing_hard_limit_reached")]
)
async def test_neither_key_nor_quota_is_tried_twice(api: str, stream: bool, status: int, code: str | None) -> None:
    body = json.dumps({"error": {"message": "no more", "code": code}}).encode()
    error, server = await refused(Scripted(status=status, body=body), api=api, stream=stream)
    assert isinstance(error, AccessRefused) and server.count == 1


async def test_failed_tries_are_told_of() -> None:
    told: list[Retry] = []

    class Listening(Always):
        def retrying(self, retry: Retry) -> None:
            told.append(retry)

    busy, junk = Scripted(status=429, headers={"retry-after": "0"}, body=b"{}"), Scripted(body=b"<html>")
    async with serving(script(busy, junk, GOOD), outage=60.0) as (client, _):
        await client.complete(SAMPLE, "x", permit=Listening())
    assert [(retry.tries, retry.limit, retry.max_tries) for retry in told] == [(1, 60.0, None), (2, None, 3)]
    assert "429" in told[0].cause and told[0].wait == 0.0


@every_way
@pytest.mark.parametrize(
    ("status", "step"),
    [(400, "--model"), (401, "LLM_GATEWAY_KEY"), (403, "--model"), (404, "--base-url"), (422, "options")],
)
async def test_refusals_of_the_service_are_final(api: str, stream: bool, status: int, step: str) -> None:
    body = json.dumps({"error": {"message": f"not with {KEY}, friend"}}).encode()
    error, server = await refused(Scripted(status=status, body=body), api=api, stream=stream)
    assert server.count == 1
    for part in (str(status), "not with [key], friend", step, server.base_url):
        assert part in str(error)


@pytest.mark.parametrize("status", [401, 500, 200])
async def test_the_key_is_never_shown(status: int) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    error, _ = await refused(Scripted(status=status, body=body), outage=0.0)
    seen: BaseException | None = error
    while seen is not None:
        assert KEY not in str(seen)
        seen = seen.__cause__ or seen.__context__
    assert KEY not in "".join(traceback.format_exception(error))
    assert "bad key [key]" in str(error)


async def test_the_key_is_taken_out_of_a_reply() -> None:
    reply, _ = await ask(Scripted(text=f"your key is {KEY}", headers={"x-request-id": KEY}))
    assert KEY not in reply.model_dump_json()
    assert reply.text == "your key is [key]"


@every_way
async def test_a_hang_ends_at_the_timeout(api: str, stream: bool) -> None:
    error, server = await refused(Scripted(hang=True), api=api, stream=stream, timeout=0.8, max_tries=2)
    assert server.count == 2
    assert "no whole reply within 0.8 s" in str(error)


async def test_no_server_at_all() -> None:
    with ModelServer(script(GOOD)) as server:
        gone = server.base_url
    client = OpenAIClient(ModelSettings(model="m", base_url=gone, first_wait=0.001, outage=0.1), KEY)
    with pytest.raises(ModelUnavailable, match="no connection"):
        await client.complete(SAMPLE, "x")
    await client.close()


async def test_user_and_password_of_the_address_are_not_shown() -> None:
    client = OpenAIClient(
        ModelSettings(model="m", base_url="http://user:word@127.0.0.1:1/v1", first_wait=0.001, outage=0.0), KEY
    )
    with pytest.raises(ModelUnavailable) as caught:
        await client.complete(SAMPLE, "x")
    assert "http://127.0.0.1:1/v1/chat/completions" in str(caught.value)
    assert "word@" not in str(caught.value)
    await client.close()


@every_way
async def test_cut_at_the_token_limit_is_a_reply(api: str, stream: bool) -> None:
    reply, _ = await ask(Scripted(text="```python\nhalf", finish_reason="length"), api=api, stream=stream)
    assert (reply.text, reply.finish_reason) == ("```python\nhalf", "length")
    empty, server = await ask(Scripted(finish_reason="length"), api=api, stream=stream)
    assert (empty.text, empty.finish_reason, server.count) == ("", "length", 1)


@every_way
async def test_refusal_and_filter_are_replies(api: str, stream: bool) -> None:
    reply, server = await ask(Scripted(refusal="I will not"), api=api, stream=stream)
    assert (reply.text, reply.finish_reason, server.count) == ("", "refusal", 1)
    reply, server = await ask(Scripted(finish_reason="content_filter"), api=api, stream=stream)
    assert (reply.text, reply.finish_reason, server.count) == ("", "content_filter", 1)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("said", "reason"),
    [("SAFETY", "content_filter"), ("content_filter: PROHIBITED_CONTENT", "content_filter"), ("MAX_TOKENS", "length")],
)
async def test_geminis_own_words_are_replies(said: str, reason: str, stream: bool) -> None:
    reply, server = await ask(Scripted(finish_reason=said), api="chat", stream=stream)
    assert (reply.text, reply.finish_reason, server.count) == ("", reason, 1)


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_service_that_ignores_stream(api: str) -> None:
    reply, _ = await ask(Scripted(text="whole", ignore_stream=True), api=api, stream=True)
    assert reply.text == "whole"
    assert reply.usage.reasoning == 17


@every_way
async def test_missing_usage_is_none(api: str, stream: bool) -> None:
    reply, _ = await ask(Scripted(text="x", usage=None), api=api, stream=stream)
    assert reply.usage == Usage(input=None, output=None, reasoning=None, cached_input=None)


async def test_half_a_surrogate_pair_is_replaced() -> None:
    reply, _ = await ask(Scripted(text="a\ud800b"), stream=False)
    assert reply.text == "a?b"


async def test_concurrency_limit() -> None:
    together = threading.Barrier(3, timeout=20)  # passes only when three requests are there at once

    def handler(request: Request) -> Scripted:
        together.wait()
        time.sleep(0.1)  # room for a fourth to arrive, were there no limit
        return Scripted(text=prompt_of(request))

    async with serving(handler, concurrency=3) as (client, server):
        replies = await asyncio.gather(*(client.complete(SAMPLE, f"p{i}") for i in range(9)))
    assert [reply.text for reply in replies] == [f"p{i}" for i in range(9)]
    assert server.most_at_once == 3


async def test_a_waiting_prompt_leaves_its_slot_to_others() -> None:
    def handler(request: Request) -> Scripted:
        if prompt_of(request) == "first":
            return Scripted(status=429, headers={"retry-after": "3600"}, body=b"{}")
        return Scripted(text="ok")

    async with serving(handler, concurrency=1, longest_wait=3600) as (client, server):
        waiting = asyncio.create_task(client.complete(SAMPLE, "first"))
        while server.count == 0:
            await asyncio.sleep(0.01)
        assert (await client.complete(SAMPLE, "second")).text == "ok"
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


class Ending(Always):
    """A permit for one try; the wait before the next is refused."""

    def __init__(self) -> None:
        self.begun = 0

    def begin(self) -> None:
        self.begun += 1

    async def wait(self, seconds: float) -> None:
        raise BudgetReached(f"no waiting for {seconds:g} s")


async def test_a_run_that_ends_tries_no_more() -> None:
    permit = Ending()
    async with serving(script(Scripted(status=503, headers={"retry-after": "7"}, body=b"down"))) as (client, server):
        with pytest.raises(BudgetReached, match="no waiting for 7 s"):
            await client.complete(SAMPLE, "x", permit=permit)
    assert (permit.begun, server.count) == (1, 1)
