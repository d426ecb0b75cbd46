"""Which layers of confinement work on this machine, and what they then keep a runner from. Found by trying.

`python -m hkbench.sandbox.survey` prints JSON: `level`, `layers`, `holds`, `missing`, in the words of a verdict's
isolation. Each layer is put on a forked child by the same code that confines runners; the child then tries what it
should not be able to do. The question is asked in a process of its own, since the answer leaves processes behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkbench.sandbox import command, landlock, linux, seccomp
from hkbench.sandbox.cage import LANDLOCK, NAMESPACES, SECCOMP, SHARED_PROCESSES, Cage, spawn
from hkbench.sandbox.environment import device_files, readable_paths

SECONDS = 60.0
LIMITS = "limits"
PROTECTIONS = ("files", "network", "signals", "processes", "syscalls", LIMITS)
_INSIDE = "--inside-bubblewrap"
_CALLS = {"x86_64": (272, 101), "aarch64": (97, 117)}  #: unshare, ptrace
_CLONE_NEWUSER = 0x10000000
Allowed = tuple[tuple[str, ...], tuple[str, ...]]  #: readable paths, devices
#: A process that lives long enough to be attacked; by this interpreter, which is there where no other program is.
_VICTIM = [sys.executable, "-I", "-S", "-c", f"import time; time.sleep({SECONDS})"]
_IN_ROOT = "/hkbench-probe"


def survey() -> dict[str, Any]:
    """Try every layer here; see the module's text for what comes back."""
    allowed = readable_paths(), device_files()
    layers, refused = _layers(allowed)
    if not any(layer.startswith(NAMESPACES) for layer in layers) and _INSIDE not in sys.argv:
        wrapped = _in_bubblewrap()
        if wrapped is not None:
            return wrapped
    outside = [command.BUBBLEWRAP] if _INSIDE in sys.argv else []
    held = _held(allowed, tuple(layers))
    held[LIMITS] = ""
    holds = [name for name in PROTECTIONS if not held[name]]
    missing = [_why(name, held[name], layers, refused) for name in PROTECTIONS if held[name]]
    level = "full" if not missing else "partial" if len(holds) > 1 else LIMITS
    return {"level": level, "layers": [*outside, *layers, "guard"], "holds": holds, "missing": missing}


def _layers(allowed: Allowed) -> tuple[list[str], dict[str, str]]:
    """Return the layers that can be entered, and for the others why not."""
    works: list[str] = []
    refused: dict[str, str] = {}
    candidates: list[list[str]] = [[NAMESPACES, SHARED_PROCESSES], [SECCOMP]]
    try:
        candidates.insert(1, [f"{LANDLOCK} {landlock.version()}"])
    except OSError as error:
        refused[LANDLOCK] = str(error.strerror)
    for ways in candidates:
        for layer in ways:
            try:
                _try(allowed, (layer,), lambda _private: True)
            except OSError as error:
                refused.setdefault(layer, str(error))
            else:
                works.append(layer)
                break
    return works, refused


@dataclass(frozen=True)
class _Surroundings:
    """What the child tries to reach."""

    secret: str  #: a file
    folder: str  #: to write into
    port: int  #: of TCP and UDP on 127.0.0.1
    abstract: bytes  #: name of a Unix socket
    path: str  #: of another one
    victim: int  #: a process of the same user
    numbers: str  #: which process numbers the victim lives among


def _held(allowed: Allowed, layers: tuple[str, ...]) -> dict[str, str]:
    """Return for each protection how it was broken; the empty string where it holds."""
    with _surroundings() as around:
        answer = _try(allowed, layers, lambda private: _attack(around, private))
    with contextlib.suppress(OSError):  # there only where the root folder could be written
        Path(_IN_ROOT).rmdir()
    assert isinstance(answer, dict)
    return answer


@contextlib.contextmanager
def _surroundings() -> Iterator[_Surroundings]:
    with (
        tempfile.TemporaryDirectory(prefix="hkbench-") as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as service,
        # Without capabilities, as another runner: those of root would protect it from one that has none.
        subprocess.Popen(_VICTIM, stdin=subprocess.DEVNULL, preexec_fn=linux.drop_capabilities) as victim,
    ):
        try:
            secret = Path(folder, "secret")
            secret.write_text("secret")
            name = b"\0hkbench-" + os.urandom(8).hex().encode()
            abstract.bind(name)
            abstract.listen()
            service.bind(f"{folder}/socket")
            service.listen()
            numbers = str(Path("/proc/self/ns/pid").readlink())
            port = tcp.getsockname()[1]
            yield _Surroundings(str(secret), folder, port, name, f"{folder}/socket", victim.pid, numbers)
        finally:
            victim.kill()


