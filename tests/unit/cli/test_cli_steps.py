"""What eval.py says of what it is doing."""

from __future__ import annotations

import io

from hkbench.cli.steps import Steps
from hkbench.records import Stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def played(stream: io.StringIO) -> str:
    with Steps(stream) as steps:
        steps.say("start the device")
        steps.on_stage(Stage.BUILD, None)
        steps.on_stage(Stage.RUN, 0)
        steps.on_step("trial 2 of 5")
    return stream.getvalue()


def test_a_line_for_each_step() -> None:
    lines = [line.split(" s  ") for line in played(io.StringIO()).splitlines()]
    assert [what for _, what in lines] == ["start the device", "build", "compare", "compare: trial 2 of 5"]
    assert all(float(seconds) >= 0.0 for seconds, _ in lines)


def test_a_bar_on_a_terminal_that_is_gone_at_the_end() -> None:
    text = played(Terminal())
    assert "compare: trial 2 of 5" in text
    assert not text.splitlines()[-1].strip("\x1b[]0123456789;KAlhm?\r ")
