import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hkbench.sandbox import linux
from hkbench.sandbox.proc import ListedChildren, ScannedChildren
from hkbench.sandbox.tree import Tree

#: Starts threads, one of which has a child, and changes them all whenever it is told to.
PROGRAM = textwrap.dedent(
    """
    import subprocess, sys, threading

    def live(ends, parent):
        child = subprocess.Popen(["sleep", "1000"]) if parent else None
        ready.release()
        ends.wait()
        if child:
            child.kill()
            child.wait()

    while True:
        ready, ends = threading.Semaphore(0), threading.Event()
        made = [threading.Thread(target=live, args=(ends, not number)) for number in range(20)]
        for thread in made:
            thread.start()
        for _ in made:
            ready.acquire()
        print(flush=True)
        sys.stdin.readline()
        ends.set()
        for thread in made:
            thread.join()
    """
)


@contextmanager
def started() -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    program.stdout.readline()
    try:
        yield program
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def renew(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    program.stdout.readline()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kept", [0, 5, 1000])
@pytest.mark.parametrize("children", [ListedChildren, ScannedChildren])
def test_threads_and_their_children_are_found_when_others_have_taken_their_place(
    children: type[ListedChildren | ScannedChildren], kept: int
) -> None:
    with started() as program:
        tree, before = Tree(os.getpid()), open_files()
        tree._children = children(kept)
        for _ in range(4):
            frozen = tree.freeze()
            assert (frozen.processes, frozen.threads, frozen.running, frozen.alone) == (2, 22, 0, False)
            if children is ListedChildren:
                assert open_files() - before == 2 * min(kept, 22)
            everybody = tree.walk()
            assert {process.name for process in everybody.values()} == {Path(sys.executable).name[:15], "sleep"}
            assert set("".join(process.states for process in everybody.values())) == {"T"}
            tree.resume()
            renew(program)
    assert tree.walk() == {}
    assert open_files() <= before or children is ScannedChildren


def test_children_of_a_process_that_has_ended_since_the_last_look_are_found() -> None:
    pid = os.fork()
    if pid == 0:  # adopts orphans, as a guard does
        linux.adopt_orphans()
        os._exit(0 if found_behind_a_parent_that_ended() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def found_behind_a_parent_that_ended() -> bool:
    parent = [sys.executable, "-c", "import subprocess, sys; subprocess.Popen(['sleep', '1000']); sys.stdin.readline()"]
    tree = Tree(os.getpid())
    tree._children = ScannedChildren(100)
    with subprocess.Popen(parent, stdin=subprocess.PIPE, text=True) as program:
        while len(tree.living()) < 2:
            time.sleep(0.01)
        (orphan,) = tree.living().keys() - {program.pid}
        program.communicate("\n")
    found = tree.walk(anew=False)
    os.kill(orphan, signal.SIGKILL)
    return found.keys() == {orphan}


def test_a_process_that_has_ended_is_told_from_one_that_lives() -> None:
    with subprocess.Popen(["true"], stdout=subprocess.PIPE) as ended:
        assert ended.stdout is not None
        ended.stdout.read()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        tree = Tree(os.getpid(), kept_threads=10)
        assert not tree.walk()[ended.pid].alive and ended.pid not in tree.living()
    assert ended.pid not in tree.walk()


def test_a_number_that_another_process_has_now_is_left_alone() -> None:
    tree, visited = Tree(os.getpid()), list[int]()
    tree._children = children = ScannedChildren(100)
    with subprocess.Popen(["sleep", "1000"]) as child:
        children.look()
        children._children[os.getpid()].append(os.getppid())  # as if it had been a child's that has ended
        assert tree.walk(visited.append, anew=False).keys() == {child.pid}
        assert visited == [child.pid]
        child.kill()
