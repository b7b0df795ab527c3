"""Services get addresses and ports that no other has."""

from typing import Any

import pytest

from podyard.objects.core import Service
from podyard.objects.decoding import convert
from podyard.objects.documents import copy
from podyard.objects.service_addresses import allocate


def service(uid: str, **spec: Any) -> dict[str, Any]:
    given = {"type": "ClusterIP", "ports": [{"port": 80}], **spec}
    return {"metadata": {"name": uid, "uid": uid}, "spec": given}


def made(count: int, **spec: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(count):
        one = service(f"u{number}", **copy(spec))
        allocate(one, [convert(Service, copy(other)) for other in found])
        found.append(one)
    return found


def test_each_gets_an_address_of_its_own():
    addresses = [one["spec"]["clusterIP"] for one in made(40)]
    assert len(set(addresses)) == 40
    assert all(address.startswith("10.96.") for address in addresses)


def test_one_that_is_taken_is_passed_over():
    (first,) = made(1)
    first["metadata"]["uid"] = "of another"
    again = service("u0")
    allocate(again, [convert(Service, copy(first))])
    assert again["spec"]["clusterIP"] != first["spec"]["clusterIP"]


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"clusterIP": "10.96.0.9"}])
def test_what_is_named_stays(spec: dict[str, Any]):
    (found,) = made(1, **spec)
    assert found["spec"]["clusterIP"] == spec["clusterIP"]


def test_a_name_elsewhere_has_no_address():
    (found,) = made(1, type="ExternalName")
    assert "clusterIP" not in found["spec"]


def test_ports_keep_those_of_nodes():
    (old,) = made(1, type="NodePort", ports=[{"port": 80, "protocol": "TCP"}])
    new = service("u0", type="NodePort", ports=[{"port": 443}, {"port": 80}])
    allocate(new, [convert(Service, copy(old))], old)
    ports = {port["port"]: port["nodePort"] for port in new["spec"]["ports"]}
    assert ports[80] == old["spec"]["ports"][0]["nodePort"] != ports[443]


def test_ports_of_nodes_are_given_once():
    found = made(3, type="NodePort", ports=[{"port": 80}, {"port": 443}])
    ports = [port["nodePort"] for one in found for port in one["spec"]["ports"]]
    assert len(set(ports)) == 6
    assert all(30000 <= port < 32768 for port in ports)
    assert "nodePort" not in made(1)[0]["spec"]["ports"][0]
