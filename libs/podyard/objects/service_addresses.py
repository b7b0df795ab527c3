"""Addresses and ports of services: each gets one that no other has, as the API server hands them out,
although nothing here routes to them.

Source: kubernetes v1.36.2, pkg/registry/core/service/storage/alloc.go; the ranges are those that kubeadm sets
and the default of --service-node-port-range.
"""

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Final

from podyard.objects.core import Service
from podyard.objects.documents import Document, child, mapping, mappings

_FIRST: Final = 0x0A600000
"""10.96.0.0."""
_COUNT: Final = 2**16
_RESERVED: Final = 2
"""The network, and the API server's own service."""
_NODE_PORTS: Final = range(30000, 32768)
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_NOWHERE: Final = "ExternalName"


def allocate(document: Document, others: Iterable[Service], old: Document | None = None) -> None:
    """Give a service what it does not name itself, in place. Of two that are made at the same moment by
    different writers both may get the same.

    :param document: a Service with its uid, and its address if it had one
    :param others: that there are, maybe itself among them
    :param old: its version before: its ports keep those of nodes
    """
    spec = child(document, "spec")
    type_ = spec.get("type")
    if type_ == _NOWHERE:
        return
    uid = str(document["metadata"].get("uid", ""))
    known = [other for other in others if other.metadata.uid != uid]
    if not spec.get("clusterIP"):
        taken = {other.spec.cluster_ip for other in known}
        found = _free(
            uid, range(_RESERVED, _COUNT - 1), {number for one in taken if (number := _number(one)) is not None}
        )
        if found is not None:
            spec["clusterIP"] = _address(found)
    if type_ in _WITH_NODE_PORTS and spec.get("allocateLoadBalancerNodePorts") is not False:
        before = {
            _port(port): port["nodePort"]
            for port in mappings(mapping(old or {}, "spec"), "ports")
            if "nodePort" in port
        }
        for port in mappings(spec, "ports"):
            if not port.get("nodePort") and _port(port) in before:
                port["nodePort"] = before[_port(port)]
        used = {port.node_port for other in known for port in other.spec.ports}
        used |= {port.get("nodePort") for port in mappings(spec, "ports")}
        for at, port in enumerate(mappings(spec, "ports")):
            if not port.get("nodePort") and (free := _free(f"{uid}/{at}", _NODE_PORTS, used)) is not None:
                port["nodePort"] = free
                used.add(free)


def _port(port: Document) -> tuple[Any, Any]:
    return port.get("port"), port.get("protocol", "TCP")


def _free(seed: str, among: range, taken: Collection[int | None]) -> int | None:
    """The first that is free from a place on that the seed chooses; None if none is."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % len(among)
    return next(
        (one for at in range(len(among)) if (one := among[(start + at) % len(among)]) not in taken),
        None,
    )


def _address(number: int) -> str:
    whole = _FIRST + number
    return ".".join(str(whole >> shift & 0xFF) for shift in (24, 16, 8, 0))


def _number(address: str) -> int | None:
    parts = address.split(".")
    if len(parts) != 4 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        return None
    whole = int.from_bytes(bytes(min(int(part), 255) for part in parts))
    return whole - _FIRST if 0 <= whole - _FIRST < _COUNT else None
