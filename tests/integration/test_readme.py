"""The commands that README.md and docs/method.md tell their reader to run, as they stand there, in a fresh clone.

What is put in place of something else, and why:

- the key `...`, the model `NAME` and the gateway's address: a server on this machine, which answers with the recorded
  replies of examples/replies/reflect.toml
- `1 40`: two problems of the forty; `make demo` has one of its four, none in HipKittens (test_demo_hipkittens.py),
  and its environment is there already
- one sample an attempt, by $NUM_SAMPLES, and no GPU: the replies are C++
- no command waits for the machine to be quiet, or looks at further shapes: other tests run beside
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import doors
from support.model_server import ModelServer, Request, Scripted, prompt_of

from hkbench.llm.replies import replies_in_file
from hkbench.records import Verdict
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

pytestmark = pytest.mark.slow

LIMIT = 900.0  #: seconds for one block
README = (doors.ROOT / "README.md").read_text()
METHOD = (doors.ROOT / "docs" / "method.md").read_text()
MODEL = "test-model"
AT_ONCE = "--busy-wait 0 --shapes 0"


def section(title: str, page: str = README) -> str:
    """Return the text below a heading of a page, up to the next one of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the page has no section {title!r}"
    return found[1]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```(?:sh|bash|console)?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def told(text: str) -> list[str]:
    """The blocks that are commands to be typed: those with a line that begins one, and no output between."""
    typed = re.compile(r"(?:python |hkbench |export |make |\. |#)")
    return [b for b in blocks(text) if all(typed.match(line) for line in b.splitlines() if line.strip())]


@dataclass
class Reader:
    """Somebody who has cloned the project and types what README.md says."""

    clone: Path
    server: ModelServer

    def types(self, block: str, *, stops: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a block in a shell of its own, which `stops` at the first command that fails."""
        place = {
            "LLM_GATEWAY_KEY=...": "LLM_GATEWAY_KEY=test-key",
            "https://gateway.example/v1": self.server.base_url,
            "--model NAME": f"--model {MODEL}",
            "LLM_MODEL=NAME": f"LLM_MODEL={MODEL}",
            " 1 40": f" 1 2 {AT_ONCE}",
            "python eval.py": f"python eval.py {AT_ONCE}",
            "make demo": "make -o setup demo DEMO='2 2 --shapes 0' KITTENS=",
        }
        for written, here in place.items():
            block = block.replace(written, here)
        environment = doors.environment(
            {
                "PATH": f"{self.clone}/.venv/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(self.clone),  # the environment that is shared belongs to another checkout
                "NUM_SAMPLES": "1",
                "CUDA_VISIBLE_DEVICES": "-1",
                "HIP_VISIBLE_DEVICES": "-1",
            }
        )
        words = ["bash", *(["-e"] if stops else []), "-c", block]
        return subprocess.run(
            words, cwd=self.clone, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip


def recorded(replies: Path, problems: Path) -> ModelServer:
    """A server that answers the k-th request on a problem with the first recorded reply of attempt k."""
    texts = replies_in_file(replies, "cpp")
    sources = {path.stem: path.read_text() for path in sorted(problems.glob("[0-9]_*.py"))}
    model = {name: source[source.index("class Model") :][:400].strip() for name, source in sources.items()}
    lock, calls = threading.Lock(), Counter[str]()

    def handler(request: Request) -> Scripted:
        prompt = prompt_of(request)
        name = next((name for name, text in model.items() if text in prompt), None)
        if name is None:
            return Scripted(text="ready")  # not a request for a kernel
        with lock:
            calls[name] += 1
            attempt = min(calls[name], 2)
        return Scripted(text=texts[f"{name}/attempt_{attempt}/sample_1"].text)

    return ModelServer(handler)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    clone = tmp_path_factory.mktemp("readme") / "hkbench"
    subprocess.run(["git", "clone", "-q", str(doors.ROOT), str(clone)], check=True, timeout=LIMIT)
    for ignored in (".venv", ".hip", ".hipkittens"):  # what `make setup` makes and fetches
        if (doors.ROOT / ignored).exists():
            (clone / ignored).symlink_to(doors.ROOT / ignored, target_is_directory=True)
    if not (clone / ".venv").exists():
        (clone / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    with recorded(clone / "examples/replies/reflect.toml", clone / "problems/level1") as server:
        yield Reader(clone, server)


def test_the_demo_then_a_run_on_a_model_as_they_stand(reader: Reader) -> None:
    """In this order: what the demo leaves is in nobody's way."""
    assert "make demo" in "".join(blocks(README))
    demo = reader.types("make demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    commands = told(section("Run it on a model"))
    assert any("run_batch.py 1 40" in block for block in commands)
    for block in commands:
        done = reader.types(block)
        assert done.returncode == 0, block + done.stdout + done.stderr
        assert "test-key" not in done.stdout + done.stderr
    runs = [path for path in (reader.clone / "results").iterdir() if path.is_dir() and not path.is_symlink()]
    assert reader.clone / "results" / "demo" in runs and len(runs) >= 2
    view = read_run(RunPaths(reader.clone / "results" / "latest"))
    assert view.config.model == MODEL and view.state.closed is not None and view.state.closed.complete
    assert any(sample.solved for problem in view.problems for sample in problem.samples)
    assert (reader.clone / "results" / "latest" / "report.html").is_file()
    assert reader.server.errors == []


@pytest.mark.alone
def test_verdicts_end_as_the_captured_output_says(reader: Reader) -> None:
    """Each `$ COMMAND; echo $?` ends with the code below it; README.md shows the first of docs/method.md."""
    (first,) = blocks(section("One verdict"))
    (captured,) = blocks(section("Three verdicts", METHOD))
    assert captured.startswith(first)
    sessions = [one for one in captured.split("$ ") if one.startswith("python eval.py")]
    assert len(sessions) == 3
    for session in sessions:
        command, *output = session.strip().splitlines()
        done = reader.types(command, stops=False)
        assert done.stdout.splitlines()[-1] == output[-1], command + done.stdout + done.stderr


def test_a_kernel_of_the_demo_can_be_judged_by_its_own_copy_of_the_problem(reader: Reader) -> None:
    run = reader.clone / "results" / "demo"
    if not run.exists():
        assert reader.types("make demo").returncode == 0
    name = "2_SwiGLU_fp32"
    done = reader.types(
        f"python eval.py --problem results/demo/{name}/{name}.py --code results/demo/{name}/best_code.py "
        "--trials 2 --timing-runs 5 --output verdict.json || test $? -le 1"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert Verdict.model_validate_json((reader.clone / "verdict.json").read_text()).problem == name
