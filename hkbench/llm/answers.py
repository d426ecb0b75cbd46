"""What the JSON of a model service says: chat completions and the Responses API, whole or streamed.

Services that call themselves compatible differ, so nothing is taken for granted: every field is looked at
before it is used, and what cannot be an answer raises `BadAnswer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hkbench.records import Usage

#: Empty text is the model's own answer for these reasons; for any other it is a fault of the service.
EMPTY_IS_AN_ANSWER = frozenset({"length", "content_filter", "refusal"})
#: What Gemini's endpoint says in its own words, in OpenAI's; it also writes "content_filter: SAFETY".
_OTHER_WORDS = {
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), "content_filter"),
    "max_tokens": "length",
}


class BadAnswer(Exception):
    """What arrived is no answer; the message says what it is instead."""


class EmptyStream(BadAnswer):
    """A stream began and ended before an answer did.

    Servers that fail after their first event end it so (llama-cpp-python's does where the prompt is too long), and say
    why only to who asks for the answer as a whole.
    """


@dataclass(frozen=True)
class Answer:
    """What one call returned."""

    text: str
    model: str | None
    finish_reason: str | None
    usage: Usage


class Stream(Protocol):
    """Collect the events of one streamed answer."""

    cut: bool  #: it is longer than was asked for: the rest is not wanted

    def add(self, event: object) -> None:
        """Take one event. Raises BadAnswer for an event that reports a failure."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, though the connection may still be open."""
        ...

    def answer(self) -> Answer:
        """Return the answer. Raises BadAnswer when the stream was cut or empty."""
        ...


def chat_answer(body: object) -> Answer:
    """Read a `chat.completion` object."""
    top = _mapping(body)
    choices = top.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadAnswer(_server_error(top) or "the answer has no choices")
    choice = _mapping(choices[0])
    message = _mapping(choice.get("message"))
    text = _text_of(message.get("content"))
    reason = _reason(choice.get("finish_reason"))
    if not text and _string(message.get("refusal")):
        reason = "refusal"
    return _checked(Answer(text, _string(top.get("model")), reason, usage_of(top.get("usage"))))


def _reason(said: object) -> str | None:
    """Return why an answer ended, in OpenAI's words."""
    word = (_string(said) or "").partition(":")[0].strip().lower()
    return _OTHER_WORDS.get(word, word) or None


def responses_answer(body: object, streamed_text: str = "") -> Answer:
    """Read a `response` object; `streamed_text` stands in where its output holds no text."""
    top = _mapping(body)
    status = _string(top.get("status"))
    if status in {"failed", "cancelled"} or (status is None and "output" not in top):
        raise BadAnswer(_server_error(top) or f"the response has status {status}")
    if status in {"queued", "in_progress"}:
        raise BadAnswer(f"the response was left unfinished (status {status})")
    parts = [
        _mapping(part)
        for item in _sequence(top.get("output"))
        if _mapping(item).get("type") == "message"
        for part in _sequence(_mapping(item).get("content"))
    ]
    text = "".join(_string(p.get("text")) or "" for p in parts if p.get("type") == "output_text")
    text = text or streamed_text
    reason = "stop"
    if status == "incomplete":
        why = _string(_mapping(top.get("incomplete_details")).get("reason"))
        reason = "length" if why == "max_output_tokens" else why or "incomplete"
    elif not text and any(p.get("type") == "refusal" for p in parts):
        reason = "refusal"
    return _checked(Answer(text, _string(top.get("model")), reason, usage_of(top.get("usage"))))


@dataclass
class ChatStream:
    """Collect `chat.completion.chunk` events.

    Some servers (llama-cpp-python's, Ollama's) do not know `max_completion_tokens`: after `max_parts` parts of text,
    each of which is a token or more, the reply is cut here.
    """

    max_parts: int | None = None
    _text: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _finish: str | None = None
    _model: str | None = None
    _usage: object = None
    _choices: bool = False
    cut: bool = False

    def add(self, event: object) -> None:
        chunk = _mapping(event)
        if "choices" not in chunk and (error := _server_error(chunk)):
            raise BadAnswer(error)
        self._model = _string(chunk.get("model")) or self._model
        self._usage = chunk.get("usage") or self._usage
        for choice in map(_mapping, _sequence(chunk.get("choices"))):
            if choice.get("index", 0) != 0:
                continue
            self._choices = True
            delta = _mapping(choice.get("delta"))
            if text := _text_of(delta.get("content")):
                self._text.append(text)
            self._refusal.append(_string(delta.get("refusal")) or "")
            self._finish = _string(choice.get("finish_reason")) or self._finish
        if self._finish is None and self.max_parts is not None and len(self._text) > self.max_parts:
            self._finish = "length"
            self.cut = True

    @property
    def finished(self) -> bool:
        return self._finish is not None

    def answer(self) -> Answer:
        if not self._choices:
            raise EmptyStream("the stream held no choices")
        if self._finish is None and not self._text:
            raise EmptyStream("the stream ended without a word of the answer")
        if self._finish is None:
            # As llama-cpp-python's server does by default with one call when another one comes.
            raise BadAnswer(
                "the stream was cut: it ended without a finish_reason, as where a service serves one call "
                "at a time, which --concurrency 1 suits"
            )
        message = {"content": "".join(self._text), "refusal": "".join(self._refusal)}
        choice = {"message": message, "finish_reason": self._finish}
        return chat_answer({"choices": [choice], "model": self._model, "usage": self._usage})


@dataclass
class ResponsesStream:
    """Collect the events of a streamed response; the last one carries the whole response."""

    _text: list[str] = field(default_factory=list)
    _response: object = None
    cut: bool = False

    def add(self, event: object) -> None:
        fields = _mapping(event)
        match fields.get("type"):
            case "response.output_text.delta":
                self._text.append(_string(fields.get("delta")) or "")
            case "response.completed" | "response.incomplete" | "response.failed":
                self._response = fields.get("response")
            case "error":
                raise BadAnswer(_server_error(fields) or "the stream reported an error")

    @property
    def finished(self) -> bool:
        return self._response is not None

    def answer(self) -> Answer:
        if self._response is None and not any(self._text):
            raise EmptyStream("the stream ended without a word of the answer")
        if self._response is None:
            raise BadAnswer("the stream was cut: it ended without response.completed")
        return responses_answer(self._response, "".join(self._text))


def usage_of(raw: object) -> Usage:
    """Return the token counts of either API; `None` for each that is missing or not a count."""
    fields = _mapping(raw)
    out_details = _mapping(fields.get("completion_tokens_details") or fields.get("output_tokens_details"))
    in_details = _mapping(fields.get("prompt_tokens_details") or fields.get("input_tokens_details"))
    return Usage(
        input=_count(fields, "prompt_tokens", "input_tokens"),
        output=_count(fields, "completion_tokens", "output_tokens"),
        reasoning=_count(out_details, "reasoning_tokens"),
        cached_input=_count(in_details, "cached_tokens"),
    )


def _checked(answer: Answer) -> Answer:
    if not answer.text.strip() and answer.finish_reason not in EMPTY_IS_AN_ANSWER:
        raise BadAnswer(f"the answer is empty (finish_reason {answer.finish_reason})")
    # JSON may escape half of a surrogate pair, which no file and no record can hold.
    text = answer.text.encode("utf-8", "replace").decode("utf-8")
    return Answer(text, answer.model, answer.finish_reason, answer.usage)


def _server_error(fields: Mapping[str, object]) -> str | None:
    error = fields.get("error")
    message = _string(error) or _string(_mapping(error).get("message")) or _string(fields.get("message"))
    return f"the service reported: {message}" if message else None


def _text_of(content: object) -> str:
    """Return the text of a message: a string, or a list of parts of which the text ones count."""
    if isinstance(content, list):
        return "".join(_string(_mapping(part).get("text")) or "" for part in content)
    return _string(content) or ""


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(fields: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
