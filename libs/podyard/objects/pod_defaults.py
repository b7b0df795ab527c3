"""What the API server fills in where a pod, or a pod template, says nothing. In place; what is set is never
changed.

Sources: pkg/apis/core/v1/defaults.go, pkg/registry/core/pod/strategy.go,
plugin/pkg/admission/defaulttolerationseconds. Of the defaults of containers only those that some part of
Podyard reads are filled in. Documents have the right types here.
"""

from typing import Any, Final

import msgspec

from podyard.objects.documents import Document, child, content, fill, is_mapping, mapping, mappings
from podyard.objects.pod import Pod, PodSpec
from podyard.objects.pod_requests import HUGEPAGES_PREFIX, exact_requests, is_pod_level, spelled
from podyard.objects.taints import NO_EXECUTE, NOT_READY, UNREACHABLE
from podyard.proto.message import DEFAULT_SCHEDULER

TERMINATION_GRACE_PERIOD_S: Final = 30
"""Source: v1.DefaultTerminationGracePeriodSeconds."""
TOLERATION_S: Final = 300
"""How long a pod stays on a node that is not ready or unreachable, in seconds."""


def fill_pod(document: Document) -> None:
    """Defaults of a pod: its spec, the merged label keys, the two tolerations, the phase."""
    spec = child(document, "spec")
    fill_pod_spec(spec)
    labels = mapping(document, "metadata", "labels")
    for constraint in mappings(spec, "topologySpreadConstraints"):
        _merge_label_keys(constraint, "matchLabelKeys", "In", labels)
    if "affinity" in spec:
        _merge_affinity_keys(spec, labels)
    _add_tolerations(spec)
    fill(child(document, "status"), phase="Pending")


def fill_pod_spec(spec: Document) -> None:
    """Defaults of a pod's spec, also of a template's. Source: SetDefaults_PodSpec, SetDefaults_Pod."""
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=TERMINATION_GRACE_PERIOD_S,
        schedulerName=DEFAULT_SCHEDULER,
    )
    host_network = spec.get("hostNetwork") is True
    for container in (*mappings(spec, "containers"), *mappings(spec, "initContainers")):
        _fill_container(container, host_network)
    if "resources" in spec:
        _fill_whole_pod_requests(spec)
    for constraint in mappings(spec, "topologySpreadConstraints"):
        fill(constraint, nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore")
    for volume in mappings(spec, "volumes"):
        if claim := mapping(volume, "ephemeral", "volumeClaimTemplate", "spec"):
            fill(claim, volumeMode="Filesystem")


def _fill_container(container: Document, host_network: bool) -> None:
    """A limit without a request is a request too; with hostNetwork each port is taken on the node."""
    resources = container.get("resources")
    if is_mapping(resources) and resources.get("limits"):
        fill(child(resources, "requests"), **mapping(resources, "limits"))
    for port in mappings(container, "ports"):
        fill(port, protocol="TCP")
        if host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _fill_whole_pod_requests(spec: Document) -> None:
    """Where the pod as a whole has limits: missing requests are what its containers request, else the limit.

    Source: defaultPodRequests.
    """
    resources = mapping(spec, "resources")
    limits = mapping(resources, "limits")
    if not limits:
        return
    requests = child(resources, "requests")
    parts = {key: spec[key] for key in ("containers", "initContainers") if key in spec}
    for name, nano in exact_requests(Pod(spec=msgspec.convert(parts, PodSpec))).items():
        if is_pod_level(name) and not name.startswith(HUGEPAGES_PREFIX):
            fill(requests, **{name: spelled(name, nano)})
    fill(requests, **{name: limit for name, limit in limits.items() if is_pod_level(name)})


def _merge_affinity_keys(spec: Document, labels: Document) -> None:
    """Source: pkg/registry/core/pod/strategy.go, mutatePodAffinity."""
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(spec, "affinity", name)
        terms = mappings(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = mappings(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*terms, *(mapping(item, "podAffinityTerm") for item in preferred)):
            _merge_label_keys(term, "matchLabelKeys", "In", labels)
            _merge_label_keys(term, "mismatchLabelKeys", "NotIn", labels)


def _merge_label_keys(term: Document, field: str, operator: str, labels: Document) -> None:
    """The pod's own values of the named labels become part of the selector, once. An absent selector stays
    absent."""
    selector = term.get("labelSelector")
    if not is_mapping(selector):
        return
    known = set(map(content, mappings(selector, "matchExpressions")))
    for key in term.get(field, ()):
        merged = {"key": key, "operator": operator, "values": [labels[key]]} if key in labels else None
        if merged is not None and content(merged) not in known:
            known.add(content(merged))
            selector.setdefault("matchExpressions", []).append(merged)


def _add_tolerations(spec: Document) -> None:
    """Tolerate a node that is not ready or unreachable for 5 minutes. Source: admission plugin
    DefaultTolerationSeconds."""
    tolerations: list[Any] = spec.get("tolerations") or []
    for key in (NOT_READY, UNREACHABLE):
        if not any(_covers(item, key) for item in tolerations):
            added = {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": TOLERATION_S}
            tolerations.append(added)
    spec["tolerations"] = tolerations


def _covers(toleration: Document, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in (NO_EXECUTE, "")
