"""Runners in their cage, as real processes: what they cannot reach, and what must go on working."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.isolation import runner_layers

from hkbench.sandbox import landlock
from hkbench.sandbox.cage import REFUSED, SHARED_PROCESSES, Cage, Spawned, spawn
from hkbench.sandbox.environment import device_files, readable_paths

ROOT = Path(__file__).resolve().parents[3]
READABLE, DEVICES = readable_paths(), device_files()
LAYERS = runner_layers()
HELD_BY = {  #: which single layers hold a protection by themselves
    "files": ("namespaces", "landlock"),
    "network": ("namespaces", "seccomp"),
    "signals": ("namespaces", "landlock"),
    "processes": ("namespaces", "landlock"),
    "syscalls": ("seccomp",),
}


def layers_for(protection: str) -> list[Any]:
    """All layers together and each of those that hold `protection` alone, where this machine has them."""
    cases = [pytest.param(LAYERS, id="all")]
    for kind in HELD_BY[protection]:
        found = tuple(layer for layer in LAYERS if layer.startswith(kind))
        old = kind == "landlock" and protection == "signals" and found and landlock.version() < landlock.SIGNAL_ABI
        shared = SHARED_PROCESSES in found and protection in ("signals", "processes")
        absent = () if found and not old and not shared else (pytest.mark.skip(reason=f"no {kind} here that does it"),)
        cases.append(pytest.param(found, id=kind, marks=absent))
    return cases


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    private = tmp_path / "private"
    (private / "tmp").mkdir(parents=True)
    return Cage(READABLE, (str(private), *DEVICES), LAYERS)


@contextmanager
def spawned(cage: Cage, target: Callable[[], None], output: Path | None = None) -> Iterator[Spawned]:
    def prepare() -> None:
        os.chdir(cage.writable[0])
        if output is not None:
            fd = os.open(output, os.O_WRONLY | os.O_CREAT)
            os.dup2(fd, 1)
            os.dup2(fd, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)

    # Made before, since the cage has no name for it.
    if output is not None:
        output.touch()
    started = spawn(replace(cage, readable=(*cage.readable, *([str(output)] if output else []))), prepare, target)
    yield started
    os.waitpid(started.pid, 0)


def wait_status(started: Spawned) -> int:
    with os.fdopen(started.status_fd, "rb") as stream:
        text = stream.read()
    assert text, "the init ended without a word"
    return int(text)


def inside(cage: Cage, ask: Callable[[], Any]) -> Any:
    """What `ask` returns in the cage, or the name of the error that it raised."""
    ours, theirs = socket.socketpair()

    def target() -> None:
        try:
            answer = ask()
        except OSError as error:
            answer = {"error": type(error).__name__, "errno": error.errno}
        theirs.sendall(json.dumps(answer).encode() + b"\n")

    with ours, spawned(cage, target) as started:
        theirs.close()
        ours.settimeout(120)
        text = b""
        while not text.endswith(b"\n"):
            part = ours.recv(1 << 16)
            assert part, f"the runner ended without an answer: {wait_status(started)}"
            text += part
        assert wait_status(started) == 0
    return json.loads(text)


def refused(answer: object) -> bool:
    return isinstance(answer, dict) and "error" in answer


def program(cage: Cage, *command: str) -> tuple[int, str]:
    """Exit code and output of a program in the cage."""

    def ask() -> tuple[int, str]:
        environment = {"PATH": os.environ["PATH"], "TMPDIR": f"{cage.writable[0]}/tmp"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout + done.stderr

    code, text = inside(cage, ask)
    return code, text


@pytest.mark.parametrize("layers", layers_for("files"))
def test_files_that_are_not_its_own(cage: Cage, tmp_path: Path, layers: tuple[str, ...]) -> None:
    cage = replace(cage, layers=layers)
    other = tmp_path / "other"
    other.mkdir()
    (other / "candidate.py").write_text("other")
    reply = next((ROOT / "examples/replies").rglob("*.md"))
    home = Path.home()
    for file in (Path("/etc/shadow"), reply, other / "candidate.py", ROOT / "pyproject.toml"):
        assert refused(inside(cage, partial(file.read_text, "utf-8"))), file
    for folder in (home / ".ssh", home, ROOT / "examples/replies", ROOT / "hkbench/evaluation", ROOT, other):
        seen = inside(cage, partial(os.listdir, folder))
        # The way to a folder that may be read has a name, but nothing beside it.
        hidden = {".ssh", "examples", "results", "judge", "candidate.py"}
        assert refused(seen) or not hidden & set(seen), (folder, seen)
    for path in (other / "new", ROOT / "new", home / "new", Path("/usr/new"), Path(sys.prefix, "new")):
        answer = inside(cage, partial(path.write_text, "x"))
        # Below /tmp the cage has a private folder of that name, where the project may lie too.
        assert refused(answer) or path.is_relative_to("/tmp"), path
        assert not path.exists()
    assert refused(inside(cage, lambda: Path("/proc/sys/kernel/domainname").write_text("x")))


@pytest.mark.parametrize("layers", layers_for("files"))
def test_the_private_folder_and_what_it_may_read(cage: Cage, layers: tuple[str, ...]) -> None:
    cage = replace(cage, layers=layers)
    private = Path(cage.writable[0])

    def ask() -> str:
        (private / "folder").mkdir()
        (private / "folder/file").write_text("kept")
        (private / "folder/file").rename(private / "file")
        (private / "folder").rmdir()
        Path("/dev/null").write_text("x")
        return Path("/etc/passwd").read_text()[:4] + str(len(os.listdir(sys.prefix)) > 1)

    assert inside(cage, ask) == Path("/etc/passwd").read_text()[:4] + "True"
    assert (private / "file").read_text() == "kept"


def test_a_process_that_it_starts_may_take_a_gpu(cage: Cage) -> None:
    """CUDA names its threads by writing below /proc/self, and does not start where it cannot; ncu starts a process."""
    if "namespaces" not in LAYERS:
        pytest.skip("without process numbers of its own the cage leaves only the runner's own folder in /proc writable")
    name = "import threading, pathlib; p = pathlib.Path(f'/proc/self/task/{threading.get_native_id()}/comm')"
    code, text = program(cage, sys.executable, "-c", f"{name}; p.write_text('named'); print(p.read_text().strip())")
    assert (code, text.strip()) == (0, "named")


@pytest.mark.parametrize("way", [["nvcc"], ["hipcc", "/store", "/requests"], ["compile", "/store", "/requests"]])
def test_what_stands_before_a_compiler_finds_its_modules(cage: Cage, way: list[str]) -> None:
    """The script in a build.ninja of ours imports others, where nobody may list the project's folders."""
    words = [sys.executable, "-I", "-S", str(ROOT / "hkbench/fastbuild/inside/compiler_wrapper.py"), *way]
    assert program(cage, *words, "/bin/echo", "compiled") == (0, "compiled\n")


