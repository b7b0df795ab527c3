"""How large a part of an object may be at most: what the API server, etcd or a reader of Podyard takes.

Types and ranges of fields are those of `api_types`; here is what its document does not say.
"""

from collections.abc import Mapping
from typing import Final

INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)
"""Least and greatest number of a field of that type."""

OBJECT_BYTES: Final = 1536 * 1024
"""An object as JSON. Source: etcd v3.6, embed.DefaultMaxRequestBytes (1.5 MiB)."""

NESTING: Final = 100
"""Mappings and lists within each other, the object itself included. No kind of Kubernetes has more than 30 (a
pod's template in a workload with its affinity); a CustomResourceDefinition with a schema of 30 levels has
90."""

NAME_BYTES: Final = 253
"""A name, or a reference by name. Source: apimachinery v0.36, validation.DNS1123SubdomainMaxLength."""

LABEL_BYTES: Final = 63
"""A namespace, a version, a kind, the value of a label. Source: apimachinery v0.36,
validation.DNS1123LabelMaxLength."""

RESOURCES: Final = 60
"""Names of resources that one pod requests, or one node has. Each is a column of the table of nodes; public
nodes have at most 30."""

NAMES: Final = frozenset(("name", "namespace", "uid"))
"""Fields that hold a name, besides those that end in `Name`."""

LONGER_NAMES: Final = frozenset(
    (
        ("api.core.v1.EnvVar", "name"),
        ("api.core.v1.HTTPHeader", "name"),
        ("api.core.v1.WindowsSecurityContextOptions", "runAsUserName"),
        ("api.core.v1.VsphereVirtualDiskVolumeSource", "storagePolicyName"),
        ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "generateName"),
        ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "name"),
        ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "namespace"),
    )
)
"""Names that the API allows to be longer, and those that metadata has sentences of its own for
(`kind_validation`)."""

ITEMS: Final[Mapping[tuple[str, str], int]] = {
    ("api.batch.v1.PodFailurePolicy", "rules"): 20,
    ("api.batch.v1.PodFailurePolicyOnExitCodesRequirement", "values"): 255,
    ("api.batch.v1.PodFailurePolicyRule", "onPodConditions"): 20,
    ("api.batch.v1.SuccessPolicy", "rules"): 20,
    ("api.core.v1.Container", "restartPolicyRules"): 20,
    ("api.core.v1.ContainerRestartRuleOnExitCodes", "values"): 255,
    ("api.resource.v1.AllocatedDeviceStatus", "conditions"): 8,
    ("api.resource.v1.Device", "bindingConditions"): 4,
    ("api.resource.v1.Device", "bindingFailureConditions"): 4,
    ("api.resource.v1.Device", "consumesCounters"): 2,
    ("api.resource.v1.Device", "taints"): 16,
    ("api.resource.v1.DeviceAllocationResult", "results"): 32,
    ("api.resource.v1.DeviceClaim", "config"): 32,
    ("api.resource.v1.DeviceClaim", "constraints"): 32,
    ("api.resource.v1.DeviceClaim", "requests"): 32,
    ("api.resource.v1.DeviceClassSpec", "config"): 32,
    ("api.resource.v1.DeviceClassSpec", "selectors"): 32,
    ("api.resource.v1.DeviceConstraint", "requests"): 32,
    ("api.resource.v1.DeviceRequest", "firstAvailable"): 8,
    ("api.resource.v1.DeviceSubRequest", "selectors"): 32,
    ("api.resource.v1.DeviceSubRequest", "tolerations"): 16,
    ("api.resource.v1.ExactDeviceRequest", "selectors"): 32,
    ("api.resource.v1.ExactDeviceRequest", "tolerations"): 16,
    ("api.resource.v1.ResourceClaimStatus", "reservedFor"): 256,
    ("api.resource.v1.ResourceSliceSpec", "devices"): 128,
    ("api.resource.v1.ResourceSliceSpec", "sharedCounters"): 8,
}
"""Items of a list, by definition and field. Lists that are not here may be as long as the object's size
allows, as in Kubernetes. Source: Kubernetes v1.36.2, pkg/apis/resource/types.go; pkg/apis/core, batch:
validation/validation.go."""
