"""config.json: what is refused, and what is chosen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from prompts_samples import PROMPTS

from hkbench.errors import ConfigurationError
from hkbench.prompts import hint_keys, load_prompts
from hkbench.records import FailureKind


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text(f"{{# template #}}{name}: {{{{ problem.name }}}}\n")
    return tmp_path


def write(folder: Path, config: dict[str, Any] | str) -> Path:
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "the key 'default_prompt' is missing"),
        ({"default_prompt": "a.txt", "pattern": {}}, "unknown key 'pattern'; known here: default_prompt"),
        ({"default_prompt": "a.txt", "backends": {"hip": {"model": "x"}}}, "unknown key 'backends.hip.model'"),
        ({"default_prompt": "a.txt", "backends": {"opencl": {}}}, "'backends.opencl': no such backend; use one of"),
        ({"default_prompt": "a.txt", "reflection_hints": {"sad": ["x"]}}, "'reflection_hints.sad': no such failure"),
        (
            {"default_prompt": "a.txt", "backends": {"hip": {"reflection_hints": {"sad": []}}}},
            "'backends.hip.reflection_hints.sad': no such failure kind; use one of no_code",
        ),
        (
            {"default_prompt": "a.txt", "reflection_hints": {"build_error.typo": ["x"]}},
            "'reflection_hints.build_error.typo': no such class of errors; use one of shape_combination",
        ),
        (
            {"default_prompt": "a.txt", "backends": {"hip": {"reflection_hints": {"crash.lds_overflow": ["x"]}}}},
            "'backends.hip.reflection_hints.crash.lds_overflow': no such failure kind; use one of no_code",
        ),
        ({"default_prompt": "a.txt", "reflection_hints": {"build_error.": ["x"]}}, "no such class of errors"),
        ({"default_prompt": "a.txt", "reflection_hints": {"slow": "x"}}, "'reflection_hints.slow'"),
        ({"default_prompt": 3}, "'default_prompt'"),
        ({"default_prompt": "a.txt", "patterns": {"(": "b.txt"}}, "patterns: '(' is not a valid regular expression"),
        (
            {"default_prompt": "a.txt", "backends": {"cpp": {"patterns": {"[z-a]": "b.txt"}}}},
            "backends.cpp.patterns: '[z-a]' is not a valid regular expression",
        ),
        ({"default_prompt": "none.txt"}, "config.json: default_prompt names it: create it"),
        ({"default_prompt": "a.txt", "patterns": {"x": "none.txt"}}, "patterns['x'] names it"),
        ({"default_prompt": "a.txt", "patterns": {"x": "../x.txt"}}, "leads out of"),
        ({"default_prompt": "/etc/hostname"}, "leads out of"),
        ([], "the whole file"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(folder: Path, config: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_prompts(write(folder, json.dumps(config)))
    assert says in str(caught.value)
    assert "config.json" in str(caught.value)


def test_json_errors_name_line_and_column(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"config\.json, line 2, column 19: not JSON"):
        load_prompts(write(folder, '{\n"default_prompt": a.txt}'))


def test_a_key_that_stands_twice_is_refused(folder: Path) -> None:
    text = '{"default_prompt": "a.txt", "patterns": {"ReLU": "a.txt", "ReLU": "b.txt"}}'
    with pytest.raises(ConfigurationError, match="'ReLU' stands twice"):
        load_prompts(write(folder, text))


def test_a_missing_config_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"config\.json cannot be read .*create it"):
        load_prompts(tmp_path)


def test_a_file_that_is_not_utf8_is_refused(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigurationError, match=r"a\.txt is not UTF-8"):
        load_prompts(write(folder, {"default_prompt": "a.txt"}))


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{# one #}\n{% if %}", "a.txt, line 2"),
        ("{#t#}{{ problem.name | shout }}", "a.txt, line 1: not a valid jinja2 template: No filter named 'shout'"),
        ("{#t#}{{ colour }}", "a.txt: unknown variable 'colour'; a template can use: backend"),
        ('{% include "gone.txt" %}', "gone.txt cannot be read"),
        ("{% include backend %}", "a.txt: include and extends need a constant name"),
        ('{% include "../up.txt" %}', "leads out of"),
    ],
)
def test_a_wrong_template_is_found_at_load(folder: Path, template: str, says: str) -> None:
    (folder / "a.txt").write_text(template)
    with pytest.raises(ConfigurationError) as caught:
        load_prompts(write(folder, {"default_prompt": "a.txt"}))
    assert says in str(caught.value)


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.txt"
    outside.write_text("secret")
    (folder / "link.txt").symlink_to(outside)
    with pytest.raises(ConfigurationError, match="leads out of"):
        load_prompts(write(folder, {"default_prompt": "link.txt"}))


def test_the_first_pattern_in_file_order_wins(folder: Path) -> None:
    text = '{"default_prompt": "a.txt", "patterns": {"ReLU": "b.txt", "Leaky": "c.txt", "Z": "a.txt"}}'
    book = load_prompts(write(folder, text))
    assert book.choose("20_LeakyReLU", "hip") == "b.txt"
    assert book.choose("20_Leaky", "hip") == "c.txt"
    assert book.choose("1_Other", "hip") == "a.txt"
    turned = '{"default_prompt": "a.txt", "patterns": {"Leaky": "c.txt", "ReLU": "b.txt"}}'
    assert load_prompts(write(folder, turned)).choose("20_LeakyReLU", "hip") == "c.txt"


def test_a_backends_own_rules_come_first(folder: Path) -> None:
    book = load_prompts(write(folder, {
        "default_prompt": "a.txt",
        "patterns": {"ReLU": "b.txt"},
        "reflection_hints": {"crash": ["general", "both"], "slow": ["slow"]},
        "backends": {
            "hip": {"patterns": {"Leaky": "c.txt"}, "reflection_hints": {"crash": ["own", "both"]}},
            "cpp": {"default_prompt": "c.txt"},
        },
    }))  # fmt: skip
    assert book.choose("20_LeakyReLU", "hip") == "c.txt"
    assert book.choose("20_LeakyReLU", "cpp") == "b.txt"
    assert book.choose("1_Other", "cpp") == "c.txt"
    assert book.choose("1_Other", "hip") == "a.txt"
    assert book.hints(FailureKind.CRASH, "hip") == ["own", "both", "general"]
    assert book.hints(FailureKind.CRASH, "cpp") == ["general", "both"]
    assert book.hints(FailureKind.TIMEOUT, "hip") == []


def test_the_hash_covers_config_and_every_template(folder: Path) -> None:
    (folder / "a.txt").write_text('{% include "b.txt" %}')
    (folder / "unused.txt").write_text("one")
    first = load_prompts(write(folder, {"default_prompt": "a.txt"})).sha256
    assert load_prompts(folder).sha256 == first
    (folder / "unused.txt").write_text("two")
    assert load_prompts(folder).sha256 == first
    (folder / "b.txt").write_text("changed")
    second = load_prompts(folder).sha256
    assert second != first
    assert load_prompts(write(folder, {"default_prompt": "a.txt", "patterns": {}})).sha256 != second


def test_hints_of_classes_come_in_order_and_the_backends_own_take_the_general_ones_place(folder: Path) -> None:
    book = load_prompts(write(folder, {
        "default_prompt": "a.txt",
        "reflection_hints": {"build_error.syntax": ["syntax", "both"], "build_error.undeclared": ["name", "both"]},
        "backends": {"hip": {"reflection_hints": {"build_error.undeclared": ["own"]}}},
    }))  # fmt: skip
    assert book.class_hints(("undeclared", "syntax"), "hip") == ["own", "syntax", "both"]
    assert book.class_hints(("undeclared",), "cpp") == ["name", "both"]
    assert book.class_hints((), "hip") == book.class_hints(("narrowing",), "hip") == []
    assert book.hints(FailureKind.BUILD_ERROR, "hip") == []


#: As a HipKittens batch harness documents its own file, but for the texts of the hints.
OTHERS = """{"default_prompt": "elementwise_bf16.txt",
       "patterns": {"relu|sigmoid|tanh": "elementwise_bf16.txt", "matmul|gemm": "gemm_rocblas.txt",
                    "attention": "gemm_hipkittens.txt"},
       "reflection_hints": {"PERFORMANCE TOO SLOW": ["fuse", "vectorise"],
                            "Compile error": ["includes", "types"]}}"""


def test_another_harness_config_loads_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(PROMPTS, tmp_path / "prompts")
    book = load_prompts(write(tmp_path / "prompts", OTHERS))
    chosen = {
        name: book.choose(name, "hip") for name in ("19_ReLU", "21_Sigmoid", "6_Matmul_with_large_K", "23_Softmax")
    }
    assert chosen == {
        "19_ReLU": "elementwise_bf16.txt",
        "21_Sigmoid": "elementwise_bf16.txt",
        "6_Matmul_with_large_K": "gemm_rocblas.txt",
        "23_Softmax": "elementwise_bf16.txt",
    }
    assert book.hints(FailureKind.SLOW, "hip") == ["fuse", "vectorise"]
    assert book.hints(FailureKind.BUILD_ERROR, "hip") == ["includes", "types"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Performance too slow:", FailureKind.SLOW),
        ("COMPILATION_ERROR", FailureKind.BUILD_ERROR),
        ("Compile error.", FailureKind.BUILD_ERROR),
        ("Build Error", FailureKind.BUILD_ERROR),
        ("Core dumped!", FailureKind.CRASH),
        ("GPU memory-access fault", FailureKind.CRASH),
        ("Correctness", FailureKind.WRONG_VALUES),
        ("Correctness", FailureKind.NOT_FINITE),
        ("Correctness", FailureKind.WRONG_SHAPE),
        ("not_own", FailureKind.NOT_OWN),
    ],
)
def test_case_and_punctuation_of_a_failure_kind_make_no_difference(folder: Path, name: str, kind: FailureKind) -> None:
    book = load_prompts(write(folder, {"default_prompt": "a.txt", "reflection_hints": {name: ["x"]}}))
    assert book.hints(kind, "cpp") == ["x"]


def test_two_names_of_one_failure_kind_add_up(folder: Path) -> None:
    hints = {"incorrect": ["one"], "wrong_values": ["two", "one"], "Compile error.SYNTAX": ["three"]}
    book = load_prompts(write(folder, {"default_prompt": "a.txt", "reflection_hints": hints}))
    assert book.hints(FailureKind.WRONG_VALUES, "cpp") == ["one", "two"]
    assert book.hints(FailureKind.WRONG_SHAPE, "cpp") == ["one"]
    assert book.class_hints(("syntax",), "cpp") == ["three"]


def test_a_mistyped_failure_kind_names_the_nearest(folder: Path) -> None:
    config = {"default_prompt": "a.txt", "reflection_hints": {"PERFORMENCE TO SLOW": ["x"]}}
    with pytest.raises(ConfigurationError, match="did you mean 'performance too slow'"):
        load_prompts(write(folder, config))


def test_the_documented_aliases_are_those_of_the_code() -> None:
    page = (PROMPTS.parent / "docs" / "prompts.md").read_text()
    own = {hint_keys.plain(kind) for kind in FailureKind}
    assert [alias for alias in hint_keys.NAMES if alias not in own and f"`{alias}`" not in page] == []
