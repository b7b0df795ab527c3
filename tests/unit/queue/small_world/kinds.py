"""Kinds of pods, by what they want of a node and of each other."""

from typing import Any

from tests.support.objects import HOSTNAME, ZONE

TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}


def term(app: str, key: str) -> list[dict[str, Any]]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


def spec_of(kind: str, app: str, cpu: int, tolerates: bool) -> dict[str, Any]:
    """What a pod of this kind wants, for the builder of pods."""
    spec: dict[str, Any] = {"cpu": str(cpu)}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    match kind:
        case "ssd":
            spec["nodeSelector"] = {"disk": "ssd"}
        case "zone":
            spec["nodeSelector"] = {ZONE: "b"}
        case "apart":
            spec["affinity"] = {"podAntiAffinity": {required: term(app, HOSTNAME)}}
        case "together":
            spec["affinity"] = {"podAffinity": {required: term("blue", ZONE)}}
        case "spread":
            selector = {"matchLabels": {"app": app}}
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            ]
        case "gated":
            spec["schedulingGates"] = [{"name": "wait"}]
        case _:
            pass
    if tolerates:
        spec["tolerations"] = [TOLERATION]
    return spec
