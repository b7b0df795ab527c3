"""Objects as an API server shows them: with the defaults that nothing here reads and that are not stored, and
with what Go's structures write although nobody said it. Pure.

Who writes an object that was shown so has not wished for what was put in: `without_completed` takes it out
again, as far as it was not changed.

Sources: kubernetes v1.36.2, pkg/apis/core/v1/defaults.go (SetDefaults_Pod, _PodSpec, _Container, _Probe,
_Volume and its sources, _Service, _Secret), pkg/apis/core/v1/helper/qos/qos.go,
pkg/apis/networking/v1/defaults.go; kube_api/core/patching/implied_values.py.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, cast

from podyard.kube_api.core.patching.implied_values import implied
from podyard.objects import kinds
from podyard.objects.api_types import LIST, OBJECT_META, definition_of, table
from podyard.objects.documents import Document, child, fill, is_list, is_mapping, mapping, mappings
from podyard.proto import subjects
from podyard.telling.pod_conditions import NOTHING, Evidence

_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "cronjobs": ("spec", "jobTemplate", "spec", "template", "spec"),
    "daemonsets": ("spec", "template", "spec"),
    "deployments": ("spec", "template", "spec"),
    "jobs": ("spec", "template", "spec"),
    "podtemplates": ("template", "spec"),
    "replicasets": ("spec", "template", "spec"),
    "replicationcontrollers": ("spec", "template", "spec"),
    "statefulsets": ("spec", "template", "spec"),
}
"""Where the specs of pods are that these kinds are to make."""

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE: Final = 0o644
_SOURCES_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")
_QOS_RESOURCES: Final = ("cpu", "memory")


def complete(resource: str, document: Document, evidence: Evidence = NOTHING) -> None:
    """Put in what is missing, in place.

    :param resource: under which it is stored; custom kinds stay as they are
    """
    metadata = mapping(document, "metadata")
    for key in [key for key, value in metadata.items() if value in ({}, [])]:
        del metadata[key]
    if evidence.topology:
        fill(child(child(document, "metadata"), "labels"), **dict(evidence.topology))
    filler = _FILLERS.get(resource)
    if filler is not None:
        filler(document)
    if (path := _TEMPLATES.get(resource)) is not None and (spec := mapping(document, *path)):
        fill_spec(spec)
    plan = _plans().get(resource)
    if plan is not None:
        plan.fill(document)


# ---- defaults ----------------------------------------------------------------------------------------------


def fill_spec(spec: Document) -> None:
    """Defaults of the spec of a pod, and of a template."""
    fill(spec, dnsPolicy="ClusterFirst")
    if spec.get("serviceAccountName"):
        fill(spec, serviceAccount=spec["serviceAccountName"])  # its deprecated name
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for container in mappings(spec, key):
            _fill_container(container)
    for volume in mappings(spec, "volumes"):
        _fill_volume(volume)


def _fill_container(container: Document) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _is_latest(str(container.get("image", ""))) else "IfNotPresent"
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    for name in _PROBES:
        if name in container:
            _fill_probe(container[name])
    for handler in mapping(container, "lifecycle").values():
        _fill_action(handler)
    for variable in mappings(container, "env"):
        if source := mapping(variable, "valueFrom", "fieldRef"):
            fill(source, apiVersion="v1")


def _is_latest(image: str) -> bool:
    """Source: pkg/util/parsers/parsers.go, ParseImageName."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _fill_probe(probe: Document) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    _fill_action(probe)
    if "grpc" in probe:
        fill(probe["grpc"], service="")


def _fill_action(handler: Any) -> None:
    if is_mapping(handler) and (action := mapping(handler, "httpGet")):
        fill(action, path="/", scheme="HTTP")


def _fill_volume(volume: Document) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
    for source in _SOURCES_WITH_MODE:
        if is_mapping(found := volume.get(source)):
            fill(found, defaultMode=_MODE)
    if is_mapping(path := volume.get("hostPath")):
        fill(path, type="")


def _fill_pod(document: Document) -> None:
    spec, status = child(document, "spec"), child(document, "status")
    fill_spec(spec)
    fill(spec, enableServiceLinks=True)
    fill(status, qosClass=qos_class(spec))


def qos_class(spec: Document) -> str:
    """What a pod is worth when memory runs short. Source: ComputePodQOS."""
    requests: set[str] = set()
    guaranteed = True
    for container in (*mappings(spec, "containers"), *mappings(spec, "initContainers")):
        resources = mapping(container, "resources")
        wanted, limits = mapping(resources, "requests"), mapping(resources, "limits")
        for name in _QOS_RESOURCES:
            has_request, has_limit = _is_some(wanted.get(name)), _is_some(limits.get(name))
            if has_request or has_limit:
                requests.add(name)
            if not has_limit or (has_request and wanted[name] != limits[name]):
                guaranteed = False
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _is_some(amount: Any) -> bool:
    return amount is not None and str(amount).strip("0.") not in ("", "m")


