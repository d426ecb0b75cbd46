"""Rendering: strict about names, safe about text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from prompts_samples import CPU, H200, MI300X, ROOT, context, problem

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.prompts import PromptBook, PromptContext, dialect_of, load_prompts, render, render_file
from hkbench.records import Backend

RESIDUAL = ROOT / "problems" / "level1" / "1_Scaled_residual_bf16.py"


@pytest.fixture
def cpp() -> PromptContext:
    return context(problem(RESIDUAL), Backend.CPP, CPU)


def book(folder: Path, text: str) -> PromptBook:
    (folder / "t.txt").write_text(text)
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
    nowhere = context(problem(RESIDUAL), Backend.HIPKITTENS, H200)
    with pytest.raises(ConfigurationError, match="no dialect for NVIDIA H200"):
        render(book(tmp_path, "x"), "t.txt", nowhere)
    assert context(problem(RESIDUAL), Backend.HIPKITTENS, MI300X).dialect == "cdna3"


@pytest.mark.parametrize(
    ("arch", "dialect"),
    [("gfx942", "cdna3"), ("gfx942:sramecc+:xnack-", "cdna3"), ("gfx950", "cdna4"), ("gfx90a", None), (None, None)],
)
def test_dialects(arch: str | None, dialect: str | None) -> None:
    assert dialect_of(arch) == dialect


def test_a_file_of_the_users_may_include_partials(tmp_path: Path, cpp: PromptContext) -> None:
    own = tmp_path / "own.txt"
    own.write_text('mine, then {% include "t.txt" %}')
    made = render_file(book(tmp_path, "theirs"), own, cpp)
    assert made.text == "mine, then theirs\n"
    assert made.template == str(own)


def test_a_file_of_the_users_is_checked(tmp_path: Path, cpp: PromptContext) -> None:
    loaded = book(tmp_path, "x")
    own = tmp_path / "own.txt"
    with pytest.raises(InputMissing, match=r"own\.txt cannot be read"):
        render_file(loaded, own, cpp)
    own.write_text('{% include "gone.txt" %}')
    with pytest.raises(ConfigurationError, match=r"no template 'gone\.txt'"):
        render_file(loaded, own, cpp)
    own.write_text("{{ colour }}")
    with pytest.raises(ConfigurationError, match="unknown variable 'colour'"):
        render_file(loaded, own, cpp)
