"""What Go's structures hold and write although nobody said it: structures that are no pointers are there,
empty, and so are required fields. Who creates a Deployment therefore owns `f:strategy` of it, and nobody
`f:spec` itself.

Source: kubernetes v1.36.2, api/openapi-spec/v3 (the fields whose default is `{}`); apimachinery v0.36.2,
pkg/runtime/converter.go.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from podyard.objects.api_types import LIST, MAP, Field, table

_ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "byte": None,
    "boolean": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
    "int-or-string": 0,
    "date-time": None,
    "apimachinery.pkg.api.resource.Quantity": "0",
}

_TIMES: Final = ("date-time", "apimachinery.pkg.apis.meta.v1.Time", "apimachinery.pkg.apis.meta.v1.MicroTime")
_HAVE_TIMES: Final = (
    "Condition",
    ".ContainerStateRunning",
    ".ContainerStateTerminated",
    ".Event",
    ".EventSeries",
    ".VolumeError",
)
"""How the names of structures end whose times are no pointers: null is written. Source: k8s.io/api
v0.36.2."""

_PARTS: Final = frozenset(("metadata", "spec", "status"))
"""Structures of all kinds, and of templates, that are no pointers."""

_POINTERS: Final = frozenset(
    (
        ("api.apps.v1.DaemonSetSpec", "selector"),
        ("api.apps.v1.DeploymentSpec", "selector"),
        ("api.apps.v1.ReplicaSetSpec", "selector"),
        ("api.apps.v1.StatefulSetSpec", "selector"),
        ("api.core.v1.ScaleIOPersistentVolumeSource", "secretRef"),
        ("api.core.v1.ScaleIOVolumeSource", "secretRef"),
        ("api.networking.v1.IPAddressSpec", "parentRef"),
        ("api.networking.v1beta1.IPAddressSpec", "parentRef"),
        ("api.resource.v1alpha3.ResourcePoolStatusRequest", "status"),
    )
)
"""Structures that are pointers although they are required, or parts of an object."""

_STRUCTURES: Final = frozenset(
    (
        ("api.apps.v1.DaemonSetSpec", "updateStrategy"),
        ("api.apps.v1.DeploymentSpec", "strategy"),
        ("api.apps.v1.ReplicaSetSpec", "template"),
        ("api.apps.v1.StatefulSetSpec", "updateStrategy"),
        ("api.core.v1.Container", "resources"),
        ("api.core.v1.ContainerStatus", "lastState"),
        ("api.core.v1.ContainerStatus", "state"),
        ("api.core.v1.EphemeralContainer", "resources"),
        ("api.core.v1.Event", "source"),
        ("api.core.v1.NodeDaemonEndpoints", "kubeletEndpoint"),
        ("api.core.v1.NodeStatus", "daemonEndpoints"),
        ("api.core.v1.NodeStatus", "nodeInfo"),
        ("api.core.v1.PersistentVolumeClaimSpec", "resources"),
        ("api.core.v1.PodTemplate", "template"),
        ("api.core.v1.ServiceStatus", "loadBalancer"),
        ("api.discovery.v1.Endpoint", "conditions"),
        ("api.events.v1.Event", "deprecatedSource"),
        ("api.events.v1.Event", "regarding"),
        ("api.flowcontrol.v1.LimitedPriorityLevelConfiguration", "limitResponse"),
        ("api.networking.v1.IngressServiceBackend", "port"),
        ("api.networking.v1.IngressStatus", "loadBalancer"),
        ("api.networking.v1.NetworkPolicySpec", "podSelector"),
        ("api.resource.v1.AllocationResult", "devices"),
        ("api.resource.v1.ResourceClaimSpec", "devices"),
        ("api.resource.v1beta1.AllocationResult", "devices"),
        ("api.resource.v1beta1.ResourceClaimSpec", "devices"),
        ("api.resource.v1beta2.AllocationResult", "devices"),
        ("api.resource.v1beta2.ResourceClaimSpec", "devices"),
        ("apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus", "acceptedNames"),
    )
)
"""Structures that are no pointers although they are optional."""


@cache
def implied(definition: str) -> Mapping[str, Any]:
    """What the fields of a structure hold that are written although nothing was said of them."""
    found: dict[str, Any] = {}
    for name, field in table().definitions[definition].fields.items():
        if _is_structure(field) and (definition, name) not in _POINTERS:
            if field.required or name in _PARTS or (definition, name) in _STRUCTURES:
                found[name] = {}
        elif field.required or (field.type in _TIMES and definition.endswith(_HAVE_TIMES)):
            found[name] = _ZEROS.get(field.type)
    return found


def _is_structure(field: Field) -> bool:
    if field.type.startswith((LIST, MAP)):
        return False
    definition = table().definitions.get(field.type)
    return definition is not None and bool(definition.fields)
