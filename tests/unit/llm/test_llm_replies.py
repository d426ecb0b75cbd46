"""The file of recorded replies: what is written comes back, and what is wrong in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.errors import ReplayMissing
from hkbench.llm.replay import ReplayClient
from hkbench.llm.replies import replies_file, replies_in_file
from hkbench.records import AdviceKey, Reply, SampleKey, Usage

TEXTS = [
    "", "\n", "plain\nlines\n", "no newline at the end", "r'''\nboth\n''' and \"\"\"\\n\"\"\"\n", "ends with '",
    "größer ∑\t\u00a0\n",
    "\r\n", "bell \x07 and \x7f", "a \\ back \\u0041", '"' * 7, "'" * 2, "\ufeffmark", "\U0001f600",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_every_text_comes_back(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replies.toml"
    replies = {"1_A.b c/attempt_1/sample_1": Reply(text=text, model=text or "m", finish_reason=None)}
    file.write_text(replies_file({"cpp": replies}), encoding="utf-8", newline="")
    assert replies_in_file(file, "cpp") == replies


def test_a_kernel_stands_in_the_file_as_it_is_written(tmp_path: Path) -> None:
    kernel = 'SOURCE = r"""\nprintf("%d\\n", x);\n"""\n'
    assert kernel in replies_file({"cpp": {"1_A/attempt_1/sample_1": Reply(text=kernel, model="m")}})


def test_all_fields_come_back_and_each_backend_has_its_own(tmp_path: Path) -> None:
    file = tmp_path / "replies.toml"
    billed = Reply(
        text="x\n", model="m-2", finish_reason="length", usage=Usage(input=5, output=7), seconds=1.5, tries=2,
        request_id='r"1',
    )  # fmt: skip
    usual = {f"1_A/attempt_1/sample_{n}": Reply(text="y\n", model="m-1", finish_reason="stop") for n in (2, 10)}
    written: dict[str, dict[str, Reply]] = {"cpp": {**usual, "1_A/attempt_2/judge_1": billed}, "hip": {}}
    written["hip"]["2_B/attempt_1/sample_1"] = Reply(text="z", model="m-1")
    text = replies_file(written)
    assert text.count('"m-1"') == 1
    file.write_text(text)
    for backend, replies in written.items():
        found = replies_in_file(file, backend)
        assert found == replies
        assert list(found) == list(replies)
    assert replies_in_file(file, "cuda") == {}


def test_a_call_that_is_like_another(tmp_path: Path) -> None:
    reply = Reply(text="y\n", model="m-1", finish_reason="length")
    (tmp_path / "others.toml").write_text(replies_file({"cpp": {"1_A/attempt_1/sample_1": reply}}))
    file = tmp_path / "replies.toml"
    places = {"sample_1": "others.toml#1_A/attempt_1/sample_1", "sample_2": "1_A/attempt_2/sample_3"}
    tables = [f'[cpp.1_A.attempt_2.{call}]\nlike = "{place}"\n' for call, place in places.items()]
    file.write_text("\n".join([*tables, '[cpp.1_A.attempt_2.sample_3]\ntext = "z"\n']))
    found = replies_in_file(file, "cpp")
    assert found["1_A/attempt_2/sample_1"] == reply
    assert found["1_A/attempt_2/sample_2"] == found["1_A/attempt_2/sample_3"] == Reply(text="z", model="recorded")


@pytest.mark.parametrize("place", ["1_A/attempt_9/sample_1", "1_A/attempt_1/sample_1", "absent.toml#1_A/x", "#"])
def test_a_call_that_is_like_none_is_named(tmp_path: Path, place: str) -> None:
    file = tmp_path / "replies.toml"
    file.write_text(f'[cpp.1_A.attempt_1.sample_1]\nlike = "{place}"\n')
    with pytest.raises(ReplayMissing, match="not a file of recorded replies"):
        replies_in_file(file, "cpp")


async def test_the_client_serves_a_file(tmp_path: Path) -> None:
    file = tmp_path / "replies.toml"
    replies = {f"1_A/attempt_1/sample_{n}": Reply(text=f"{n}", model="m") for n in (1, 2)}
    replies["1_A/attempt_2/judge_1"] = Reply(text="{}", model="m")
    file.write_text(replies_file({"cpp": replies}))
    client = ReplayClient(file, "cpp")
    reply = await client.complete(SampleKey(problem="1_A", attempt=1, sample=2), "")
    assert reply == Reply(text="2", model="m", replayed=True)
    assert (await client.complete(AdviceKey(problem="1_A", attempt=2, call=1), "")).text == "{}"
    assert client.recorded_samples(["1_A"]) == 2
    assert ReplayClient(file, "hip").unrecorded(["1_A"]) == ["1_A"]


@pytest.mark.parametrize(
    "text",
    ["[", "\xff", "[cpp.1_A.atempt_1.sample_1]\ntext=''", "[cpp.1_A.attempt_1.sample_1]\n",
     "[cpp.1_A.attempt_1.sample_0]\ntext=''", "[cpp.1_A.attempt_1.sample_1]\ntext=''\nunknown=1"],
)  # fmt: skip
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replies.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ReplayMissing, match="is not a file of recorded replies") as caught:
        replies_in_file(file, "cpp")
    assert str(file) in str(caught.value)
