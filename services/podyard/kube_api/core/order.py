"""In which order groups and versions of the API stand: the first version is the preferred one.

Source: kubernetes v1.36.2, cmd/kube-apiserver/app/aggregator.go and
pkg/controlplane/apiserver/aggregator.go (priorities of groups),
apiserver/pkg/endpoints/discovery/aggregated/handler.go (ties go by name),
apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings. In each built-in group the order of
versions by their priorities is that of their names.
"""

import re
from collections.abc import Mapping
from typing import Final

METRICS: Final = "metrics.k8s.io"

_PRIORITIES: Final[Mapping[str, int]] = {
    "": 100_000,
    "apiregistration.k8s.io": 20_001,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "admissionregistration.k8s.io": 16_700,
    "apiextensions.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
    "resource.k8s.io": 16_200,
    "flowcontrol.apiserver.k8s.io": 16_100,
    "internal.apiserver.k8s.io": 16_000,
    "storagemigration.k8s.io": 15_800,
    METRICS: 100,
}
"""The core group, which has a list of its own, and the aggregator's group before all others. That of
metrics.k8s.io is as metrics-server v0.7 declares it."""

_OF_DEFINITIONS: Final = 1000
"""Groups of CustomResourceDefinitions. Source: apiextensions-apiserver v0.36.2,
pkg/apiserver/customresource_discovery_controller.go."""

_VERSION: Final = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")
_STAGES: Final = ("", "beta", "alpha")


def group_place(group: str) -> tuple[int, str]:
    """Sorts groups: the first stands first."""
    return -_PRIORITIES.get(group, _OF_DEFINITIONS), group


def version_place(version: str) -> tuple[int, int, int, int, str]:
    """Sorts the versions of a group: v2, v1, v1beta2, v1beta1, v1alpha1, then names of another form."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return 1, 0, 0, 0, version
    return 0, _STAGES.index(parts[2] or ""), -int(parts[1]), -int(parts[3] or 0), version
