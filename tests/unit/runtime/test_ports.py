"""Ports for processes that are about to start."""

import socket

import pytest

from podyard.runtime import ports


def test_they_differ_from_each_other_and_from_those_of_the_last_call():
    first, second = ports.free_ports(50), ports.free_ports(50)
    assert len({*first, *second}) == 100


def test_no_outgoing_connection_is_given_one():
    assert all(1024 <= port < 32_768 for port in ports.free_ports(100))


def test_one_that_is_listened_on_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    taken, free = ports.free_ports(2)
    with socket.socket() as listening:
        listening.bind((ports.LOOPBACK, taken))
        monkeypatch.setattr(ports, "_next", iter((taken, free)))
        assert ports.free_port() == free


def test_if_there_are_too_few_it_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "_next", iter(ports.free_ports(1)))
    with pytest.raises(OSError, match="no 2 free ports from 10000 to 32767"):
        ports.free_ports(2)
