"""Tables as `kubectl get` prints them: headers and rows of each kind.

Pure: callers pass the typed object, joined with what others know of it, and `now` in seconds since 1970.

Source: pkg/printers/internalversion/printers.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from podyard.objects.kinds import Kind, Object
from podyard.objects.meta import ObjectMeta
from podyard.telling import cells
from podyard.telling.cells import Cells

_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


class Columns(NamedTuple):
    """The table of one kind: headers after NAME, and those that only `-o wide` shows."""

    headers: Cells
    wide: Cells
    cells_of: Callable[[Any, float], Cells]
    """All cells of an object after its name, as of `now`."""


def headers(kind: Kind, *, wide: bool = False, namespace: bool = False) -> Cells:
    """Headers of the kind's table; `namespace` puts NAMESPACE first, as for all namespaces."""
    columns = _COLUMNS.get(kind.resource, _GENERIC)
    shown = ("NAME", *columns.headers, *(columns.wide if wide else ()))
    return ("NAMESPACE", *shown) if namespace else shown


def row(kind: Kind, item: Object, now: float, *, wide: bool = False, namespace: bool = False) -> Cells:
    """Cells of one object, as many as `headers` with the same choices. `now`: seconds since 1970, UTC."""
    columns = _COLUMNS.get(kind.resource, _GENERIC)
    found = columns.cells_of(item, now)
    shown = (_name(kind, item.metadata), *(found if wide else found[: len(columns.headers)]))
    return (item.metadata.namespace, *shown) if namespace else shown


def _name(kind: Kind, meta: ObjectMeta) -> str:
    default = kind.resource == "storageclasses" and meta.annotations.get(_DEFAULT_CLASS) == "true"
    return f"{meta.name} (default)" if default else meta.name


_TEMPLATE_HEADERS: Final = ("CONTAINERS", "IMAGES")
_ROOM_HEADERS: Final = ("CPU", "MEMORY", "PODS")
"""How full a node is, which kubectl does not say."""
_NODE_HEADERS: Final = ("INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")
_VOLUME_HEADERS: Final = (
    *("CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS"),
    *("VOLUMEATTRIBUTESCLASS", "REASON", "AGE"),
)
_CLAIM_HEADERS: Final = ("STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS", "AGE")
_REPLICAS_HEADERS: Final = ("DESIRED", "CURRENT", "READY", "AGE")
_DAEMONS_HEADERS: Final = ("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE")
_CRON_HEADERS: Final = ("SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE")
_CLASS_HEADERS: Final = ("PROVISIONER", "RECLAIMPOLICY", "VOLUMEBINDINGMODE", "ALLOWVOLUMEEXPANSION", "AGE")

_GENERIC: Final = Columns(("AGE",), (), cells.only_age)
_COLUMNS: Final[Mapping[str, Columns]] = {
    "pods": Columns(
        ("READY", "STATUS", "RESTARTS", "AGE"), ("IP", "NODE", "NOMINATED NODE", "READINESS GATES"), cells.of_pod
    ),
    "nodes": Columns(("STATUS", "ROLES", "AGE", "VERSION", *_ROOM_HEADERS), _NODE_HEADERS, cells.of_node),
    "namespaces": Columns(("STATUS", "AGE"), (), cells.of_namespace),
    "services": Columns(("TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"), ("SELECTOR",), cells.of_service),
    "deployments": Columns(
        ("READY", "UP-TO-DATE", "AVAILABLE", "AGE"), (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_deployment
    ),
    "replicasets": Columns(_REPLICAS_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_replica_set),
    "replicationcontrollers": Columns(_REPLICAS_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_controller),
    "statefulsets": Columns(("READY", "AGE"), _TEMPLATE_HEADERS, cells.of_stateful_set),
    "daemonsets": Columns(_DAEMONS_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_daemon_set),
    "controllerrevisions": Columns(("CONTROLLER", "REVISION", "AGE"), (), cells.of_revision),
    "cronjobs": Columns(_CRON_HEADERS, (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_cron_job),
    "jobs": Columns(("STATUS", "COMPLETIONS", "DURATION", "AGE"), (*_TEMPLATE_HEADERS, "SELECTOR"), cells.of_job),
    "persistentvolumeclaims": Columns(_CLAIM_HEADERS, ("VOLUMEMODE",), cells.of_claim),
    "persistentvolumes": Columns(_VOLUME_HEADERS, ("VOLUMEMODE",), cells.of_volume),
    "poddisruptionbudgets": Columns(
        ("MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "AGE"), (), cells.of_budget
    ),
    "resourcequotas": Columns(("REQUEST", "LIMIT", "AGE"), (), cells.of_quota),
    "priorityclasses": Columns(("VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY"), (), cells.of_priority_class),
    "storageclasses": Columns(_CLASS_HEADERS, (), cells.of_storage_class),
    "csinodes": Columns(("DRIVERS", "AGE"), (), cells.of_csi_node),
    "csidrivers": Columns(("ATTACHREQUIRED", "STORAGECAPACITY", "AGE"), (), cells.of_csi_driver),
    "csistoragecapacities": Columns(("STORAGECLASS", "CAPACITY", "AGE"), (), cells.of_csi_capacity),
    "volumeattachments": Columns(("ATTACHER", "PV", "NODE", "ATTACHED", "AGE"), (), cells.of_attachment),
    "resourceclaims": Columns(("STATE", "AGE"), (), cells.of_resource_claim),
    "resourceslices": Columns(("NODE", "DRIVER", "POOL", "AGE"), (), cells.of_resource_slice),
}
