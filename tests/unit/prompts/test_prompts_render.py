"""Rendering: strict about names, safe about text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from prompts_samples import CPU, H200, MI300X, PROMPTS, ROOT, context, problem, verdict_of

from hkbench.backends import find_backend
from hkbench.errors import ConfigurationError, InputMissing
from hkbench.prompts import PromptBook, PromptContext, Question, load_prompts, reflect_on, render
from hkbench.records import FailureKind

RESIDUAL = ROOT / "problems" / "level1" / "1_Scaled_residual_bf16.py"


@pytest.fixture
def cpp() -> PromptContext:
    return context(problem(RESIDUAL), "cpp", CPU)


def book(folder: Path, text: str) -> PromptBook:
    (folder / "t.txt").write_text(f"{{# template #}}{text}")
    (folder / "config.json").write_text(json.dumps({"default_prompt": "t.txt"}))
    return load_prompts(folder)


def test_a_prompt_says_where_it_came_from(tmp_path: Path, cpp: PromptContext) -> None:
    made = render(book(tmp_path, "\n{{ problem.name }} in {{ backend }} on {{ device.kind }}\n\n"), "t.txt", cpp)
    assert made.text == "1_Scaled_residual_bf16 in cpp on cpu\n"
    assert made.template == "t.txt"
    assert made.sha256 == hashlib.sha256(made.text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ device.colour }}", "no attribute 'colour'"),
        ("{{ reflection.message }}", "'None' has no attribute 'message'"),
        ("{{ 1 / device.notes | length }}", "division by zero"),
        ("{{ problem.name + 1 }}", "can only concatenate"),
        ("{{ problem.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_what_a_template_may_not_do(tmp_path: Path, cpp: PromptContext, text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        render(book(tmp_path, text), "t.txt", cpp)
    assert says in str(caught.value)
    assert "'t.txt'" in str(caught.value)


def test_text_of_others_is_not_a_template(tmp_path: Path, cpp: PromptContext) -> None:
    hostile = cpp.problem.model_copy(update={"source": "{{ device.name }}{% include 'x' %}"})
    made = render(book(tmp_path, "{{ problem.source }}"), "t.txt", cpp.model_copy(update={"problem": hostile}))
    assert made.text == "{{ device.name }}{% include 'x' %}\n"


def test_a_running_book_does_not_change(tmp_path: Path, cpp: PromptContext) -> None:
    loaded = book(tmp_path, "before")
    (tmp_path / "t.txt").write_text("after")
    assert render(loaded, "t.txt", cpp).text == "before\n"


def test_an_unknown_template_is_named(tmp_path: Path, cpp: PromptContext) -> None:
    with pytest.raises(ConfigurationError, match=r"has no template 'u\.txt'"):
        render(book(tmp_path, "x"), "u.txt", cpp)


def test_hipkittens_needs_a_dialect(tmp_path: Path) -> None:
    nowhere = context(problem(RESIDUAL), "hipkittens", H200)
    with pytest.raises(ConfigurationError, match="no HipKittens card for NVIDIA H200"):
        render(book(tmp_path, "x"), "t.txt", nowhere)
    assert context(problem(RESIDUAL), "hipkittens", MI300X).dialect == "cdna3"


@pytest.mark.parametrize(
    ("arch", "dialect"),
    [("gfx942", "cdna3"), ("gfx942:sramecc+:xnack-", "cdna3"), ("gfx950", "cdna4"), ("gfx90a", None), (None, None)],
)
def test_dialects(arch: str | None, dialect: str | None) -> None:
    assert find_backend("hipkittens").dialect(arch) == dialect


def test_a_template_of_the_users_may_include_the_books(tmp_path: Path, cpp: PromptContext) -> None:
    own = tmp_path / "own.jinja"
    own.write_text('mine, then {% include "t.txt" %}')
    made = render(book(tmp_path, "theirs").with_file(own), str(own), cpp)
    assert (made.text, made.system, made.template) == ("mine, then theirs\n", None, str(own))


def test_a_template_of_the_users_is_checked_as_it_is_read(tmp_path: Path) -> None:
    loaded = book(tmp_path, "x")
    own = tmp_path / "own.jinja"
    with pytest.raises(InputMissing, match=r"own\.jinja cannot be read"):
        loaded.with_file(own)
    own.write_text('{% include "gone.txt" %}')
    with pytest.raises(ConfigurationError, match=r"no template 'gone\.txt'"):
        loaded.with_file(own)
    own.write_text("{{ colour }}")
    with pytest.raises(ConfigurationError, match="unknown variable 'colour'"):
        loaded.with_file(own)
    own.write_text("{{ problem.name }")
    with pytest.raises(ConfigurationError, match=r"own\.jinja, line 1: not a valid jinja2 template"):
        loaded.with_file(own)


HIP = """You are an expert HIP programmer.
constexpr int table[2][2] = {{0,1},{2,3}};  // } } {{ { %d%% {%c
"""


def test_a_plain_text_is_the_system_message_and_the_problem_follows(tmp_path: Path, cpp: PromptContext) -> None:
    own = tmp_path / "own.txt"
    own.write_text(HIP)
    loaded = load_prompts(PROMPTS).with_file(own)
    first = render(loaded, str(own), cpp)
    assert first.system == HIP
    for part in (cpp.problem.source, cpp.contract, "## Answer", "- input x"):
        assert part in first.text
    assert "expert" not in first.text and "## What pays here" not in first.text
    assert first.sha256 == hashlib.sha256((HIP + first.text).encode()).hexdigest()
    reflection = reflect_on(verdict_of(FailureKind.CRASH), "the parent's code", 1, loaded, "cpp")
    again = render(loaded, str(own), cpp.model_copy(update={"reflection": reflection}))
    assert again.system == HIP
    assert "the parent's code" in again.text and "the judge saw crash" in again.text


def test_a_folder_of_plain_texts_needs_no_parts_of_its_own(tmp_path: Path, cpp: PromptContext) -> None:
    (tmp_path / "elementwise.txt").write_text(HIP)
    (tmp_path / "who.txt").write_text("You answer in English.\n")
    config = {"default_prompt": "elementwise.txt", "system_prompt": "who.txt"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load_prompts(tmp_path)
    made = render(loaded, loaded.choose(cpp.problem.name, "cpp"), cpp)
    assert made.system == f"You answer in English.\n\n{HIP}"
    assert cpp.problem.source in made.text


def test_a_system_prompt_goes_before_templates_and_may_be_a_backends_own(tmp_path: Path, cpp: PromptContext) -> None:
    (tmp_path / "t.txt").write_text("{# template #}{{ problem.name }}")
    (tmp_path / "all.txt").write_text("You write kernels.")
    (tmp_path / "hip.jinja").write_text("You write {{ backend }} for {{ device.arch }}.")
    config = {
        "default_prompt": "t.txt", "system_prompt": "all.txt", "backends": {"hip": {"system_prompt": "hip.jinja"}},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load_prompts(tmp_path)
    assert render(loaded, "t.txt", cpp).system == "You write kernels.\n"
    hip = context(problem(RESIDUAL), "hip", MI300X)
    assert render(loaded, "t.txt", hip).system == "You write hip for gfx942.\n"
    assert render(loaded, "t.txt", hip).text == "1_Scaled_residual_bf16\n"
    question = Question(shape="{}")
    assert render(loaded, "t.txt", hip.model_copy(update={"question": question})).system is None


def test_a_byte_order_mark_is_no_part_of_a_prompt_and_an_empty_file_is_none(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{% if true %}yes{% endif %}", encoding="utf-8-sig")
    assert book(tmp_path, "x").with_file(own).templates[str(own)].startswith("{% if")
    own.write_text(" \n")
    with pytest.raises(ConfigurationError, match=r"own\.txt is empty"):
        book(tmp_path, "x").with_file(own)


@pytest.mark.parametrize("text", ["a kernel for {{ problem.name }}", 'x\n{% include "_base.txt" %}', "{{ backend }}"])
def test_a_template_that_would_be_sent_unfilled_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "own.txt"
    own.write_text(text)
    with pytest.raises(ConfigurationError, match=r"read as a plain text.*\{# template #\}"):
        book(tmp_path, "x").with_file(own)
    own.write_text("{# template #}\n" + text.replace('{% include "_base.txt" %}', ""))
    assert str(own) in book(tmp_path, "x").with_file(own).templates