def test_tmp_is_its_own(cage: Cage) -> None:
    if "namespaces" not in LAYERS:
        pytest.skip("without namespaces there is no /tmp in the cage at all")
    private = Path(cage.writable[0])
    inside(cage, lambda: Path("/tmp/word").write_text("x"))
    assert (private / "tmp/word").read_text() == "x"
    assert not Path("/tmp/word").exists()


@pytest.mark.parametrize("layers", layers_for("network"))
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_no_network(cage: Cage, layers: tuple[str, ...], kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as server:
        server.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            server.listen()
        address = server.getsockname()

        def ask() -> str:
            with socket.socket(socket.AF_INET, kind) as sock:
                sock.connect(address)
                sock.send(b"x")
            return "reached"

        answer = inside(replace(cage, layers=layers), ask)
        assert refused(answer), answer
        assert inside(replace(cage, layers=()), ask) == "reached"


@pytest.mark.parametrize("layers", layers_for("network"))
def test_no_sockets_of_services(cage: Cage, tmp_path: Path, layers: tuple[str, ...]) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "service"))
        server.listen()

        def ask() -> str:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(tmp_path / "service"))
            return "reached"

        assert refused(inside(replace(cage, layers=layers), ask))
        assert inside(replace(cage, layers=()), ask) == "reached"


@pytest.mark.parametrize("layers", layers_for("signals"))
def test_no_signals_to_others(cage: Cage, layers: tuple[str, ...]) -> None:
    with subprocess.Popen(["sleep", "60"]) as victim:
        try:
            for pid in (victim.pid, os.getpid()):
                # A number may mean somebody else in the cage: what counts is that the outer process gets nothing.
                number = signal.SIGTERM if pid == victim.pid else 0
                answer = inside(replace(cage, layers=layers), partial(os.kill, pid, number))
                assert refused(answer), answer
            assert victim.poll() is None
        finally:
            victim.kill()


@pytest.mark.parametrize("layers", layers_for("processes"))
def test_other_processes_are_closed_books(cage: Cage, layers: tuple[str, ...]) -> None:
    # The init is the runner's parent; the test is the guard's and evaluator's stand-in.
    with subprocess.Popen(["sleep", "60"], env={"API_KEY": "secret"}) as victim:
        try:
            for name in ("environ", "mem", "maps", "fd/0"):
                path = f"/proc/{victim.pid}/{name}"
                answer = inside(replace(cage, layers=layers), partial(os.open, path, os.O_RDONLY))
                assert refused(answer), (name, answer)
        finally:
            victim.kill()

    def open_of_the_parent(name: str) -> int:
        return os.open(f"/proc/{os.getppid()}/{name}", os.O_RDONLY)

    for name in ("environ", "mem", "fd/3"):
        answer = inside(replace(cage, layers=layers), partial(open_of_the_parent, name))
        assert refused(answer), (name, answer)


@pytest.mark.parametrize("layers", layers_for("syscalls"))
def test_doors_into_the_kernel(cage: Cage, layers: tuple[str, ...]) -> None:
    cage = replace(cage, layers=layers)
    code, text = program(cage, "unshare", "--user", "true")
    assert code != 0 and "not permitted" in text
    code, text = program(cage, "unshare", "--mount", "true")
    assert code != 0
    code, text = program(cage, "mount", "-t", "tmpfs", "none", f"{cage.writable[0]}/tmp")
    assert code != 0


