"""The price file: where it is looked for, which entry a model has, what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import doors

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.llm.prices import find_price, read_prices

TEXT = """currency = "XTS"
[models."a-model"]
input = 1
output = 2
[models."a-*"]
input = 3
output = 4.5
cached_input = 0
[models."a-mod*"]
input = 5
output = 6
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HKBENCH_PRICES", raising=False)


def write(path: Path, text: str = TEXT) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("model", "entry"),
    [("a-model", "a-model"), ("a-model-2", "a-mod*"), ("a-b", "a-*"), ("A-model", None), ("b", None), ("a-*", "a-*")],
)
def test_the_very_name_comes_first_then_the_longest_beginning(tmp_path: Path, model: str, entry: str | None) -> None:
    found = find_price(write(tmp_path / "p.toml"), model)
    assert (found.entry if found else None) == entry


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_price(None, "a-model") is None
    write(tmp_path / "prices.toml")
    found = find_price(None, "a-model")
    assert found is not None
    assert (found.currency, found.rates.input, found.rates.cached_input, found.source) == (
        "XTS",
        1,
        None,
        "prices.toml",
    )
    monkeypatch.setenv("HKBENCH_PRICES", str(write(tmp_path / "env.toml", TEXT.replace("input = 1", "input = 7"))))
    found = find_price(None, "a-model")
    assert found is not None and found.rates.input == 7
    found = find_price(write(tmp_path / "option.toml", TEXT.replace("input = 1", "input = 8")), "a-model")
    assert found is not None and found.rates.input == 8


def test_a_named_file_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputMissing, match=r"nowhere\.toml"):
        find_price(tmp_path / "nowhere.toml", "m")
    monkeypatch.setenv("HKBENCH_PRICES", str(tmp_path))
    with pytest.raises(InputMissing):
        find_price(None, "m")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("currency = ", "not TOML"),
        ('[models."m"]\ninput = 1\noutput = 1\n', "currency"),
        ('currency = "X"\n[models."m"]\ninput = 1\n', "output"),
        ('currency = "X"\n[models."m"]\ninput = -1\noutput = 1\n', r"models\.m\.input"),
        ('currency = "X"\n[models."m"]\ninput = nan\noutput = 1\n', r"models\.m\.input"),
        ('currency = "X"\n[models."m"]\ninput = "1.0"\noutput = 1\n', r"models\.m\.input"),
        ('currency = "X"\n[models."m"]\ninput = 1\noutput = 1\ncached = 1\n', "cached"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        read_prices(write(tmp_path / "p.toml", text))


def test_the_example_names_no_price() -> None:
    """It is there to be filled in: as it is, every price is unknown."""
    example = doors.ROOT / "examples" / "prices.toml"
    assert read_prices(example).models == {}
    filled = example.read_text().replace("# [models", "[models").replace("# input = ...", "input = 1.5 ")
    filled = filled.replace("# cached_input = ...", "cached_input = 0.5 ").replace("# output = ...", "output = 3 ")
    rates = read_prices(write(Path("filled.toml"), filled)).models["NAME OF THE MODEL"]
    assert (rates.input, rates.cached_input, rates.output) == (1.5, 0.5, 3.0)
