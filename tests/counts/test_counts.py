"""Counts per pod and per cycle are the recorded ones: they depend on no machine and no load, so that one
message more is seen.

The run is a program of its own, since it takes time, chance and the decoders away from its process.
"""

import subprocess
import sys

import msgspec
import pytest

from tests.counts import recorded
from tests.counts.recorded import Recorded

WITHIN_S = 300
"""Some 3 s of one core."""


@pytest.fixture(scope="module")
def counts() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.counts", "--json"], capture_output=True, text=True, check=False, timeout=WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=dict[str, float])


@pytest.mark.timeout(WITHIN_S)
@pytest.mark.parametrize("name", recorded.read().counts)
def test_a_count_is_the_recorded_one(counts, name):
    fault = recorded.fault(name, counts, recorded.read())
    assert not fault, fault


def test_nothing_is_counted_that_is_not_recorded(counts):
    known = recorded.read()
    faults = [recorded.fault(name, counts, known) for name in counts if name not in known.counts]
    assert not any(faults), "\n".join(faults)


class TestFault:
    RECORDED = Recorded(python=recorded.running_python(), counts={"objects.queue": 1.0, "calls.plain": 200.0})

    def test_more_is_told_with_what_to_do(self):
        assert recorded.fault("objects.queue", {"objects.queue": 2.0}, self.RECORDED) == (
            "objects decoded per pod by the queue: 2.000, recorded 1.000 ± 0.005; "
            "if that is meant, record it in tests/counts/recorded.json: python -m tests.counts --record"
        )

    def test_fewer_are_to_be_recorded_too(self):
        text = recorded.fault("objects.queue", {"objects.queue": 0.99}, self.RECORDED)
        assert "0.990, recorded 1.000 ± 0.005; fewer than before, which is to stay so: " in text

    def test_within_the_slack_nothing_is_said(self):
        assert recorded.fault("objects.queue", {"objects.queue": 1.005}, self.RECORDED) == ""
        assert recorded.fault("calls.plain", {"calls.plain": 201.0}, self.RECORDED) == ""
        assert recorded.fault("calls.plain", {"calls.plain": 202.0}, self.RECORDED)

    def test_another_python_has_more_slack_for_calls_only(self):
        elsewhere = msgspec.structs.replace(self.RECORDED, python="3.99")
        assert recorded.fault("calls.plain", {"calls.plain": 203.5}, elsewhere) == ""
        assert recorded.fault("calls.plain", {"calls.plain": 204.5}, elsewhere)
        assert recorded.fault("objects.queue", {"objects.queue": 1.01}, elsewhere)

    def test_what_is_counted_for_the_first_time_or_no_longer_is_told(self):
        told = recorded.faults({"objects.queue": 1.0, "objects.api": 1.0}, self.RECORDED)
        assert [text.partition(";")[0] for text in told] == [
            "Python calls in a seen cycle, plain pod: 0.000, recorded 200.000 ± 1.000",
            "objects decoded per pod by the api: 1.000, recorded 0.000 ± 0.002",
        ]


def test_what_was_recorded_is_read_again_and_damage_is_told(tmp_path):
    file = tmp_path / "recorded.json"
    recorded.write({"stored": 2.04, "calls.plain": 168.0}, file)
    assert recorded.read(file) == Recorded(
        python=recorded.running_python(), counts={"calls.plain": 168.0, "stored": 2.04}
    )
    file.write_text("{")
    with pytest.raises(RuntimeError, match=r"recorded.json: .*restore it from git, or count anew"):
        recorded.read(file)
