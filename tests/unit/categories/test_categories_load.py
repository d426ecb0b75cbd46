"""categories.toml: what is read, and what is refused with which words."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from categories_file import STAGE, STAGES, TEXT

from hkbench.categories import load_categories
from hkbench.errors import ConfigurationError
from hkbench.records import DeviceKind, OperatorClass


def write(folder: Path, text: str) -> Path:
    path = folder / "categories.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_read(tmp_path: Path) -> None:
    book = load_categories(write(tmp_path, TEXT))
    assert book.sha256 == hashlib.sha256(TEXT.encode()).hexdigest()
    assert [category.name for category in book.categories] == ["product", "generic"]
    product = book.category("product")
    assert [stage.name for stage in product.stages] == ["one", "two", "three"]
    assert product.stages[0].metrics == {DeviceKind.ROCM: ("occupancy",)}
    assert product.stages[2].skip[0].why == "it got worse" and product.stages[1].skip == ()
    assert product.exit[0].when.contains == (OperatorClass.CONV,)


def test_rules_for_all_come_after_a_category_s_own(tmp_path: Path) -> None:
    book = load_categories(write(tmp_path, TEXT))
    assert [rule.why for rule in book.category("product").exit] == ["far behind", "at the roof"]
    assert [rule.why for rule in book.category("generic").exit] == ["at the roof"]


def test_an_unknown_name_gets_the_generic_category(tmp_path: Path) -> None:
    assert load_categories(write(tmp_path, TEXT)).category("sparse").name == "generic"


REFUSED = [
    ("[ridge.full]", "[ridge.gpu]\nfloat32 = 1\n[ridge.full]", "unknown key 'ridge.gpu'; known here: full, cpu"),
    ("float32 = 20", "float32 = ", "not TOML: .*mend this place"),
    ("[ridge.cpu]\nfloat32 = 10", "", "the key 'ridge.cpu' is missing; add it"),
    ("float32 = 20", "float32 = 0", "'ridge.full.float32': .*greater than 0"),
    ("float32 = 20", "float32 = nan", "'ridge.full.float32'"),
    ("float32 = 20", 'float32 = "20"', "'ridge.full.float32'"),
    ("[ridge.full]", "extra = 1\n[ridge.full]", "unknown key 'extra'; known here: ridge, exit, categories"),
    ('title = "a product"', 'titel = "a"', "the key 'categories\\[product\\].title' is missing"),
    ('title = "a product"', 'title = "a"\ncolour = "red"', "'categories\\[product\\].colour'; known here: name, title"),
    ('name = "product"', 'name = "Two Words"', "'categories\\[Two Words\\].name'"),
    ('name = "product"', 'name = "generic"', "the category 'generic' stands twice"),
    ('name = "generic"', 'name = "rest"', "there is no category 'generic'"),
    ('title = "the rest"', 'title = "t"\nmatch.names = ["x"]', "it takes the rest; remove match"),
    ("match.graph", "match.grap", r"unknown key 'categories\[product\].match.grap'; known here: graph, names, levels"),
    ("(?i)matmul", "(?i", r"'categories\[product\].match.names\[1\]': no regular expression"),
    ("gain_below", "gain_under", r"stages\[three\].skip\[1\].when.gain_under'; known here: stage, stage_at_least"),
    ("stage = 2, gain_below = 1.0", "", r"skip\[1\].when': an empty condition would always hold"),
    ("stage = 2, gain", "stage = 4, gain", r"skip\[1\].when.stage': .*less than or equal to 3"),
    ("roof_at_least = 0.95", "roof_at_least = 95", r"'exit\[1\].when.roof_at_least': .*less than or equal to 1"),
    ("kernel_size_at_most = 3", "kernel_size_at_most = 3.5", "kernel_size_at_most"),
    ('contains = "conv"', 'contains = "convolution"', r"exit\[1\].when.contains.*'matmul', 'conv'"),
    ('contains = "conv"', "contains = []", r"exit\[1\].when.contains"),
    ('contains = "conv"', 'stage_name = "four"', r"\[product\]: a rule names the stage 'four'; use one of one,"),
    ('why = "far behind"', 'why = ""', r"'categories\[product\].exit\[1\].why'"),
    ("metrics.rocm", "metrics.opencl", r"metrics.opencl': .*not a kind of device"),
    ('metrics.rocm = ["occupancy"]', "metrics.rocm = []", "metrics.rocm"),
    ('["occupancy"]', '["sm__warps_active.avg.pct_of_peak_sustained_active"]', "no profiler gives .* on rocm; known"),
    ('["occupancy"]', '["occupancy", "LDS", "VGPRs", "calls"]', "at most 3 items"),
    ('guidance = ["do it"]', "guidance = []", "guidance"),
    ('["do it"]', '[{ text = "do it", backend = "hip" }]', r"unknown key '.*guidance\[1\].backend'; known here: text"),
    ('["do it"]', '[{ text = "do it", backends = ["metal"] }]', r"guidance\[1\].backends"),
    ('["do it"]', '[{ backends = ["hip"] }]', r"guidance\[1\].text' is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_what_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=says) as caught:
        load_categories(path)
    assert str(caught.value).startswith(str(path))


def test_guidance_is_for_all_unless_it_says_for_whom(tmp_path: Path) -> None:
    lines = '["all", { text = "hip", backends = ["hip"] }, { text = "amd", devices = ["rocm"] }]'
    book = load_categories(write(tmp_path, TEXT.replace('["do it"]', lines)))
    stage = book.category("product").stages[0]
    assert stage.guidance_for("hip", DeviceKind.ROCM) == ("all", "hip", "amd")
    assert stage.guidance_for("triton", DeviceKind.ROCM) == ("all", "amd")
    assert stage.guidance_for("cpp", DeviceKind.CPU) == ("all",)


def test_three_stages_each(tmp_path: Path) -> None:
    for stages in (STAGES + STAGE.format(name="four"), STAGE.format(name="one")):
        with pytest.raises(ConfigurationError, match=r"'categories\[product\].stages': .*3 items"):
            load_categories(write(tmp_path, TEXT.replace(STAGES, stages, 1)))
    with pytest.raises(ConfigurationError, match="two stages are called"):
        load_categories(write(tmp_path, TEXT.replace('name = "two"', 'name = "one"', 1)))


def test_a_category_that_nothing_can_match(tmp_path: Path) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if not line.startswith("match."))
    with pytest.raises(ConfigurationError, match=r"no problem would match it; give match\.graph or"):
        load_categories(write(tmp_path, text))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--categories"):
        load_categories(tmp_path / "none.toml")
    path = tmp_path / "categories.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        load_categories(path)
