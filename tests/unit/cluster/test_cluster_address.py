"""Which cluster is meant, and that it demands a token; no ray is needed for either."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hkbench.cluster import address as module
from hkbench.cluster.address import ANSWERED, REFUSED, ClusterUnavailable, demand_token, find_cluster
from hkbench.errors import UsageError


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent(listening: str) -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"127.0.0.1:{port}"


def running(folder: Path, address: str) -> dict[str, str]:
    """The environment in which `ray start` left this address."""
    (folder / "ray").mkdir()
    (folder / "ray" / "ray_current_cluster").write_text(address)
    return {"RAY_TMPDIR": str(folder)}


def test_an_address_at_which_something_listens(listening: str) -> None:
    assert find_cluster(listening, {}) == listening


def test_nothing_listens_at_the_address(silent: str) -> None:
    with pytest.raises(ClusterUnavailable, match="ray start"):
        find_cluster(silent, {})


@pytest.mark.parametrize("wrong", ["head", "ray://head:10001", "head:port", ":6379", "http://head:6379", "local"])
def test_what_is_no_address(wrong: str) -> None:
    with pytest.raises(UsageError):
        find_cluster(wrong, {})


def test_auto_is_the_environment_s_then_this_machine_s_then_a_new_one(
    tmp_path: Path, listening: str, silent: str
) -> None:
    here = running(tmp_path, listening)
    assert find_cluster("auto", here) == listening
    with pytest.raises(ClusterUnavailable):
        find_cluster("auto", here | {"RAY_ADDRESS": silent})
    assert find_cluster("auto", {"RAY_TMPDIR": str(tmp_path / "none")}) is None


def test_a_cluster_that_is_gone_is_not_this_machine_s(tmp_path: Path, silent: str) -> None:
    assert find_cluster("auto", running(tmp_path, silent)) is None


def test_a_cluster_that_is_started_gets_a_token_of_its_own() -> None:
    first: dict[str, str] = {"RAY_AUTH_TOKEN_PATH": "/elsewhere"}
    second: dict[str, str] = {}
    demand_token(None, first)
    demand_token(None, second)
    assert first["RAY_AUTH_MODE"] == "token" and len(first["RAY_AUTH_TOKEN"]) >= 32
    assert first["RAY_AUTH_TOKEN"] != second["RAY_AUTH_TOKEN"] and "RAY_AUTH_TOKEN_PATH" not in first


def test_a_controller_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailable, match="RAY_AUTH_TOKEN_PATH"):
        demand_token("10.0.0.1:6379", {"HOME": str(tmp_path)})


@pytest.mark.parametrize(("said", "passes"), [(REFUSED, True), (ANSWERED, False), ("RpcError: no answer", False)])
def test_the_cluster_has_to_refuse_who_has_no_token(monkeypatch: pytest.MonkeyPatch, said: str, passes: bool) -> None:
    monkeypatch.setattr(module, "answer_without_token", lambda *_: said)
    environment = {"RAY_AUTH_TOKEN": "secret"}
    if passes:
        demand_token("10.0.0.1:6379", environment)
        assert environment["RAY_AUTH_MODE"] == "token"
    else:
        with pytest.raises(ClusterUnavailable):
            demand_token("10.0.0.1:6379", environment)


def test_who_asks_without_a_token_has_none_of_ray_s_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        module, "_PROBE", "import os; print(sorted(n for n in os.environ if n.startswith('RAY')), os.environ['HOME'])"
    )
    said = module.answer_without_token("a:1", {"RAY_AUTH_TOKEN": "x", "RAY_AUTH_MODE": "token", "HOME": str(tmp_path)})
    assert said.startswith("['RAY_AUTH_MODE']") and str(tmp_path) != said.split()[-1]
