"""Whether a model service can be reached, against real sockets on this machine."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.model_server import ModelServer, Scripted, script

from hkbench.llm.reach import reach

KEY = "sk-test-0123456789abcdef"
LIST = json.dumps({"object": "list", "data": [{"id": "one"}, {"id": f"two \x1b[31m{KEY}"}]}).encode()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def served(models: Scripted) -> ModelServer:
    return ModelServer(script(Scripted()), models)


def test_a_service_that_lists_its_models() -> None:
    with served(Scripted(body=LIST)) as server:
        found = reach(server.base_url, KEY)
        assert server.authorizations == [f"Bearer {KEY}"]
    assert found.problem is None and found.said.startswith("answers, 2 models listed (")
    assert found.models == ("one", "two [key]")
    assert found.address == server.base_url


def test_a_password_in_the_address_is_not_shown() -> None:
    with served(Scripted(body=LIST)) as server:
        found = reach(server.base_url.replace("//", "//user:secret@", 1), KEY)
        assert found.address == server.base_url and "secret" not in repr(found)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_service_without_a_list_is_reached(status: int) -> None:
    with served(Scripted(status=status, body=b"nothing here")) as server:
        found = reach(server.base_url, KEY)
    assert found.problem is None and found.said.startswith(f"reached, HTTP {status}") and found.models is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "the key is refused: check LLM_GATEWAY_KEY"),
        (403, "has no right here"),
        (503, "is not working: try later"),
        (400, "refuses to list models"),
    ],
)
def test_what_a_service_refuses(status: int, words: str) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    with served(Scripted(status=status, body=body)) as server:
        found = reach(server.base_url, KEY)
    assert found.said == f"reached, HTTP {status}" and words in str(found.problem)
    assert KEY not in repr(found)


def test_too_many_requests_are_no_obstacle() -> None:
    with served(Scripted(status=429, body=b"slow down")) as server:
        found = reach(server.base_url, KEY)
    assert found.problem is None and "too many requests" in found.said


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b'{"hello": 1}', b"[" * 100_000])
def test_a_page_in_place_of_a_list(body: bytes) -> None:
    with served(Scripted(body=body, content_type="text/html")) as server:
        assert "as /v1?" in str(reach(server.base_url, KEY).problem)


def test_silence_ends_in_time() -> None:
    with served(Scripted(hang=True)) as server:
        found = reach(server.base_url, KEY, seconds=2.0)
    assert found.said == "no answer within 2 s" and "silent" in str(found.problem)


def test_a_closed_port() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and never listens
        found = reach(f"http://127.0.0.1:{closed.getsockname()[1]}/v1", KEY)
    assert found.said == "connection refused" and "nothing listens there" in str(found.problem)


def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolver(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    found = reach("https://gateway.invalid/v1", KEY)
    assert found.said == "not found" and "gateway.invalid cannot be resolved" in str(found.problem)


@pytest.fixture
def babbler() -> Iterator[int]:
    """A port that answers each connection with a word that is neither HTTP nor TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20.0)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 12)
                connection.sendall(b"SSH-2.0-hello\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(("scheme", "words"), [("http", "is this an HTTP service?"), ("https", "no TLS where it was")])
def test_another_protocol(babbler: int, scheme: str, words: str) -> None:
    found = reach(f"{scheme}://127.0.0.1:{babbler}/v1", KEY)
    assert words in str(found.problem)


@pytest.fixture
def trusted_by_nobody(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a TLS service with a certificate that it signed itself, and the certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(LIST)))
            self.end_headers()
            self.wfile.write(LIST)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that do not trust it leave
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.server_address[1], certificate
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_certificate_that_is_not_trusted(
    trusted_by_nobody: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, certificate = trusted_by_nobody
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    found = reach(f"https://127.0.0.1:{port}/v1", KEY)
    assert found.said == "not trusted" and "set SSL_CERT_FILE" in str(found.problem)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert reach(f"https://127.0.0.1:{port}/v1", KEY).problem is None


def test_a_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed.getsockname()[1]}")
        found = reach("http://gateway.invalid/v1", KEY)
    assert found.said == "connection refused" and "by the proxy of HTTP_PROXY" in str(found.problem)


def test_an_address_that_is_none() -> None:
    assert reach("http://[half/v1", KEY).problem is not None