def _fill_job(document: Document) -> None:
    """A Job without labels has those of its template, as it is read. Source:
    pkg/apis/batch/v1/defaults.go."""
    labels = mapping(document, "spec", "template", "metadata", "labels")
    if labels:
        fill(child(document, "metadata"), labels=dict(labels))


def _fill_service(document: Document) -> None:
    spec = child(document, "spec")
    if spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer"):
        fill(spec, internalTrafficPolicy="Cluster")
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec.get("type") == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
    if spec.get("type") != "ExternalName":
        fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        if spec.get("clusterIP"):
            fill(spec, clusterIPs=[spec["clusterIP"]])


def _fill_secret(document: Document) -> None:
    fill(document, type="Opaque")


def _fill_policy(document: Document) -> None:
    spec = child(document, "spec")
    for rule in (*mappings(spec, "ingress"), *mappings(spec, "egress")):
        for port in mappings(rule, "ports"):
            fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _fill_definition(document: Document) -> None:
    """Of a CustomResourceDefinition. Source: apiextensions-apiserver v0.36.2,
    pkg/apis/apiextensions/v1/defaults.go."""
    spec = child(document, "spec")
    names = child(spec, "names")
    kind = str(names.get("kind", ""))
    fill(names, singular=kind.lower(), listKind=f"{kind}List")
    fill(spec, conversion={"strategy": "None"})


_FILLERS: Final[Mapping[str, Callable[[Document], None]]] = {
    subjects.PODS: _fill_pod,
    "jobs": _fill_job,
    "customresourcedefinitions": _fill_definition,
    "networkpolicies": _fill_policy,
    "secrets": _fill_secret,
    "services": _fill_service,
}


# ---- zeros -------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What is put into a structure of one definition."""

    missing: tuple[tuple[str, Any], ...]
    """Fields that are always written, with their zeros; `{}` stands for a structure."""
    below: "dict[str, _Plan]"
    """Structures, and lists of structures, among the fields of which something may be missing."""

    def fill(self, document: Document) -> None:
        for name, zero in self.missing:
            if name not in document:
                document[name] = {} if zero == {} else zero
        for name, value in document.items():
            plan = self.below.get(name)
            if plan is None:
                continue
            if is_mapping(value):
                plan.fill(value)
            elif isinstance(value, list | tuple):  # what others say of an object comes in tuples
                for item in cast("list[Any]", value):
                    if is_mapping(item):
                        plan.fill(item)


@cache
def _plans() -> Mapping[str, _Plan]:
    """By resource."""
    found: dict[str, _Plan] = {}
    made: dict[str, _Plan | None] = {}
    for kind in (*kinds.KINDS, *kinds.stored()):
        definition = definition_of(kind.api_version, kind.kind)
        if definition is not None and (plan := _plan(definition, made)) is not None:
            found[kind.resource] = plan
    return found


def _plan(definition: str, made: dict[str, _Plan | None]) -> _Plan | None:
    """None: nothing is missing in it or below it. One that contains itself gets no plan of what is within."""
    if definition in made:
        return made[definition]
    made[definition] = None
    known = table().definitions[definition]
    if definition == OBJECT_META or not known.fields:
        return None
    missing = tuple((name, zero) for name, zero in implied(definition).items() if name not in _NEVER_MISSING)
    plan = _Plan(missing, {})
    for name, field in known.fields.items():
        inner = field.type.removeprefix(LIST)
        below = _plan(inner, made) if inner in table().definitions else None
        if below is not None:
            plan.below[name] = below
    made[definition] = plan if plan.missing or plan.below else None
    return made[definition]


_NEVER_MISSING: Final = frozenset(("metadata",))


# ---- back --------------------------------------------------------------------------------------------------


def without_completed(wanted: Document, shown: Document, stored: Document) -> Document:
    """What somebody wants of an object that was shown to him, without what was only put in to show it.

    :param wanted: made from `shown`; not changed
    :param shown: the object as it was shown
    :param stored: the object before it was completed
    """
    return dict(_left(wanted, shown, stored))


def _left(wanted: Document, shown: Document, stored: Document) -> Iterator[tuple[str, Any]]:
    for key, value in wanted.items():
        if key not in shown:
            yield key, value
        elif key not in stored:
            if value != shown[key]:
                yield key, value
        else:
            yield key, _value_left(value, shown[key], stored[key])


def _value_left(wanted: Any, shown: Any, stored: Any) -> Any:
    if is_mapping(wanted) and is_mapping(shown) and is_mapping(stored):
        return dict(_left(wanted, shown, stored))
    if is_list(wanted) and is_list(shown) and is_list(stored) and len(shown) == len(stored):
        names = [item.get("name") if is_mapping(item) else None for item in shown]
        return [_item_left(at, item, names, shown, stored) for at, item in enumerate(wanted)]
    return wanted


def _item_left(at: int, item: Any, names: list[Any], shown: list[Any], stored: list[Any]) -> Any:
    """An item is the one of that name; one without a name the one at its place."""
    if not is_mapping(item):
        return item
    name = item.get("name")
    place = at if name is None else next((at for at, known in enumerate(names) if known == name), len(names))
    return _value_left(item, shown[place], stored[place]) if place < len(names) else item