def _try(allowed: Allowed, layers: tuple[str, ...], target: Callable[[str], Any]) -> Any:
    """Return what `target(private folder)` returns in a cage of these layers.

    Raises:
        OSError: the cage could not be entered; with the cage's own words.
    """
    read_end, write_end = os.pipe()
    with tempfile.TemporaryDirectory(prefix="hkbench-") as private, tempfile.TemporaryFile() as words:
        Path(private, "tmp").mkdir()
        Path(private, "probe").write_text("own")
        cage = Cage(allowed[0], (private, *allowed[1]), layers)

        def prepare() -> None:
            os.dup2(words.fileno(), 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)

        def answer() -> None:
            os.write(write_end, json.dumps(target(private)).encode())

        spawned = spawn(cage, prepare, answer)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe, os.fdopen(spawned.status_fd, "rb") as status:
            result, code = pipe.read(), status.read()
        os.waitpid(spawned.pid, 0)
        if code != b"0" or not result:
            words.seek(0)
            said = words.read().decode(errors="replace").strip().splitlines() or [f"wait status {code.decode()!r}"]
            raise OSError(said[-1])
        return json.loads(result)


def _attack(around: _Surroundings, private: str) -> dict[str, str]:
    """Try everything, in the cage."""
    own_numbers = str(Path("/proc/self/ns/pid").readlink()) != around.numbers
    own_proc = str(Path("/proc/self").readlink()) == str(os.getpid())
    return {
        "files": _reached({
            "a foreign file can be read": lambda: Path(around.secret).read_bytes(),
            "a foreign folder can be written": lambda: Path(around.folder, "new").touch(),
            "the root folder can be written": lambda: Path(_IN_ROOT).mkdir(),
        }) or _unreached({"the private folder cannot be written": lambda: Path(private, "new").write_text("x")}),
        "network": _reached({
            "TCP": lambda: socket.create_connection(("127.0.0.1", around.port), 5).close(),
            "UDP": lambda: _datagram(around.port),
            "abstract Unix sockets": lambda: _connect(around.abstract),
            "Unix sockets of services": lambda: _connect(around.path),
        }),
        "signals": "" if own_numbers else _reached({
            "signals reach other processes": lambda: os.kill(around.victim, 0)
        }),
        "processes": "" if own_numbers and own_proc else _reached({
            "the environment of other processes can be read":
                lambda: Path(f"/proc/{around.victim}/environ").read_bytes(),
            "the memory of other processes can be written": lambda: os.close(
                os.open(f"/proc/{around.victim}/mem", os.O_RDWR)),
        }),
        "syscalls": _system_calls(),
    }  # fmt: skip


def _reached(attempts: dict[str, Callable[[], object]]) -> str:
    """Return the first attempt that is not refused."""
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        return name
    return ""


def _unreached(attempts: dict[str, Callable[[], object]]) -> str:
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            return f"{name} ({error.strerror})"
    return ""


def _datagram(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", port))


def _connect(address: str | bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address)


def _system_calls() -> str:
    unshare, ptrace = _CALLS.get(os.uname().machine, (0, 0))
    if not unshare:
        return "the machine's system calls are not known here"
    attempts = {
        "unshare": (unshare, _CLONE_NEWUSER),
        "ptrace": (ptrace, 0),
        "io_uring_setup": (425, 1, ctypes.addressof(ctypes.create_string_buffer(256))),
    }
    for name, (number, *arguments) in attempts.items():
        try:
            linux.syscall(name, number, *arguments)
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
        return f"{name} goes through"
    return ""


def _why(name: str, broken: str, layers: list[str], refused: dict[str, str]) -> str:
    """Return one line: what does not hold, why, and what would change it."""
    remedies: list[str] = []
    if name != "syscalls" and NAMESPACES not in layers:
        remedies.append(f"namespaces: {refused.get(NAMESPACES, 'not complete')}{_namespace_remedy()}")
    if name in ("files", "signals", "processes"):
        if LANDLOCK in refused:
            remedies.append(
                f"landlock: {refused[LANDLOCK]}; it needs Linux 5.13 (signals: 6.12) "
                "and `landlock` in the boot option lsm="
            )
        elif name == "signals" and NAMESPACES not in layers:
            remedies.append("landlock: signals are its business from ABI 6 on (Linux 6.12)")
    if name in ("network", "syscalls") and SECCOMP in refused:
        known = "" if seccomp.supported() else " (x86-64 and AArch64 only)"
        remedies.append(f"seccomp: {refused[SECCOMP]}{known}")
    return f"{name}: {broken}" + (f" ({'; '.join(remedies)})" if remedies else "")


def _namespace_remedy() -> str:
    """Return what would let this user make namespaces, as far as the kernel's switches tell."""
    switches = {
        "kernel/unprivileged_userns_clone": ("0", "1"),
        "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
        "user/max_user_namespaces": ("0", "10000"),
    }
    for path, (bad, good) in switches.items():
        name = path.replace("/", ".")
        with contextlib.suppress(OSError):
            if Path("/proc/sys", path).read_text().strip() == bad:
                return f"; {name}={bad}: ask for `sysctl {name}={good}`, or install bubblewrap"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return "; in a container: start it with a seccomp profile that lets it unshare, or with --security-opt"
    return ""


def _in_bubblewrap() -> dict[str, Any] | None:
    """Return the same question asked inside of bubblewrap, if that works here."""
    prefix = command.bubblewrap()
    if prefix is None:
        return None
    words = [*prefix, sys.executable, "-m", "hkbench.sandbox.survey", _INSIDE]
    done = subprocess.run(words, capture_output=True, check=False, timeout=SECONDS)
    if done.returncode:
        return None
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


if __name__ == "__main__":
    print(json.dumps(survey()))  # noqa: T201
