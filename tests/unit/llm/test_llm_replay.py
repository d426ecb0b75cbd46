"""Recorded replies: where they are looked for, and what is said when one is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hkbench.errors import ReplayMissing
from hkbench.llm.replay import ReplayClient
from hkbench.records import Reply, SampleKey, Usage

KEY = SampleKey(problem="1_Add", attempt=2, sample=3)


def record(folder: Path, text: str, exchange: str | None = None, key: SampleKey = KEY) -> Path:
    sample = folder / key.problem / f"attempt_{key.attempt}" / f"sample_{key.sample}"
    sample.mkdir(parents=True)
    (sample / "response.txt").write_bytes(text.encode())
    if exchange is not None:
        (sample / "exchange.json").write_text(exchange)
    return sample


async def test_text_alone(tmp_path: Path) -> None:
    record(tmp_path, "größer\r\n")
    reply = await ReplayClient(tmp_path, "cpp").complete(KEY, "any prompt")
    assert reply == Reply(text="größer\r\n", model="recorded", replayed=True)


async def test_what_a_run_recorded_comes_back(tmp_path: Path) -> None:
    usage = Usage(input=5, output=7, reasoning=2)
    first = Reply(text="x", model="m-1", finish_reason="stop", usage=usage, seconds=1.5, tries=2, request_id="r")
    fields = first.model_dump(mode="json", exclude={"text"})
    record(tmp_path, "x", json.dumps({**fields, "request": {"temperature": 0}}))
    reply = await ReplayClient(tmp_path, "hip").complete(KEY, "")
    assert reply == first.model_copy(update={"replayed": True})


@pytest.mark.parametrize("exchange", ["{", "[]", '{"model": 3}', '{"unknown": 1}'])
async def test_a_damaged_record_is_named(tmp_path: Path, exchange: str) -> None:
    sample = record(tmp_path, "x", exchange)
    with pytest.raises(ReplayMissing, match="is not the record of a reply") as caught:
        await ReplayClient(tmp_path, "hip").complete(KEY, "")
    assert str(sample / "exchange.json") in str(caught.value)


async def test_a_reply_that_is_not_text(tmp_path: Path) -> None:
    (record(tmp_path, "") / "response.txt").write_bytes(b"\xff")
    with pytest.raises(ReplayMissing, match="not UTF-8"):
        await ReplayClient(tmp_path, "hip").complete(KEY, "")


async def test_missing_names_the_key_the_source_and_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ReplayMissing, match="holds no replies at all"):
        await ReplayClient(tmp_path, "hip").complete(KEY, "")
    record(tmp_path, "x", key=SampleKey(problem="2_Mul", attempt=1, sample=1))
    with pytest.raises(ReplayMissing, match="recorded problems: 2_Mul"):
        await ReplayClient(tmp_path, "hip").complete(KEY, "")
    for sample in (10, 9):
        record(tmp_path, "x", key=SampleKey(problem="1_Add", attempt=1, sample=sample))
    client = ReplayClient(tmp_path, "hip")
    here = "recorded for this problem: attempt_1/sample_9, attempt_1/sample_10$"
    with pytest.raises(ReplayMissing, match=here) as caught:
        await client.complete(KEY, "")
    for part in ("1_Add, attempt 2, sample 3 (hip)", str(tmp_path)):
        assert part in str(caught.value)
    assert client.unrecorded(["1_Add", "2_Mul", "3_Div"]) == ["3_Div"]
    record(tmp_path, "x", key=SampleKey(problem="3_Div", attempt=2, sample=1))
    assert ReplayClient(tmp_path, "hip").unrecorded(["3_Div", "4_Sub"]) == ["4_Sub"], "a search begins at attempt 2"
    assert client.recorded_samples(["1_Add", "2_Mul"]) == 2


def test_missing_lists_what_has_no_reply(tmp_path: Path) -> None:
    keys = [SampleKey(problem="1_Add", attempt=2, sample=n) for n in range(1, 4)]
    record(tmp_path, "x", key=keys[1])
    assert ReplayClient(tmp_path, "hip").missing(keys) == [keys[0], keys[2]]


def test_no_such_source(tmp_path: Path) -> None:
    with pytest.raises(ReplayMissing, match="does not exist"):
        ReplayClient(tmp_path / "nowhere", "hip")


async def test_closing_leaves_nothing_behind(tmp_path: Path) -> None:
    client = ReplayClient(tmp_path, "hip")
    await client.close()
    assert client.missing([KEY]) == [KEY]
