"""The whole page: what is on it, and that nothing on it reaches out or runs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.html_page import LOADS, Page
from support.report_page import SCRIPT, page_run
from support.run_folder import RunFolder, correct, incorrect, run_config, sample_run
from support.strategy_runs import NAME, judged_run, staged_run

from hkbench.records import EvaluationSettings, Failure, FailureKind, GenerationFailed, Outcome, SampleKey, Stage, Work
from hkbench.report.build import detail
from hkbench.report.page import render, render_page
from hkbench.report.write import write_reports
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run


def written(folder: Path) -> str:
    write_reports(folder)
    return RunPaths(folder).report_page.read_text()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(page_run(tmp_path_factory.mktemp("run")).root)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_what_models_and_tools_wrote_is_text(html: str, page: Page) -> None:
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert SCRIPT not in html
    assert page.text.count("document.title = 'owned'") >= 6  # code, string in it, message, log, output, parent
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)


def test_nothing_is_loaded_and_no_other_script_may_run(html: str, page: Page) -> None:
    for tag, attributes in page.elements:
        for name in LOADS & attributes.keys():
            assert "//" not in attributes[name], (tag, name, attributes[name])
            assert "url(" not in attributes[name].replace("url(#", ""), (tag, attributes[name])
    styles = re.findall(r"<style>.*?</style>", html, re.DOTALL)
    assert len(styles) == 1
    assert "url(" not in styles[0] and "@import" not in styles[0]
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_links_lead_somewhere(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    page = Page(written(tmp_path))
    names = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert [name for name, count in names.items() if count > 1] == []
    targets = [a["href"] for a in page.all("a")]
    assert [t for t in targets if t.startswith("#") and t[1:] not in names] == []
    files = [t for t in targets if not t.startswith("#")]
    assert files and all((run.root / t).is_file() for t in files)
    used = re.findall(r'(?:xlink:href="#|url\(#|aria-labelledby="|aria-describedby=")([\w-]+)', written(tmp_path))
    assert set(used) <= set(names)


def test_the_reports_numbers_are_on_it(page: Page) -> None:
    text = page.text
    for words in (
        "L1, 4 problems",
        "2 attempts of 2 samples",
        "2 of 4 judged problems",
        "50.0 % 15 to 85 %",  # Wilson for 2 of 4
        "1.21x 0.70x to 2.00x",  # geometric mean of 2, 1.25, 0.7
        "1.26x [1.00, 1.68] over all 4",  # of 2, 1.25, 1, 1
        "40.0 % of the roofline",  # 0.2 ms of 0.5 ms
        "Own kernels did the work in 1 of the 2 faster problems (1 not profiled)",
        "own kernels 90.0 %, PyTorch's 10.0 %",
        "crash at run: died by SIGSEGV in forward",
        "650+",
        "Diff against 1.1 (the sample shown in its prompt)",
        "The same code as 1.1 (the sample shown in its prompt).",
        "Profile of the best sample",
        "void relu<float>()",
        "reads twice",
    ):
        assert words in text, words
    assert "first error" in text and "last line" in text and "characters are left out; result.json has them" in text


def test_each_figure_has_words_and_numbers(page: Page) -> None:
    pictures = [attributes for attributes in page.all("svg") if attributes.get("role") == "img"]
    assert len(pictures) == len(page.all("figure")) == 4
    assert all(attributes["aria-labelledby"] for attributes in pictures)
    assert page.text.count("The numbers") == 4


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    page_run(tmp_path)
    assert written(tmp_path) == written(tmp_path)


def test_weak_problems_and_failures_of_the_machine_are_told_apart(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    key = SampleKey(problem="1_ReLU", attempt=1, sample=1)
    run.emit(GenerationFailed(time=run.tick(), key=key, error="ModelUnavailable", message=f"503 {SCRIPT}"))
    view = read_run(run.paths)
    facts = view.facts.model_copy(update={"weak": {"1_ReLU": ("zeros",), "2_Sum": ()}})
    page = Page(render_page(detail(replace(view, facts=facts)), run.paths))
    text = page.text
    assert "headline all problems without the weak Problems 4, 4 judged 3, 3 judged" in text
    assert "Weak: 1_ReLU. 2 of 4 problems were not audited." in text
    assert "weak: zeros" in text
    assert f"generation ModelUnavailable 1 503 {SCRIPT}" in text
    assert len(page.all("script")) == 1


def test_an_empty_run_has_a_page_too(tmp_path: Path) -> None:
    page = Page(written(RunFolder(tmp_path).root))
    assert "Incomplete" in page.text and "There are no samples." in page.text
    assert page.all("figure") == []


def test_beyond_a_limit_only_best_and_last_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU",), samples=4, attempts=1))
    run.start()
    for sample, verdict in enumerate((incorrect("1_ReLU"), correct("1_ReLU", 2.0), correct("1_ReLU", 1.5)), 1):
        run.sample("1_ReLU", 1, sample, verdict)
        run.paths.problem("1_ReLU").sample(1, sample).code.write_text(f"kernel_{sample} = 1\n")
    monkeypatch.setattr(render, "WHOLE_SAMPLES", 2)
    text = Page(written(tmp_path)).text
    assert "kernel_1" not in text and "kernel_2 = 1" in text and "kernel_3 = 1" in text
    assert "only each problem's best and last are shown whole" in text
    assert "PROBLEM/attempt_K/sample_N/" in text
    assert "1.1 wrong build_error at build: error: expected" in text  # its line is there


def test_a_problems_name_is_text_and_a_folder(tmp_path: Path) -> None:
    name = "1_<b>x&y$z$#"
    run = RunFolder(tmp_path, run_config((name,), samples=1, attempts=1))
    run.start()
    run.sample(name, 1, 1, correct(name, 2.0))
    page = Page(written(tmp_path))
    assert page.all("b") and name in page.text
    addresses = [a["href"] for a in page.all("a") if not a["href"].startswith("#")]
    assert addresses == ["1_%3Cb%3Ex%26y%24z%24%23/attempt_1/sample_1/result.json"]


def test_every_outcome_has_a_colour_in_light_and_dark() -> None:
    style = (render._TEMPLATES / "style.css").read_text()
    for outcome in Outcome:
        assert style.count(f"--{outcome}: #") == 2, outcome
        assert f".{outcome} {{ --hue: var(--{outcome}); }}" in style


def test_all_judged_problems_are_in_the_table_by_speed_up_and_the_others_folded(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_A", "2_B", "3_C", "4_D"), samples=1, attempts=1))
    run.start()
    run.sample("1_A", 1, 1, incorrect("1_A"))
    run.sample("2_B", 1, 1, correct("2_B", 0.5))
    run.sample("3_C", 1, 1, correct("3_C", 2.0))
    html = written(tmp_path)
    start = html.index('id="problem-table"')
    end = html.index("</tbody>", start)
    table = html[start:end]
    assert re.findall(r'id="row-(p\d)"', table) == ["p3", "p2", "p1"]
    assert table.count("<s>×</s>") == 1
    assert "1 problem is not judged" in Page(html).text
    assert 'id="row-p4"' in html[end:]


def test_what_takes_from_the_result_stands_beside_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_A",), samples=2, attempts=1))
    first, second = correct("1_A", 1.2), correct("1_A", 3.0)
    same = second.model_copy(update={"conditions": first.conditions})
    work = Work(own=0.0, pytorch=1.0, library=0.0, source="kineto")
    run.sample("1_A", 1, 1, first)
    run.sample("1_A", 1, 2, same.model_copy(update={"work": work}))
    text = Page(written(tmp_path)).text
    head = text[text.index("Result", text.index("Definitions")) : text.index("Correct")]
    assert "Of these with own kernels: 0 of 1." in head
    assert "1_A: the same code was measured at 1.20x" in head


def test_the_line_of_an_error_is_marked_and_the_reference_and_prompt_are_there(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_A",), samples=1, attempts=1))
    failure = Failure(
        stage=Stage.BUILD,
        kind=FailureKind.BUILD_ERROR,
        message="error: 'y' was not declared",
        detail="main.cpp:3:12: error: 'y' was not declared\n    3 |     return y;\n      |            ^\n",
    )
    run.sample("1_A", 1, 1, incorrect("1_A").model_copy(update={"failure": failure}))
    problem = run.paths.problem("1_A")
    problem.sample(1, 1).code.write_text('SOURCE = """\nint f(int x) {\n    return y;\n}\n"""\n')
    problem.prompt(1).write_text(f"Write it.\n```python\nclass Model:\n    pass\n```\n{SCRIPT}\n")
    html = written(tmp_path)
    assert html.count("class=at") == 1 and "the error is at line 3" in html
    page = Page(html)
    assert "Reference class Model" in page.text and "Prompt of attempt 1 Write it." in page.text
    assert SCRIPT in page.text and len(page.all("script")) == 1


def test_damaged_files_leave_their_part_out(tmp_path: Path) -> None:
    run = page_run(tmp_path)
    run.paths.problem("1_ReLU").sample(1, 1).result.write_text("{")
    run.paths.problem("1_ReLU").sample(1, 1).code.write_bytes(b"\xff\xfe = 1\n")
    text = Page(written(tmp_path)).text
    assert "1_ReLU/attempt_1/sample_1/result.json: not a verdict" in text
    assert "no verdict" in text


def test_what_was_decided_and_advised_stands_at_its_attempt(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    said = {"critical_issue": "<script>document.title = 'owned'</script>", "minimal_fix_hint": "use <"}
    seed = SampleKey(problem=NAME, attempt=1, sample=1)
    run.advised(seed, said, call=3)
    page = Page(written(run.root))
    assert "Judge on 1.1, repair: cannot be used" in page.text and "Judge on 1.1, repair, asked once more" in page.text
    assert "critical issue" in page.text and "<script>document.title = 'owned'</script>" in page.text
    assert len(page.all("script")) == 1
    assert page.text.index("use <") < page.text.rindex("attempt 2") < page.text.index("advice: none, a reason")
    assert "price" in page.text.lower() and "a-judge: 3 calls made" in page.text


def test_the_budget_of_stages(tmp_path: Path) -> None:
    page = Page(written(staged_run(tmp_path).root))
    assert "What skipping and early exits saved, and might have cost" in page.text
    assert "exit: before feeding, it trails" in page.text and "conv, balance" in page.text


def test_why_there_is_no_profile(tmp_path: Path) -> None:
    run = sample_run(tmp_path / "one")
    assert "no profile (only made for slow kernels)" in Page(written(run.root)).text
    both = run.config.model_copy(update={"evaluation": EvaluationSettings(profile_fast=True)})
    other = RunFolder(tmp_path / "two", both)
    other.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    text = Page(written(other.root)).text
    assert "no profile." in text and "only made for slow" not in text
