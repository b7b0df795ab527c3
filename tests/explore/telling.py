"""A pytest plugin: each property test's plays and failures, as a line of JSON each, to the file descriptor
`--tell-to`."""

import os
import re
from collections.abc import Generator
from typing import Final

import msgspec
import pytest

STATISTICS: Final = "hypothesis statistics"
"""Name of the property of a report that carries a test's statistics from a worker to the process that
tells."""

_COUNTED = re.compile(r"(\d+) passing, (\d+) failing,")
_CHOICES = re.compile(r"@reproduce_failure\('[^']+', b'([^']+)'\)")


class Collected(msgspec.Struct, frozen=True, tag="collected"):
    """How many property tests the round has."""

    tests: int


class Played(msgspec.Struct, frozen=True, tag="played"):
    """A test has ended. `plays` are those that ran to their end, or to the failure."""

    test: str
    plays: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A test has failed. `choices` is empty if the failure is not that of a play."""

    test: str
    choices: str
    says: str


Told = Collected | Played | Failed


def counted(statistics: str) -> int:
    """Plays in Hypothesis' statistics of one test, of all phases."""
    return sum(int(passing) + int(failing) for passing, failing in _COUNTED.findall(statistics))


def choices_in(text: str) -> str:
    """What `reproduce_failure` takes, from a failure's report; empty if there is none."""
    found = _CHOICES.search(text)
    return found[1] if found else ""


class _Teller:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._collected = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            says = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
            self._tell(Failed(report.nodeid, choices_in(says), says))
        if report.when == "teardown":
            self._tell(Played(report.nodeid, counted(str(dict(report.user_properties).get(STATISTICS, "")))))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collect(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        del node
        self._collect(len(ids))

    def _collect(self, tests: int) -> None:
        if tests and not self._collected:
            self._collected = True
            self._tell(Collected(tests))

    def _tell(self, told: Told) -> None:
        os.write(self._descriptor, msgspec.json.encode(told) + b"\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hypothesis leaves a test's statistics at its item."""
    report = yield
    if report.when == "teardown":
        report.user_properties.append((STATISTICS, getattr(item, "hypothesis_statistics", "")))
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tell-to", type=int, metavar="DESCRIPTOR", help="of a pipe, for what becomes of property tests")


def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist tell nothing: their reports come to the one process that has the pipe."""
    descriptor = config.getoption("--tell-to")
    if descriptor is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Teller(descriptor), "teller of plays")
