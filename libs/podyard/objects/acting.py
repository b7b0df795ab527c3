"""Which kinds something here acts on, and who. People are told of all others when they apply them."""

from collections.abc import Mapping
from typing import Final

from podyard.objects.kinds import Kind

ACTS_ON: Final[Mapping[str, str]] = {
    "cronjobs": "workloads",
    "customresourcedefinitions": "api",
    "csidrivers": "scheduler",
    "csinodes": "scheduler",
    "csistoragecapacities": "scheduler",
    "daemonsets": "workloads",
    "deployments": "workloads",
    "deviceclasses": "scheduler",
    "jobs": "workloads",
    "limitranges": "api",
    "namespaces": "api",
    "nodes": "scheduler",
    "persistentvolumeclaims": "binder",
    "persistentvolumes": "binder",
    "poddisruptionbudgets": "workloads",
    "pods": "scheduler",
    "priorityclasses": "api",
    "replicasets": "workloads",
    "replicationcontrollers": "workloads",
    "resourceclaims": "scheduler",
    "resourcequotas": "api",
    "resourceslices": "scheduler",
    "runtimeclasses": "api",
    "services": "scheduler",
    "statefulsets": "workloads",
    "storageclasses": "workloads",
    "volumeattachments": "scheduler",
}
"""By resource, the first service that does what the kind asks for."""


HELD: Final = frozenset(("leases",))
"""Resources that are for those alone who write them: who renews a lease needs nobody to act on it."""


def unheeded(kind: Kind) -> str:
    """What people are told who write an object of a kind that nothing here acts on; empty if something
    does."""
    if kind.resource in ACTS_ON or kind.resource in HELD:
        return ""
    unless = " unless a plugin of yours does" if kind.custom else ""
    return f"nothing here acts on {kind.kind}{unless}"
