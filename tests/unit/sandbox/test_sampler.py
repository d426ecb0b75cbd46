"""The profiler from outside, on real processes: the shares are right, and nobody is harmed."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.guard_alone import guarded

from hkbench.evaluation.link import Samples
from hkbench.evaluation.side import RESTLESS_SECONDS
from hkbench.protocol import wire
from hkbench.sandbox.proc import newest_task
from hkbench.sandbox.sampler import ANONYMOUS, CODE_BYTES, FURTHER, HIDDEN, MAX_LOOKS, MAX_THREADS, Place, Sampler

# Threads of its own: OpenMP's do not survive the fork of a test process in which torch has already used them.
BURN = """
#include <chrono>
#include <thread>
static void work(double seconds, double* total) {
    using clock = std::chrono::steady_clock;
    const auto until = clock::now() + std::chrono::duration<double>(seconds);
    while (clock::now() < until)
        for (int i = 1; i < 200000; i++) *total += 1.0 / (i * 1.5 + *total * 1e-9);
}
extern "C" double burn(double seconds) {
    double mine = 0, other = 0;
    std::thread second(work, seconds, &other);
    work(seconds, &mine);
    second.join();
    return mine + other;
}
"""


def sampled(
    target: Callable[[socket.socket], None], folder: Path, seconds: float = 0.8, healthy: bool = True
) -> Samples:
    """Samples while the target, which says when it begins, works; then hears that it is alive."""
    with guarded(target, folder) as alone:
        assert alone.hear()
        alone.link.sample_begin()
        time.sleep(seconds)
        samples = alone.link.sample_end()
        if healthy:
            assert alone.hear() == b"well"
        end = alone.link.end()
        assert (end.reason, end.survivors) == ("asked", 0), end
    return samples


def build_burn(folder: Path) -> None:
    """Build burn.so, as which the target loads it: its working folder is this one."""
    (folder / "burn.cpp").write_text(BURN)
    command = ["g++", "-O2", "-pthread", "-shared", "-fPIC", "burn.cpp", "-o", "burn.so"]
    subprocess.run(command, cwd=folder, check=True)


def share(samples: Samples, part: str) -> float:
    places = [place for look in samples.looks for place in look]
    assert len(places) == samples.samples or len(samples.looks) == MAX_LOOKS
    return sum(part in place.path for place in places) / max(1, len(places))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_an_own_library_with_threads(tmp_path: Path) -> None:
    build_burn(tmp_path)

    def target(sock: socket.socket) -> None:
        burn = ctypes.CDLL("./burn.so").burn
        burn.argtypes, burn.restype = (ctypes.c_double,), ctypes.c_double
        sock.sendall(b"go")
        burn(1.5)
        sock.sendall(b"well")
        time.sleep(60)

    samples = sampled(target, tmp_path)
    assert samples.error is None
    assert samples.samples > 20
    assert share(samples, str(tmp_path / "burn.so")) > 0.8, samples
    content = (tmp_path / "burn.so").read_bytes()
    own = [place for look in samples.looks for place in look if "burn.so" in place.path]
    assert {place.code for place in own} == {content[place.offset :][:CODE_BYTES] for place in own}
    assert any(sum("burn.so" in place.path for place in look) == 2 for look in samples.looks)  # both of its threads


def test_a_foreign_library(tmp_path: Path) -> None:
    def target(sock: socket.socket) -> None:
        import numpy as np

        a = np.ones((500, 500))
        a @ a
        sock.sendall(b"go")
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            a @ a
        sock.sendall(b"well")
        time.sleep(60)

    samples = sampled(target, tmp_path)
    assert samples.samples > 20
    assert share(samples, "openblas") > 0.8, samples


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is x86-64's")
def test_code_made_while_it_runs(tmp_path: Path) -> None:
    def target(sock: socket.socket) -> None:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("ebfe"))  # jumps to itself
        place = ctypes.addressof(ctypes.c_char.from_buffer(page))
        execute_only = 4
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), ctypes.c_size_t(4096), execute_only) == 0
        sock.sendall(b"go")
        ctypes.CFUNCTYPE(None)(place)()

    samples = sampled(target, tmp_path, healthy=False)
    assert share(samples, ANONYMOUS) > 0.8, samples
    codes = {place.code[:2] for look in samples.looks for place in look if place.path == ANONYMOUS}
    assert codes == {bytes.fromhex("ebfe")}


def test_the_looks_of_a_long_call_are_drawn_from_all_of_it() -> None:
    sampler = Sampler()
    for number in range(8 * MAX_LOOKS):
        sampler._count(Place("file", number))
        sampler._end_look()
    result = sampler.result()
    kept = sorted(offset for _, offset, _ in result["places"])
    assert (result["samples"], len(result["looks"]), len(kept)) == (8 * MAX_LOOKS, MAX_LOOKS, MAX_LOOKS)
    assert abs(kept[MAX_LOOKS // 2] - 4 * MAX_LOOKS) < MAX_LOOKS  # the median of 1024 places: five standard errors


def test_the_answer_stays_a_message_however_many_threads_and_files_there_are() -> None:
    sampler = Sampler()
    for number in range(2 * MAX_LOOKS):
        for thread in range(2 * MAX_THREADS):
            sampler._count(
                Place(f"{number % 100}" + "\udcff" * 4000, number * 1000 + thread, bytes([thread]) * CODE_BYTES)
            )
        sampler._count(Place("rare"))
        sampler._end_look()
    result = sampler.result()
    assert len(json.dumps(result)) < wire.MAX_BODY
    assert {len(look) for look in result["looks"]} == {MAX_THREADS}
    rare = result["paths"].index("rare")
    assert all(rare in [result["places"][place][0] for place in look] for look in result["looks"])
    assert FURTHER in result["paths"]


def test_threads_forks_and_signals_go_on(tmp_path: Path) -> None:
    """Threads start and end, children too, and each signal arrives, however often it is looked."""

    def target(sock: socket.socket) -> None:
        heard = []
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
        sock.sendall(b"go")
        until, sent = time.monotonic() + 1.5, 0
        while time.monotonic() < until:
            threads = [threading.Thread(target=sum, args=(range(20_000),)) for _ in range(3)]
            for thread in threads:
                thread.start()
            pid = os.fork()
            if pid == 0:
                sum(range(20_000))
                os._exit(9)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
            os.kill(os.getpid(), signal.SIGUSR1)
            sent += 1
            for thread in threads:
                thread.join()
        sock.sendall(b"well" if len(heard) == sent else b"%d of %d signals" % (len(heard), sent))
        time.sleep(60)

    assert sampled(target, tmp_path).samples > 20


@pytest.mark.skipif(newest_task() == b"" or shutil.which("g++") is None, reason="no /proc/loadavg, or no g++")
def test_who_lives_for_a_few_milliseconds_is_seen(tmp_path: Path) -> None:
    """One process after the other, each of which ends before the sampler would look for new ones in any case."""
    build_burn(tmp_path)

    def target(sock: socket.socket) -> None:
        burn = ctypes.CDLL("./burn.so").burn
        burn.argtypes, burn.restype = (ctypes.c_double,), ctypes.c_double
        sock.sendall(b"go")
        while True:
            if os.fork() == 0:
                burn(0.004)
                os._exit(0)
            os.wait()

    samples = sampled(target, tmp_path, healthy=False)
    assert share(samples, "burn.so") > 0.3, samples


def test_who_sleeps_is_left_alone(tmp_path: Path) -> None:
    def target(sock: socket.socket) -> None:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        sock.sendall(b"go")
        time.sleep(60)

    samples = sampled(target, tmp_path, 0.4, healthy=False)
    assert samples.error is None
    assert samples.samples <= 3, samples  # of about 200 looks: the way to sleep and nothing later


def test_who_cannot_be_traced_is_told(tmp_path: Path) -> None:
    """A process has one tracer: here its own parent came first."""

    def target(sock: socket.socket) -> None:
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
            sock.sendall(b"go")
            while True:
                pass
        os.waitpid(pid, 0)

    samples = sampled(target, tmp_path, 0.4, healthy=False)
    assert share(samples, HIDDEN) > 0.8, samples
    assert samples.error is not None and "not permitted" in samples.error


def test_a_tree_is_frozen_while_it_is_sampled(tmp_path: Path) -> None:
    def spin() -> None:
        while True:  # in bytecode: a builtin's loop would never hand over the interpreter's lock
            pass

    def target(sock: socket.socket) -> None:
        threading.Thread(target=spin, daemon=True).start()
        sock.sendall(b"go")
        spin()

    with guarded(target, tmp_path) as alone:
        alone.hear()
        alone.link.sample_begin()
        for _ in range(20):
            frozen = alone.link.freeze()
            time.sleep(0.01)
            resumed = alone.link.resume()
            assert frozen.running == resumed.running == 0
            assert 0.0 <= resumed.cpu_seconds - frozen.cpu_seconds < RESTLESS_SECONDS
            time.sleep(0.01)
        assert alone.link.sample_end().samples > 5
        assert alone.link.end().survivors == 0


def test_the_guard_leaves_the_processor_between_ticks_of_a_long_call(tmp_path: Path) -> None:
    """Else threads that wait for each other have one less, and take ten times as long while they are sampled."""

    def target(sock: socket.socket) -> None:
        sock.sendall(b"go")
        time.sleep(60)

    with guarded(target, tmp_path) as alone:
        alone.hear()
        alone.link.freeze()
        alone.link.resume()
        alone.link.queued()
        before = alone.link.guard_seconds
        alone.link.sample_begin()
        time.sleep(1.0)
        alone.link.sample_end()
        alone.link.queued()
        assert alone.link.guard_seconds - before < 0.7
        assert alone.link.end().survivors == 0