COMPILER = ("g++", "-shared", "-fPIC", "-o", "out.so", "source.cpp")


@pytest.mark.parametrize("layers", layers_for("files"))
def test_a_build_reads_nothing_else_either(cage: Cage, tmp_path: Path, layers: tuple[str, ...]) -> None:
    cage = replace(cage, layers=layers)
    private = Path(cage.writable[0])
    secret = tmp_path / "secret"
    secret.write_text("int secret = 1;")
    (private / "source.cpp").write_text(f'#include "{secret}"\n')
    code, text = program(cage, *COMPILER)
    assert code != 0 and "secret" in text and not (private / "out.so").exists()
    (private / "source.cpp").write_text(f'__asm__(".incbin \\"{secret}\\"");\n')
    code, text = program(cage, *COMPILER)
    assert code != 0 and not (private / "out.so").exists()
    (private / "source.cpp").write_text(
        '#include <vector>\nextern "C" int f() { return std::vector<int>(3).size(); }\n'
    )
    code, text = program(cage, *COMPILER)
    assert code == 0, text
    assert (private / "out.so").stat().st_size > 0


def test_torch_and_its_threads(cage: Cage) -> None:
    work = "import torch; torch.set_num_threads(2); x = torch.ones(512, 512); print(int((x @ x).sum()))"
    code, text = program(cage, sys.executable, "-c", work)
    assert (code, text) == (0, f"{512**3}\n")


def test_shared_memory_of_the_standard_library(cage: Cage) -> None:
    if "namespaces" not in LAYERS:
        pytest.skip("without namespaces there is no /dev/shm in the cage")
    work = "import multiprocessing as m; q = m.Queue(); q.put(5); print(q.get())"
    assert program(cage, sys.executable, "-c", work) == (0, "5\n")


@pytest.mark.parametrize("layers", [LAYERS, ()], ids=["all", "none"])
def test_the_way_it_ended(cage: Cage, layers: tuple[str, ...]) -> None:
    cage = replace(cage, layers=layers)
    for number, end in (
        (signal.SIGABRT, os.abort),
        (signal.SIGSEGV, lambda: os.kill(os.getpid(), signal.SIGSEGV)),
        (signal.SIGKILL, lambda: os.kill(os.getpid(), signal.SIGKILL)),
    ):
        with spawned(cage, end) as started:
            status = wait_status(started)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
    with spawned(cage, lambda: sys.exit(7)) as started:
        assert os.waitstatus_to_exitcode(wait_status(started)) == 7


def test_nobody_outlives_the_runner(cage: Cage, tmp_path: Path) -> None:
    if "namespaces" not in LAYERS:
        pytest.skip("without process numbers of its own this is the guard's business")
    ours, theirs = socket.socketpair()

    def target() -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(60)
            os._exit(0)

    with ours, spawned(cage, target) as started:
        theirs.close()
        assert wait_status(started) == 0
        ours.settimeout(10)
        assert ours.recv(1) == b""  # the grandchild held the other end


def test_the_end_of_the_init_is_the_end_of_all(cage: Cage) -> None:
    ours, theirs = socket.socketpair()
    with ours, spawned(cage, lambda: time.sleep(60)) as started:
        theirs.close()
        os.kill(started.pid, signal.SIGKILL)
        ours.settimeout(10)
        assert ours.recv(1) == b""
        os.close(started.status_fd)


def test_no_capabilities_and_none_to_be_had(cage: Cage) -> None:
    for layers in (LAYERS, ()):
        text = inside(replace(cage, layers=layers), lambda: Path("/proc/self/status").read_text())
        fields = dict(line.split(":\t") for line in text.splitlines() if line.startswith(("Cap", "NoNew")))
        assert fields["NoNewPrivs"] == "1"
        assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == int(fields["CapAmb"], 16) == 0
        assert os.geteuid() != 0 or int(fields["CapBnd"], 16) == 0


def test_a_layer_that_fails_keeps_the_runner_from_starting(cage: Cage, tmp_path: Path) -> None:
    if "namespaces" not in LAYERS:
        pytest.skip("no namespaces here")
    missing = replace(cage, writable=(cage.writable[0], str(tmp_path / "missing")))
    marker = Path(cage.writable[0], "started")
    words = tmp_path / "words"
    with spawned(missing, lambda: marker.touch(), words) as started:
        status = wait_status(started)
    assert os.waitstatus_to_exitcode(status) == REFUSED
    assert "the runner was not started: the layer namespaces: open_tree" in words.read_text()
    assert not marker.exists()


def test_a_cage_costs_little(cage: Cage) -> None:
    """CPU time of the cage and of what it ends in: a busy machine does not change it much."""
    seconds = []
    for _ in range(5):
        began = os.times()
        with spawned(cage, lambda: None) as started:
            wait_status(started)
        ended = os.times()
        seconds.append(sum(ended[:4]) - sum(began[:4]))
    assert min(seconds) < 0.5
