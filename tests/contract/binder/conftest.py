"""Connections of binders that end in the middle of a request."""

from functools import partial

import pytest

from tests.support.buses import ConnectBus

DRAIN_S = 0.1
"""A term that is cancelled leaves its requests without an answer: nobody need wait for them."""


@pytest.fixture
def connect_bus(connect_bus: ConnectBus) -> ConnectBus:
    return partial(connect_bus, drain_timeout_s=DRAIN_S)


@pytest.fixture
def connect_nats(connect_nats: ConnectBus) -> ConnectBus:
    return partial(connect_nats, drain_timeout_s=DRAIN_S)
