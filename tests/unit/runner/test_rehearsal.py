from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.triton_kernels import HEAD, ROOT, require_triton

import hipkittens_build
from hkbench.protocol import messages
from hkbench.protocol.codec import encode
from hkbench.protocol.places import Argument, Place, TensorArgument
from hkbench.runner import capture, rehearsal
from hkbench.runner.capture import FailedBuilds

H100 = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3", major=9, minor=0, warp_size=32, multi_processor_count=132,
    max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
)  # fmt: skip


def request(device: str = "cpu", seconds: float = 20.0, modules: list[str] | None = None) -> messages.Rehearse:
    inputs: list[Argument] = [
        TensorArgument(tensor=Place(dtype="float32", shape=[64, 32], strides=[32, 1], offset=0, span=2048))
    ]
    return messages.Rehearse(
        device=device,
        gpu=vars(H100),
        threads=torch.get_num_threads(),
        modules=modules or [],
        init_inputs=[],
        inputs=inputs,
        seconds=seconds,
    )


@pytest.fixture(autouse=True)
def events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the file that events of builds are written to, from the fork as well."""
    file = tmp_path / "events"
    file.touch()

    def tell(event: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{event}\n")

    monkeypatch.setattr(capture, "listeners", [tell])
    monkeypatch.setattr(capture, "announce_compilers", lambda: None)  # for the rest of this process
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    return file


def noted(file: Path) -> type[torch.nn.Module]:
    """Return a class whose instances write what they are given to a file."""

    class ModelNew(torch.nn.Module):
        made = 0

        def __init__(self) -> None:
            super().__init__()
            ModelNew.made += 1
            self.weight = torch.nn.Parameter(torch.ones(32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            os.write(1, b"forward")
            made = x * self.weight
            file.write_text(f"{x.device} {x.is_cuda} {tuple(x.shape)} {made.device} {torch.is_grad_enabled()}")
            return made

    return ModelNew


def test_the_model_is_made_and_called_in_another_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model_class = noted(tmp_path / "seen")
    rehearsal.rehearse(request(), model_class, FailedBuilds())
    assert (tmp_path / "seen").read_text() == "cpu False (64, 32) cpu False"
    assert vars(model_class)["made"] == 0
    assert capfd.readouterr().out == ""


def test_it_builds_under_the_names_that_the_call_after_it_will_use(tmp_path: Path) -> None:
    class Named(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            (tmp_path / f"extension_{os.getpid()}").touch()
            return x

    rehearsal.rehearse(request(), Named, FailedBuilds())
    assert (tmp_path / f"extension_{os.getpid()}").exists()


def test_tensors_of_a_gpu_say_that_they_lie_on_it(tmp_path: Path) -> None:
    model_class = noted(tmp_path / "seen")
    rehearsal.rehearse(request("cuda:0"), model_class, FailedBuilds())
    assert (tmp_path / "seen").read_text() == "cuda:0 True (64, 32) cuda:0 False"
    assert not torch.cuda.is_available()


class _Builds(torch.nn.Module):
    """Builds for longer than a rehearsal may take beside that, and then never ends."""

    def forward(self, _x: torch.Tensor) -> None:
        for event, seconds in (("build_begin", 2.5), ("build_end", 60.0)):
            capture._tell(event)
            time.sleep(seconds)


def test_time_beside_builds_is_limited(events: Path) -> None:
    began = time.monotonic()
    rehearsal.rehearse(request(seconds=2.0), _Builds, FailedBuilds())
    assert 2.5 < time.monotonic() - began < 40.0
    assert events.read_text().split() == ["build_begin", "build_end"]


class _Fails(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        capture.cpp_extension.load_inline("wrong", "")


def test_what_fails_to_build_is_known_afterwards(monkeypatch: pytest.MonkeyPatch, events: Path) -> None:
    def build(name: str, _sources: str) -> None:
        raise RuntimeError(f"Error building extension {name!r}")

    failed = FailedBuilds()
    monkeypatch.setattr(capture.cpp_extension, "load_inline", build)
    monkeypatch.setattr(capture.cpp_extension, "load", build)
    monkeypatch.setattr(hipkittens_build, "build", build)
    capture.announce_builds(failed)
    rehearsal.rehearse(request(), _Fails, failed)
    assert events.read_text().split() == ["build_begin", "build_end"]
    with pytest.raises(RuntimeError, match="Error building extension 'wrong'"):
        capture.cpp_extension.load_inline("wrong", "")
    assert events.read_text().split() == ["build_begin", "build_end"]


class _Dies(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        os.kill(os.getpid(), signal.SIGKILL)


def test_how_it_ends_is_nobody_s_failure() -> None:
    rehearsal.rehearse(request(), _Dies, FailedBuilds())


#: A process that rehearses ModelNew of a file, and calls it then where the device is there.
_SCRIPT = """
import json, os, sys, torch
from hkbench.protocol.codec import decode
from hkbench.protocol.messages import Rehearse
from hkbench.runner import capture, rehearsal
from hkbench.runner.load import load_file

