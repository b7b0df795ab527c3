"""Objects for tests of hints."""

from typing import Any

import msgspec

from podyard.objects.core import Node, Pod


def pod(
    name: str = "p", *, node: str = "", nominated: str = "", requests: dict[str, str] | None = None, **spec: Any
) -> Pod:
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"containers": [container], "nodeName": node, **spec},
            "status": {"nominatedNodeName": nominated},
        },
        Pod,
    )


def node(
    name: str = "n1", *, labels: dict[str, str] | None = None, allocatable: dict[str, str] | None = None, **spec: Any
) -> Node:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"} if allocatable is None else allocatable
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"allocatable": amounts}}, Node
    )


def taint(key: str, effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "effect": effect}


def tolerates(key: str) -> dict[str, str]:
    return {"key": key, "operator": "Exists"}
