"""Whether a model service can be reached, by a question that costs nothing: its list of models."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from hkbench.llm.key import OPENAI_ADDRESS, redact
from hkbench.store.sanitize import one_line

SECONDS = 5.0
MAX_MODELS = 1000  #: names that are kept of a list
_SHOWN = 200
#: Services that have no list of models answer so, and may serve well.
_NO_LIST = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
_KEY = "check LLM_GATEWAY_KEY (or OPENAI_API_KEY, GOOGLE_API_KEY)"


@dataclass(frozen=True)
class Reached:
    """What came of the question. `problem` says what is wrong and what to do; None: calls can be made."""

    address: str  #: without user and password
    said: str  #: in a few words, what was found
    problem: str | None = None
    models: tuple[str, ...] | None = None  #: as the service lists them; None: it does not
    connected: bool = True  #: whether anything answered at all, with whatever


def reach(base_url: str | None, key: str, seconds: float = SECONDS) -> Reached:
    """Ask `GET /models` once, by the library that calls models: the same address, key, proxies and certificates.

    Returns within about `seconds`, whatever the network does. Neither the key nor a password is in what it returns.
    """
    import openai  # noqa: F401 - before the clock runs: on a busy machine it takes longer than an answer

    found: list[Reached] = []
    # A resolver that is not answered can block for minutes and not be stopped: it is left alone with its thread.
    worker = threading.Thread(target=lambda: found.append(_ask(base_url, key, seconds)), daemon=True)
    worker.start()
    worker.join(seconds + 1.0)
    if found:
        return found[0]
    address = _shown(base_url or OPENAI_ADDRESS)
    return Reached(address, f"no answer within {seconds:g} s", _slow(address), connected=False)


def _ask(base_url: str | None, key: str, seconds: float) -> Reached:
    import httpx2  # comes with openai; both are imported late because they take a second
    import openai

    address = _shown(base_url or "")
    try:
        with openai.OpenAI(api_key=key, base_url=base_url, timeout=seconds, max_retries=0) as library:
            address = _shown(str(library.base_url))
            begun = time.perf_counter()
            answer = library.get("/models", cast_to=httpx2.Response)
            return _answered(address, answer.text, time.perf_counter() - begun, key)
    except openai.APIStatusError as error:
        return _refused(address, error.status_code, one_line(redact(error.message, key), _SHOWN))
    except openai.APITimeoutError as error:
        if isinstance(error.__cause__, httpx2.ConnectTimeout):
            return Reached(address, f"no connection within {seconds:g} s", _slow(address), connected=False)
        problem = (
            f"it is connected to and then silent: is it overloaded, or is this the wrong port?{_by_proxy(address)}"
        )
        return Reached(address, f"no answer within {seconds:g} s", problem)
    except (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return _broken(address, error)


def _answered(address: str, text: str, seconds: float, key: str) -> Reached:
    names = _names(text)
    if names is None:
        problem = "the answer to GET /models is no list of models: does the address lack its end, as /v1?"
        return Reached(address, f"answers with something else ({seconds:.2f} s)", problem)
    shown = tuple(one_line(redact(name, key), _SHOWN) for name in names[:MAX_MODELS])
    return Reached(address, f"answers, {len(names)} models listed ({seconds:.2f} s)", models=shown)


def _names(text: str) -> list[str] | None:
    try:
        listed: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = listed.get("data") if isinstance(listed, dict) else listed
    if not isinstance(items, list):
        return None
    return [item["id"] for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)]


def _refused(address: str, status: int, message: str) -> Reached:
    said = f"reached, HTTP {status}"
    if status in _NO_LIST:
        return Reached(address, f"{said} for the list of models: it has none, which is no obstacle")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Reached(address, f"{said}: too many requests at the moment, or no quota left ({message})")
    steps = {
        HTTPStatus.UNAUTHORIZED: f"the key is refused: {_KEY}",
        HTTPStatus.FORBIDDEN: f"this key or this machine has no right here: {_KEY}, and the service's rules",
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "the proxy asks for a password: put it into HTTPS_PROXY",
    }
    later = "the service, or what stands before it, is not working: try later, or ask those who run it"
    step = steps.get(HTTPStatus(status)) if status in set(HTTPStatus) else None
    return Reached(address, said, step or (later if status >= 500 else f"it refuses to list models: {message}"))


def _broken(address: str, error: BaseException) -> Reached:
    """Return what went wrong, by the first cause that says it.

    Texts are ours, as those of libraries may quote the key.
    """
    where = urlsplit(address)
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            problem = f"{where.hostname} cannot be resolved: check the address, and this machine's DNS"
            return Reached(address, "not found", problem + _by_proxy(address), connected=False)
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = (
                f"its certificate is not trusted here ({cause.verify_message}): set SSL_CERT_FILE to a file with the "
                "certificate of the authority that signed it"
            )
            return Reached(address, "not trusted", problem, connected=False)
        if isinstance(cause, ssl.SSLError):
            problem = "there is no TLS where it was expected: should the address begin with http://?"
            return Reached(address, "no TLS", problem + _by_proxy(address), connected=False)
        if isinstance(cause, ConnectionRefusedError):
            problem = "nothing listens there: check host and port, and whether the service runs"
            return Reached(address, "connection refused", problem + _by_proxy(address), connected=False)
        if isinstance(cause, ConnectionResetError) and where.scheme == "http":
            problem = "it ended the connection at once: should the address begin with https://?"
            return Reached(address, "connection reset", problem + _by_proxy(address), connected=False)
        if isinstance(cause, OSError) and cause.errno:
            problem = f"{os.strerror(cause.errno)}: check the address, the network and the firewall"
            return Reached(address, "no connection", problem + _by_proxy(address), connected=False)
    problem = f"the exchange broke ({type(error.__cause__ or error).__name__}): is this an HTTP service?"
    return Reached(address, "no usable answer", problem + _by_proxy(address), connected=False)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _slow(address: str) -> str:
    return f"it cannot be connected to: a firewall, a VPN or a proxy setting may be in the way{_by_proxy(address)}"


def _by_proxy(address: str) -> str:
    """Return what a message adds where a proxy stands between."""
    parts = urlsplit(address)
    proxied = (getproxies().get(parts.scheme) or getproxies().get("all")) and not proxy_bypass(parts.hostname or "")
    return f" (it is asked by the proxy of {parts.scheme.upper()}_PROXY; NO_PROXY names what is not)" if proxied else ""


def _shown(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "the address"  # it cannot be read, so nobody knows where a password in it ends
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")