request, code = json.loads(sys.argv[1])
request = decode(Rehearse, request)
out = os.dup(1)
capture.listeners.append(lambda event: os.write(out, f"{event}\\n".encode()))
model_class = load_file("candidate", code, {}).ModelNew
rehearsal.rehearse(request, model_class, capture.FailedBuilds())
if request.device == "cpu":
    print("rehearsed", flush=True)
    with torch.no_grad():
        model_class()(torch.randn(64, 32))
    from torch._dynamo.utils import counters
    print(json.dumps(dict(counters["inductor"])))
"""


def rehearsed(folder: Path, source: str, asked: messages.Rehearse) -> list[str]:
    """Return the lines that the process prints."""
    code = folder / "code.py"
    code.write_text(HEAD + textwrap.dedent(source))
    caches = {name: str(folder / name) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    told = json.dumps([encode(asked), str(code)])
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, told], cwd=ROOT, env=os.environ | caches, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_triton_compiles_for_the_gpu_all_that_its_autotuner_tries(tmp_path: Path) -> None:
    require_triton()
    source = """
    @triton.autotune([triton.Config({"BLOCK": block}) for block in (96, 64, 128, 256)], key=["count"])
    @triton.jit
    def double(x_at, out_at, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_at + at, 2.0 * tl.load(x_at + at, mask=at < count), mask=at < count)

    class ModelNew(nn.Module):
        def forward(self, x):
            assert torch.cuda.get_device_capability() == (9, 0)
            out = torch.empty_like(x)
            double[lambda given: (triton.cdiv(x.numel(), given["BLOCK"]),)](x, out, x.numel())
            return double[lambda given: (1,)](x[:40], out, 40)
    """
    source = source.replace("at = ", "tl.static_assert(BLOCK != 96)\n        at = ", 1)  # of which the autotuner hears
    said = rehearsed(tmp_path, source, request("cuda:0", modules=["triton"]))
    assert set(zip(said[::2], said[1::2], strict=True)) == {("build_begin", "build_end")}
    # 40 is not divisible by 16, as the problem's size is: the second call has its own code, of each block.
    assert len(list((tmp_path / "TRITON_CACHE_DIR").rglob("*.cubin"))) == 2 * len((64, 128, 256))


@pytest.mark.slow
def test_torch_compile_finds_what_a_rehearsal_compiled(tmp_path: Path) -> None:
    source = """
    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 16)
            self.tail = torch.compile(lambda x: torch.relu(x) * x.sum(-1, keepdim=True))

        def forward(self, x):
            return self.tail(self.linear(x))
    """
    modules = ["torch._dynamo", "torch._inductor.compile_fx"]
    *_, counted = rehearsed(tmp_path, source.replace("import triton", ""), request(modules=modules))
    assert json.loads(counted) == {"fxgraph_cache_hit": 1}
