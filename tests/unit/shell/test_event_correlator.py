"""Which events are worth a message: the rules of Kubernetes' recorder, and an oracle that reads them
plainly."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.proto.message import ObjectRef
from podyard.proto.operations import COMBINED, LONGEST_NOTE, K8sEvent, Reason
from podyard.shell import event_correlator
from podyard.shell.event_correlator import BURST, REMEMBERED, Correlator, Event
from tests.unit.shell.recorder_oracle import Observed, Oracle

KILLED = Reason("Killed")
BACK_OFF = Reason("BackOff")
START = 1_800_000_000.0


def event(message: str = "m", at: float = 1000.0, *, name: str = "web", reason: Reason = KILLED, **more: Any) -> Event:
    return Event(
        ObjectRef(resource="pods", namespace="default", name=name, uid=f"uid-{name}"), reason, message, at, **more
    )


def correlator() -> Correlator:
    return Correlator("node_agent", "agent-1")


def told(found: K8sEvent | None) -> K8sEvent:
    assert found is not None
    return found


def test_an_event_says_who_reports_what_of_whom_and_when() -> None:
    given_event = event(
        "Stopping container app",
        warning=True,
        action="Killing",
        controller="kubelet",
        host="n1",
        field_path="spec.containers{app}",
        annotations={"starved_resource": "memory"},
        trace="00-aa-bb-01",
    )
    found = told(correlator().correlate(given_event))
    assert (found.type, found.reason, found.message) == ("Warning", "Killed", "Stopping container app")
    assert (found.reporter, found.controller, found.instance) == ("node_agent", "kubelet", "n1")
    assert (found.action, found.field_path, found.trace) == ("Killing", "spec.containers{app}", "00-aa-bb-01")
    assert (found.at, found.first_at, found.count) == (1000.0, 1000.0, 1)
    assert found.annotations == {"starved_resource": "memory"}
    assert told(correlator().correlate(event())).instance == "agent-1", "without a host it is the process"


def test_the_same_event_again_is_one_with_a_count_and_both_times() -> None:
    core = correlator()
    first = told(core.correlate(event(at=1000.0)))
    again = told(core.correlate(event(at=1300.5)))
    assert (again.id, again.count, again.first_at, again.at) == (first.id, 2, 1000.0, 1300.5)


def test_ten_messages_of_one_kind_become_one_event_that_the_next_ones_replace() -> None:
    core = correlator()
    found = [told(core.correlate(event(f"m{number}", 1000.0 + number))) for number in range(12)]
    assert [one.message for one in found[:9]] == [f"m{number}" for number in range(9)]
    assert [one.message for one in found[9:]] == [
        f"(combined from similar events): m{number}" for number in (9, 10, 11)
    ]
    assert [one.count for one in found[9:]] == [1, 2, 3]
    assert len({one.id for one in found}) == 10
    assert found[11].first_at == 1009.0


def test_the_nine_before_them_stay_events_of_their_own() -> None:
    core = correlator()
    found = [told(core.correlate(event(f"m{number}", 1000.0))) for number in range(10)]
    again = told(core.correlate(event("m0", 1001.0)))
    assert (again.message, again.id, again.count) == ("m0", found[0].id, 2)


def test_ten_minutes_of_silence_begin_a_group_anew() -> None:
    core = correlator()
    for number in range(9):
        core.correlate(event(f"m{number}", 1000.0))
    assert told(core.correlate(event("m9", 1600.1))).message == "m9"


def test_one_reporter_may_tell_of_an_object_25_times_and_then_every_five_minutes() -> None:
    core = correlator()
    sent = [core.correlate(event("m", 1000.0)) for _ in range(BURST + 1)]
    assert [one is not None for one in sent] == [True] * BURST + [False]
    assert core.correlate(event("m", 1299.0)) is None
    counted = told(core.correlate(event("m", 1300.0)))
    assert counted.count == BURST + 3, "those that were not sent are counted"
    assert core.correlate(event("m", 1301.0)) is None
    assert core.correlate(event("m", 1000.0, name="other")) is not None
    assert core.correlate(event("m", 1000.0, host="n2")) is not None
    assert core.correlate(event("m", 1000.0, warning=True)) is not None


def test_two_events_at_the_same_moment_have_ids_of_their_own() -> None:
    core, other = correlator(), Correlator("node_agent", "agent-2")
    assert len({told(one.correlate(event(text))).id for one in (core, other) for text in ("a", "b")}) == 4


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_a_long_message_is_cut_to_what_kubernetes_keeps(letter: str) -> None:
    message = told(correlator().correlate(event(letter * 2000))).message
    assert LONGEST_NOTE - 4 < len(message.encode()) <= LONGEST_NOTE
    assert message.endswith(f"{letter} ...")


def test_what_no_text_may_hold_is_told_all_the_same() -> None:
    assert told(correlator().correlate(event("a\udc80b"))).message == "a?b"


def test_what_is_remembered_is_bounded() -> None:
    core = correlator()
    for number in range(3 * REMEMBERED):
        core.correlate(event("m" * 1000, name=f"pod-{number}"))
    assert len(core) == 3 * REMEMBERED


RECORDED = msgspec.json.decode((Path(__file__).parent / "recorded_events.json").read_bytes())
"""What client-go v0.36.2 made of scripts of events (`record.NewEventCorrelator` on a clock that stands,
`UpdateState` after each): at, pod, host, type, reason, message; what it told, the count (0: nothing was
told), when the first was, and which event it is. Of combined events only new messages come: which of ten the
reference forgets is chance."""


@pytest.mark.parametrize("script", RECORDED, ids=lambda script: f"{len(script)} events")
def test_it_does_what_the_reference_did(script: list[list[Any]]) -> None:
    core, names = correlator(), dict[str, str]()
    for at, name, host, type_, reason, message, *expected in script:
        one = event(message, START + at, name=name, host=host, reason=Reason(reason), warning=type_ == "Warning")
        found = core.correlate(one._replace(controller="kubelet"))
        answer = ["", 0, 0, ""]
        if found is not None:
            known = names.setdefault(found.id, f"{len(names)}")
            answer = [found.message, found.count, found.first_at - START, known]
        assert answer == expected


def test_the_scripts_have_all_that_may_happen() -> None:
    steps = [step for script in RECORDED for step in script]
    assert len(steps) > 2000
    assert sum(1 for step in steps if not step[7]) > 100, "spared"
    assert sum(1 for step in steps if step[6].startswith(COMBINED)) > 50
    assert sum(1 for step in steps if step[7] > 1) > 300, "counted"


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([KILLED, BACK_OFF]),
        st.integers(0, 11),
        st.sampled_from([0.0, 0.25, 30.0, 300.0, 601.0]),
        st.booleans(),
    ),
    max_size=120,
)


@given(EVENTS)
def test_it_does_what_the_reference_does(steps: list[tuple[str, Reason, int, float, bool]]) -> None:
    core, oracle, names, at = correlator(), Oracle(), dict[str, int](), 1000.0
    for name, reason, text, pause_s, warning in steps:
        at += pause_s
        one = event(f"message {text}", at, name=name, reason=reason, warning=warning)
        expected, found = oracle.correlate(one), core.correlate(one)
        compared = None
        if found is not None and expected is not None:
            number = names.setdefault(found.id, expected.name)
            compared = Observed(found.message, found.count, found.first_at, found.at, number)
        assert (found is None, compared) == (expected is None, expected)


@given(st.lists(st.integers(0, 9), max_size=60))
def test_what_was_not_told_of_for_the_longest_time_is_forgotten_as_by_the_reference(names: list[int]) -> None:
    size, before = 4, event_correlator.REMEMBERED
    event_correlator.REMEMBERED = size  # type: ignore[misc]
    try:
        core = correlator()
    finally:
        event_correlator.REMEMBERED = before  # type: ignore[misc]
    oracle = Oracle(size)
    for number, name in enumerate(names):
        one = event("m", 1000.0 + number, name=f"pod-{name}")
        expected, found = oracle.correlate(one), core.correlate(one)
        assert (None if found is None else found.count) == (None if expected is None else expected.count)
