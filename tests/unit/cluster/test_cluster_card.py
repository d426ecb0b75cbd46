"""A card's side: contents become files of its node, and whatever happens comes back as bytes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.cluster_site import CONFINED, problem, verdict

from hkbench.cluster import messages
from hkbench.cluster.card import FOLDER, Card
from hkbench.cluster.messages import CardOrder, Entered, Failed, Judged, Ready, Work
from hkbench.engine import EvaluationResult, factory
from hkbench.errors import ToolchainUnavailable, WorkerLost
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, SizeSet, SlotTimes, Stage

ORDER = CardOrder(kind=DeviceKind.CPU, settings=EvaluationSettings(), sizes=None, builds=2, keeps_profile=True)
WORK = Work(
    problem=problem().model_copy(update={"source": "import torch  # ä"}),
    backend="cpp",
    file_name="kernel.py",
    profile=False,
)
TURNS = SlotTimes(asked=1.0, building=2.0, loaded=3.0, device=0, lent=4.0, returned=5.0)


class StandIn:
    """In the place of a LocalEvaluator: notes what it was given."""

    devices: tuple[DeviceFacts, ...] = (DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU"),)
    isolation, sizes = CONFINED, SizeSet.CPU
    raises: Exception | None = None

    def __init__(self, kind: DeviceKind, settings: EvaluationSettings, *_: object, **__: object) -> None:
        self.settings = settings
        self.seen: list[tuple[str, bytes, Path]] = []
        StandIn.last = self

    last: StandIn

    async def __aenter__(self) -> StandIn:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def require(self, backend: str) -> None:
        if self.raises is not None:
            raise self.raises

    async def evaluate(
        self, asked: Any, code: Path, folder: Path, backend: str, on_stage: Any, *, profile: bool
    ) -> EvaluationResult:
        assert profile is WORK.profile
        self.seen.append((asked.path.read_text(encoding="utf-8"), code.read_bytes(), folder))
        on_stage(Stage.BUILD, None)
        if self.raises is not None:
            raise self.raises
        on_stage(Stage.RUN, 0)
        kept = Path(str(self.settings.keep_profile), f"{asked.name}-{sha256(code.read_bytes()).hexdigest()[:12]}")
        kept.mkdir(parents=True)
        (kept / "ncu.csv").write_text("figures")
        return EvaluationResult(verdict(WORK, code.read_bytes()), turns=TURNS, assembly="s_nop 0")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(factory, "local_evaluator", StandIn)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(StandIn, "raises", None)


@asynccontextmanager
async def opened() -> AsyncIterator[Card]:
    card = Card(messages.written(ORDER))
    assert isinstance(messages.read(await card.start()), Ready)
    yield card
    await card.close()


async def judged(card: Card, code: bytes = b"kernel") -> list[object]:
    return [messages.read(said) async for said in card.judge(messages.written(WORK), code)]


async def test_contents_become_files_and_the_verdict_comes_back(tmp_path: Path) -> None:
    async with opened() as card:
        told = await judged(card, b"kernel \xff")
        ((source, code, folder),) = StandIn.last.seen
        assert (source, code) == (WORK.problem.source, b"kernel \xff") and tmp_path in folder.parents
        assert [message.stage for message in told if isinstance(message, Entered)] == [Stage.BUILD, Stage.RUN]
        last = told[-1]
        assert isinstance(last, Judged) and last.turns == TURNS and last.assembly == "s_nop 0"
        assert [list(files.items()) for files in last.kept.values()] == [[("ncu.csv", "figures")]]
        assert not folder.parent.exists()
    assert not list(tmp_path.iterdir())


async def test_an_error_comes_back_by_its_name_and_names_the_controller_s_file(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as card:
        monkeypatch.setattr(StandIn, "raises", ToolchainUnavailable("no ninja"))
        last = (await judged(card))[-1]
        assert isinstance(last, Failed) and (last.error, last.message) == ("ToolchainUnavailable", "no ninja")
        refused = messages.read(await card.require("cpp"))
        assert isinstance(refused, Failed)
        monkeypatch.setattr(StandIn, "raises", ValueError("nobody foresaw this"))
        last = (await judged(card))[-1]
        assert isinstance(last, Failed) and last.error == "InternalError"


async def test_a_process_that_sees_several_devices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "devices", StandIn.devices * 2)
    card = Card(messages.written(ORDER))
    assert isinstance(messages.read(await card.start()), Failed)
    await card.close()


def test_folders_of_cards_that_were_killed_are_removed(tmp_path: Path) -> None:
    left, others = tmp_path / f"{FOLDER}4194304999-x", tmp_path / f"{FOLDER}{os.getpid()}-y"
    (left / "build").mkdir(parents=True)
    others.mkdir()
    Card(messages.written(ORDER))
    assert not left.exists() and others.exists()


def test_ray_s_choice_of_threads_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the process above was started with one, as this test's own was not."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    Card(messages.written(ORDER))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    own = Path(f"/proc/{os.getpid()}/environ").read_bytes()
    monkeypatch.setenv("RAY_RAYLET_PID", str(os.getpid()))
    Card(messages.written(ORDER))
    assert ("OMP_NUM_THREADS" in os.environ) == (b"OMP_NUM_THREADS=" in own)


@pytest.mark.parametrize("junk", [b"", b"{}", b'{"said": "judged"}', b'{"said": "answered", "more": 1}', b"\xff"])
def test_what_is_no_message_is_refused(junk: bytes) -> None:
    with pytest.raises(WorkerLost):
        messages.read(junk)


def test_names_of_files_that_come_back_lead_nowhere_else() -> None:
    message = Judged(verdict=verdict(WORK, b""), turns=None, kept={"a": {"b": "text"}})
    forged = messages.written(message).replace(b'"b":"text"', b'"../b":"text"')
    with pytest.raises(WorkerLost):
        messages.read(forged)
