"""Sessions are named after their instance."""

import pytest

from podyard.runtime import sessions


def test_each_start_has_a_name_of_its_own() -> None:
    assert sessions.begin("scheduler-a") != sessions.begin("scheduler-a")


@pytest.mark.parametrize("instance", ["s", "scheduler-a", "scheduler-host-1234abcd"])
def test_a_session_tells_its_instance(instance: str) -> None:
    session = sessions.begin(instance)
    assert sessions.instance_of(session) == instance
    assert sessions.instance_of(f"{session}-2") == instance


def test_a_name_made_elsewhere_stands_for_itself() -> None:
    assert sessions.instance_of("mine") == "mine"
