"""The columns of Kubernetes' tables, by resource. Facts only; what columns mean is said nowhere here.

Source: kubernetes v1.36.2, pkg/printers/internalversion/printers.go (AddHandlers);
staging/src/k8s.io/apiserver/pkg/registry/rest/table.go for kinds that it has no columns for.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type_: str = "string"
    """string, integer, boolean, number, date."""
    format_: str = ""
    priority: int = 0
    """0: kubectl shows it; 1: with `-o wide`."""
    description: str = ""
    number: bool = False
    """Its cells are whole numbers, whatever its type says."""

    def document(self) -> dict[str, Any]:
        """As tables say it."""
        return {
            "name": self.name,
            "type": self.type_,
            "format": self.format_,
            "description": self.description,
            "priority": self.priority,
        }


_WIDE: Final = "+"
_INTEGER: Final = "#"
_BOOLEAN: Final = "?"
_NUMBER: Final = "%"
"""After a column's name: it is wide, an integer, a boolean; its cells are whole numbers, but it says
string."""

_TEMPLATE: Final = "|Containers+|Images+"
_SELECTED: Final = f"{_TEMPLATE}|Selector+"
_BINDING: Final = "Name|Role|Age|Users+|Groups+|ServiceAccounts+"

_SPELLED: Final = {
    "pods": "Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+",
    "nodes": "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+",
    "namespaces": "Name|Status|Age",
    "services": "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+",
    "endpoints": "Name|Endpoints|Age",
    "endpointslices": "Name|AddressType|Ports|Endpoints|Age",
    "deployments": f"Name|Ready|Up-to-date%|Available%|Age{_SELECTED}",
    "replicasets": f"Name|Desired#|Current#|Ready#|Age{_SELECTED}",
    "replicationcontrollers": f"Name|Desired#|Current#|Ready#|Age{_SELECTED}",
    "statefulsets": f"Name|Ready|Age{_TEMPLATE}",
    "daemonsets": f"Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age{_SELECTED}",
    "controllerrevisions": "Name|Controller|Revision%|Age",
    "jobs": f"Name|Status|Completions|Duration|Age{_SELECTED}",
    "cronjobs": f"Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age{_SELECTED}",
    "horizontalpodautoscalers": "Name|Reference|Targets|MinPods|MaxPods%|Replicas%|Age",
    "poddisruptionbudgets": "Name|Min Available|Max Unavailable|Allowed Disruptions#|Age",
    "podtemplates": "Name|Containers|Images|Pod Labels",
    "configmaps": "Name|Data%|Age",
    "secrets": "Name|Type|Data%|Age",
    "serviceaccounts": "Name|Age",
    "resourcequotas": "Name|Request|Limit|Age",
    "events": "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count%+|Name+",
    "ingresses": "Name|Class|Hosts|Address|Ports|Age",
    "ingressclasses": "Name|Controller|Parameters|Age",
    "networkpolicies": "Name|Pod-Selector|Age",
    "servicecidrs": "Name|CIDRs|Age",
    "rolebindings": _BINDING,
    "clusterrolebindings": _BINDING,
    "leases": "Name|Holder|Age",
    "priorityclasses": "Name|Value#|Global-Default?|Age|PreemptionPolicy",
    "runtimeclasses": "Name|Handler|Age",
    "persistentvolumes": (
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age"
        "|VolumeMode+"
    ),
    "persistentvolumeclaims": (
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+"
    ),
    "storageclasses": "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
    "volumeattributesclasses": "Name|DriverName|Age",
    "volumeattachments": "Name|Attacher|PV|Node|Attached?|Age",
    "csinodes": "Name|Drivers#|Age",
    "csidrivers": "Name|AttachRequired?|PodInfoOnMount?|StorageCapacity?|TokenRequests|RequiresRepublish?|Modes|Age",
    "csistoragecapacities": "Name|StorageClassName|Capacity",
    "mutatingwebhookconfigurations": "Name|Webhooks#|Age",
    "validatingwebhookconfigurations": "Name|Webhooks#|Age",
    "deviceclasses": "Name|Age",
    "resourceclaims": "Name|State|Age",
    "resourceclaimtemplates": "Name|Age",
    "resourceslices": "Name|Node|Driver|Pool|Age",
}


def _column(text: str) -> Column:
    priority = int(text.endswith(_WIDE))
    text = text.removesuffix(_WIDE)
    format_ = "name" if text in ("Name", "Attacher") else ""
    if text.endswith(_INTEGER):
        return Column(text[:-1], "integer", format_, priority, number=True)
    if text.endswith(_BOOLEAN):
        return Column(text[:-1], "boolean", format_, priority)
    if text.endswith(_NUMBER):
        return Column(text[:-1], "string", format_, priority, number=True)
    return Column(text, "string", format_, priority)


OF_RESOURCES: Final[Mapping[str, tuple[Column, ...]]] = {
    resource: tuple(map(_column, text.split("|"))) for resource, text in _SPELLED.items()
}
"""Columns of the resources whose cells are known here."""

DEFAULT: Final = (Column("Name", format_="name"), Column("Created At", "date"))
"""Of all others."""

NAME: Final = Column("Name", format_="name")
AGE: Final = Column("Age", "date")
