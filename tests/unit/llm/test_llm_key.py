"""The key, the address, and the waits that a service asks for."""

from __future__ import annotations

import subprocess
import sys
from email.utils import formatdate

import pytest

from hkbench.errors import UsageError
from hkbench.llm.key import ADDRESS_VARIABLES, GOOGLE_ADDRESS, KEY_VARIABLES, api_key, base_url, redact
from hkbench.llm.retry import is_retried, requested_wait


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEY_VARIABLES, *ADDRESS_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("gateway", "openai", "key"),
    [("one", "two", "one"), ("", "two", "two"), (None, "two", "two"), ("  ", "two", "two"), (" one\n", None, "one")],
)
def test_api_key(monkeypatch: pytest.MonkeyPatch, gateway: str | None, openai: str | None, key: str) -> None:
    for name, value in (("LLM_GATEWAY_KEY", gateway), ("OPENAI_API_KEY", openai)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert api_key("http://gateway/v1") == key


def test_no_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_GATEWAY_KEY", " ")
    with pytest.raises(UsageError, match="set LLM_GATEWAY_KEY or OPENAI_API_KEY"):
        api_key("http://gateway/v1")


def test_a_gateways_key_is_not_sent_to_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "two")
    assert api_key(None) == "two"
    monkeypatch.setenv("LLM_GATEWAY_KEY", "one")
    with pytest.raises(UsageError, match="LLM_GATEWAY_URL"):
        api_key(None)


def test_googles_key_goes_to_googles_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "three")
    assert base_url(None) == GOOGLE_ADDRESS and api_key(GOOGLE_ADDRESS) == "three"
    assert base_url("http://local/v1") == "http://local/v1" and api_key("http://local/v1") == "three"
    monkeypatch.setenv("OPENAI_API_KEY", "two")
    assert base_url(None) is None and api_key(None) == "two" and api_key("http://local/v1") == "two"
    assert api_key(GOOGLE_ADDRESS) == "three"


def test_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base_url(None) is None
    assert base_url(None, "https://file/v1") == "https://file/v1"
    with pytest.raises(UsageError, match=r"hkbench\.toml"):
        base_url(None, "file/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", " http://from-environment/v1 ")
    assert base_url(None) == "http://from-environment/v1"
    monkeypatch.setenv("LLM_GATEWAY_URL", "https://gateway/v1")
    assert base_url(None, "https://file/v1") == "https://gateway/v1"
    assert base_url("https://option/v1") == "https://option/v1"
    with pytest.raises(UsageError, match="--base-url is 'localhost:8000'"):
        base_url("localhost:8000")
    monkeypatch.delenv("LLM_GATEWAY_URL")
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://x")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        base_url(None)


def test_redact() -> None:
    assert redact("a sk-12345678 b sk-12345678", "sk-12345678") == "a [key] b [key]"
    assert redact("EMPTY is a word", "EMPTY") == "EMPTY is a word"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 99 Foo 2026 99:99:99 GMT"}, None),
    ],
)
def test_requested_wait(headers: dict[str, str], wait: float | None) -> None:
    assert requested_wait(headers, now=1_000_000) == wait


def test_which_status_is_tried_again() -> None:
    tried = [s for s in range(300, 600) if is_retried(s)]
    assert tried == [408, 409, 425, 429, *range(500, 600)]


def test_the_library_is_not_imported_with_the_client() -> None:
    code = "import sys, hkbench.llm.openai_client; sys.exit('openai' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
