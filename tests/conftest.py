"""What holds for every test: processes end with the tests that began them, and no test takes more than its time."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from support import in_process
from support.processes import left_behind

BUDGET = 20.0  #: seconds of a test that is not marked as slow
_EXEMPT = ("slow", "corpus", "hipcc", "triton", "browser", "gpu")
_SLOW: list[str] = []


@pytest.fixture(scope="session", autouse=True)
def _end_servers() -> Iterator[None]:
    yield
    in_process.end()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail the module that leaves a process behind, not a later one that counts processes."""
    yield
    assert left_behind() == {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", action="store_true", help=f"tests over {BUDGET:g} s that are not marked slow fail")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    over = report.duration > BUDGET and not any(item.get_closest_marker(name) for name in _EXEMPT)
    if over and report.passed:
        report.user_properties.append(("over budget", report.duration))
        if item.config.getoption("--budget"):
            report.outcome = "failed"
            report.longrepr = f"took {report.duration:.0f} s of {BUDGET:g} s: make it quicker, or mark it slow"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, seconds in report.user_properties:
        if name == "over budget":
            _SLOW.append(f"{seconds:6.1f} s {report.nodeid}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _SLOW:
        terminalreporter.section(f"over {BUDGET:g} s, and not marked slow")
        for line in sorted(set(_SLOW), reverse=True):
            terminalreporter.line(line)
