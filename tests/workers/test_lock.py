"""Tests of the port that a supervisor keeps while its web process starts and restarts."""

import socket

import pytest

from workers import doctor
from workers.local.errors import StartError
from workers.local.lock import take_port


def test_a_taken_port_is_closed_to_others_and_a_server_may_listen_on_it_again():
    with take_port(0) as taken:
        address = taken.getsockname()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        with socket.socket() as visitor, pytest.raises(ConnectionRefusedError):
            visitor.connect(address)
        for _ in range(2):
            with socket.create_server(address), pytest.raises(StartError) as busy:
                take_port(address[1])
            assert f"Port {address[1]} is in use" in str(busy.value)


def test_the_doctor_finds_any_port_free(settings):
    settings.GROVE_PORT = 0
    check = doctor._port()
    assert (check.status, check.text) == (doctor.OK, "any that is free")
