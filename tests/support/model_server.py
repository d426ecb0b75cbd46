"""A real HTTP server on 127.0.0.1 that answers as a model service does, or as a broken one.

    with ModelServer(script(Scripted(status=500), Scripted(text="hello"))) as server:
        client = OpenAIClient(ModelSettings(model="m", base_url=server.base_url), "some key")

The handler gets the request's JSON and returns what to answer; `prompt_of` tells what was asked, so a handler
may choose the reply by the problem that the prompt names. It runs on the server's threads, one a request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Request = dict[str, Any]

MODELS = ("test-model", "m", "smith", "sage")  #: that a service lists, if a test says nothing else
USAGE = {"input": 11, "output": 29, "reasoning": 17, "cached": 3}


@dataclass(frozen=True)
class Scripted:
    """One answer. Without `body`, a good one in the shape that the request asked for."""

    text: str = ""
    finish_reason: str = "stop"  #: "length" and "content_filter" are translated for the Responses API
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  #: sent as it is
    content_type: str = "application/json"  #: of `body`
    cut_after: int | None = None  #: of a stream: events sent before the connection is dropped
    ends_early: bool = False  #: of a stream: it ends properly, but without the event that finishes it
    hang: bool = False  #: no answer until the server is closed
    ignore_stream: bool = False  #: answer a request for a stream with the whole object
    usage: Mapping[str, int] | None = field(default_factory=lambda: dict(USAGE))


def prompt_of(request: Request) -> str:
    """Return the text that was asked, of either API."""
    return str(request["messages"][-1]["content"] if "messages" in request else request["input"])


def script(*answers: Scripted) -> Callable[[Request], Scripted]:
    """Return a handler that gives `answers` in turn, and the last one from then on."""
    lock, left = threading.Lock(), list(answers)

    def handler(_: Request) -> Scripted:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return handler


def environment(server: ModelServer) -> dict[str, str]:
    """Return what makes `server` the model service of a command."""
    return {"LLM_GATEWAY_URL": server.base_url, "LLM_GATEWAY_KEY": "sk-test-0123456789", "LLM_MODEL": "test-model"}


class ModelServer:
    """Run from `with` to its end. `requests` holds what was asked, in the order of arrival."""

    def __init__(self, handler: Callable[[Request], Scripted], models: Scripted | None = None) -> None:
        """`models` is what GET /v1/models answers: by default a list of `MODELS`."""
        listed = json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        self.models = models or Scripted(body=listed.encode())
        self.requests: list[Request] = []
        self.authorizations: list[str | None] = []
        self.most_at_once = 0
        self.errors: list[str] = []  #: what went wrong in the server itself
        self._at_once = 0
        self._lock = threading.Lock()
        self._answer = handler
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler_class())
        self._http.daemon_threads = False  # so that closing waits for the threads
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def count(self) -> int:
        """Requests that have arrived."""
        return len(self.requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        assert not self.errors, self.errors

    def _serve(self, http: BaseHTTPRequestHandler) -> None:
        request = json.loads(http.rfile.read(int(http.headers["content-length"])))
        with self._lock:
            self.requests.append(request)
            self.authorizations.append(http.headers.get("authorization"))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            answer = self._answer(request)
        finally:
            # Before anything is sent: once a client has its answer, its next request may come at any time.
            with self._lock:
                self._at_once -= 1
        if answer.hang:
            self._closing.wait()
            return
        if request.get("stream") and answer.body is None and not answer.ignore_stream:
            _send_stream(http, answer, list(_events(http.path, request["model"], answer)))
        else:
            body = answer.body
            if body is None:
                body = json.dumps(_whole(http.path, request["model"], answer)).encode()
            _send_head(http, answer, answer.content_type, {"content-length": str(len(body))})
            http.wfile.write(body)

    def _handler_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.close_connection = True
                with server._lock:
                    server.authorizations.append(self.headers.get("authorization"))
                if server.models.hang:
                    server._closing.wait()
                    return
                body = server.models.body or b""
                _send_head(self, server.models, server.models.content_type, {"content-length": str(len(body))})
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.close_connection = True  # set again after each request: one connection, one answer
                try:
                    server._serve(self)
                except ConnectionError:
                    return  # the client gave up, as some tests want
                except Exception as error:
                    server.errors.append(repr(error))
                    raise

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        Handler.protocol_version = "HTTP/1.1"
        return Handler


def _send_head(http: BaseHTTPRequestHandler, answer: Scripted, content_type: str, more: Mapping[str, str]) -> None:
    http.send_response(answer.status)
    for name, value in {"content-type": content_type, "connection": "close", **more, **answer.headers}.items():
        http.send_header(name, value)
    http.end_headers()


def _send_stream(http: BaseHTTPRequestHandler, answer: Scripted, events: list[dict[str, Any]]) -> None:
    _send_head(http, answer, "text/event-stream", {"transfer-encoding": "chunked"})
    if answer.ends_early:
        events = events[: max(1, len(events) // 2)]
    for event in events[: answer.cut_after]:
        name = f"event: {event['type']}\n" if "type" in event else ""
        _send_chunk(http, f"{name}data: {json.dumps(event)}\n\n".encode())
    if answer.cut_after is None:
        _send_chunk(http, b"data: [DONE]\n\n")
        _send_chunk(http, b"")


def _send_chunk(http: BaseHTTPRequestHandler, data: bytes) -> None:
    http.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    http.wfile.flush()


def _whole(path: str, model: str, answer: Scripted) -> dict[str, Any]:
    return _response(model, answer) if path.endswith("/responses") else _completion(model, answer)


def _events(path: str, model: str, answer: Scripted) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream; the text in two parts."""
    half = len(answer.text) // 2
    parts = [part for part in (answer.text[:half], answer.text[half:]) if part]
    if path.endswith("/responses"):
        started = {"id": "resp_1", "object": "response", "status": "in_progress", "model": model, "output": []}
        yield {"type": "response.created", "response": started}
        for part in parts:
            yield {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": part}
        whole = _response(model, answer)
        yield {"type": f"response.{whole['status']}", "response": whole}
        return
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas = [{"role": "assistant", "content": ""}, *({"content": part} for part in parts)]
    if answer.refusal is not None:
        deltas.append({"refusal": answer.refusal})
    for delta in deltas:
        yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]}
    yield {**chunk, "choices": [], "usage": _usage("prompt", "completion", answer.usage)}


def _completion(model: str, answer: Scripted) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}],
        "usage": _usage("prompt", "completion", answer.usage),
    }  # fmt: skip


def _response(model: str, answer: Scripted) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "output_text", "text": answer.text, "annotations": []}]
    if answer.refusal is not None:
        content = [{"type": "refusal", "refusal": answer.refusal}]
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish_reason)
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": model,
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "error": None,
        "output": [
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content},
        ],
        "usage": _usage("input", "output", answer.usage),
    }  # fmt: skip


def _usage(asked: str, given: str, usage: Mapping[str, int] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        f"{asked}_tokens": usage["input"],
        f"{given}_tokens": usage["output"],
        "total_tokens": usage["input"] + usage["output"],
        f"{asked}_tokens_details": {"cached_tokens": usage["cached"]},
        f"{given}_tokens_details": {"reasoning_tokens": usage["reasoning"]},
    }
