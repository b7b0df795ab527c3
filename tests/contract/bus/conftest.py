"""The suite runs on the real server and, where a test needs no server process, on the one in memory as well.

What runs on both is why the other suites may run on the one in memory.
"""

import inspect

import pytest

from tests.support.buses import KINDS, NATS

ONLY_NATS = {
    "test_settings_that_cannot_be_changed_are_a_clear_error": "a stream in memory takes any new setting",
    "test_a_client_that_was_closed_for_good_is_replaced": "there is no client of nats-py",
    "test_a_silent_read_loop_is_noticed": "there is no read loop",
    "test_a_lost_message_is_noticed_by_the_next_one": "the test loses it in nats-py; the simulation loses its own",
    "test_a_lost_message_is_noticed_by_a_heartbeat": "as above",
    "test_who_is_slow_to_read_is_soon_answered_all_the_same": "nothing is on its way but the next chunk",
    "test_a_stream_that_is_made_again_while_another_consumer_is_made_is_listed_anew": "no consumer is ever full",
}
"""Tests of what the server in memory does not model, and why."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On which servers a test runs; whatever `--bus` says."""
    own = inspect.signature(metafunc.function).parameters
    only_nats = "nats_server" in own or metafunc.function.__name__ in ONLY_NATS
    if only_nats and "bus_kind" not in metafunc.fixturenames:
        metafunc.fixturenames.append("bus_kind")
    if "bus_kind" in metafunc.fixturenames:
        metafunc.parametrize("bus_kind", (NATS,) if only_nats else KINDS)
