"""What is beyond the bounds is refused with the field and the bound, and never by an exception."""

from typing import Any

import msgspec
import pytest

from podyard.objects import admission, bounds, decoding
from podyard.objects.errors import ObjectError, UnknownKindError
from tests.faults.good_objects import everything
from tests.faults.poisons import spoilt
from tests.support.objects import written

INT32 = "must be between -2147483648 and 2147483647, inclusive"
INT64 = "must be between -9223372036854775808 and 9223372036854775807, inclusive"
TIME = 'must be a time as "2006-01-02T15:04:05Z" (RFC 3339)'
LONG_NAME = "Too long: may not be more than 253 bytes"
TOO_DEEP = "Invalid value: mappings and lists are nested deeper than 100 levels"


def nested(levels: int) -> Any:
    found: Any = "x"
    for _ in range(levels):
        found = {"a": found}
    return found


def spread(skew: Any) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def node(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **more}


def custom(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Report", "metadata": {"name": "r"}, **more}


def replica_set(spec: dict[str, Any]) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"priority": 10**30}, f"spec.priority: Invalid value: {10**30}: {INT32}"),
        ({"priority": -(2**31) - 1}, f"spec.priority: Invalid value: -2147483649: {INT32}"),
        (
            {"terminationGracePeriodSeconds": 2**63},
            f"spec.terminationGracePeriodSeconds: Invalid value: 9223372036854775808: {INT64}",
        ),
        (
            {"topologySpreadConstraints": [spread(2**31)]},
            f"spec.topologySpreadConstraints[0].maxSkew: Invalid value: 2147483648: {INT32}",
        ),
        ({"priority": 10**4000}, f"spec.priority: Invalid value: a number of 13288 bits: {INT32}"),
        ({"priority": "high"}, "spec.priority: must be a whole number, is text"),
        ({"priority": 1.5}, "spec.priority: must be a whole number, is a number"),
        ({"hostname": 5}, "spec.hostname: must be text, is a whole number: put it in quotes"),
        ({"hostAliases": {"a": "b"}}, "spec.hostAliases: must be a list, is a mapping"),
        ({"hostAliases": [None]}, "spec.hostAliases[0]: must be a mapping, is null"),
        ({"nodeSelector": {"disk": 1}}, "spec.nodeSelector[disk]: must be text, is a whole number: put it in quotes"),
        ({"serviceAccountName": "x" * 254}, f"spec.serviceAccountName: {LONG_NAME}"),
        ({"runtimeClassName": "é" * 127}, f"spec.runtimeClassName: {LONG_NAME}"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x" * 5000}}]},
            f"spec.volumes[0].persistentVolumeClaim.claimName: {LONG_NAME}",
        ),
        ({"futureField": {"x": [1, -(10**20)]}}, f"spec.futureField[x][1]: Invalid value: {-(10**20)}: {INT64}"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, str) else "",
)
def test_fields_of_a_pod(refused, make_pod, spec: dict[str, Any], fault: str):
    found = refused(make_pod(**spec))
    assert found == [fault]


@pytest.mark.parametrize("spec", [{"priority": 10**30}, {"topologySpreadConstraints": [spread(10**20)]}])
def test_fields_of_a_template(refused, spec: dict[str, Any]):
    (found,) = refused(replica_set(spec))
    assert found.startswith("spec.template.spec.")
    assert found.endswith(INT32)


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31, 10**30])
def test_a_priority_class_is_of_32_bits(refused, value: int):
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}}
    assert refused(document | {"value": value}) == [f"value: Invalid value: {value}: {INT32}"]


def test_the_least_and_greatest_numbers_pass(admit, make_pod):
    admitted = admit(make_pod(terminationGracePeriodSeconds=2**63 - 1, topologySpreadConstraints=[spread(2**31 - 1)]))
    assert admitted["spec"]["terminationGracePeriodSeconds"] == 2**63 - 1
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}}
    assert admit(document | {"value": -(2**31)})["value"] == -(2**31)


@pytest.mark.parametrize("levels", [101, 969, 5000])
@pytest.mark.parametrize("place", ["spec", "template", "custom", "status"])
def test_endless_nesting(refused, make_pod, levels: int, place: str):
    deep = nested(levels)
    document = {
        "spec": lambda: make_pod(extra=deep),
        "template": lambda: replica_set({"extra": deep}),
        "custom": lambda: custom(spec=deep),
        "status": lambda: node(status={"extra": deep}),
    }[place]()
    (found,) = refused(document)
    assert found.endswith(TOO_DEEP)
    assert len(found) < 200


def test_a_hundred_levels_pass(admit):
    stored = admit(custom(spec=nested(99)))
    assert stored["spec"] == nested(99)
    with pytest.raises(admission.AdmissionError):
        admit(custom(spec=nested(100)))


def test_times_are_rfc_3339(refused, admit, make_pod):
    for wrong in ("garbage", "2024-01-01", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00", "99999-01-01T00:00:00Z"):
        document = node(status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": wrong}]})
        where = "status.conditions[0].lastTransitionTime"
        assert refused(document) == [f'{where}: Invalid value: "{wrong}": {TIME}']
    pod = make_pod()
    pod["metadata"] |= {"creationTimestamp": None, "deletionTimestamp": "2024-01-01T00:00:00.5+02:00"}
    assert admit(pod)["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"


def test_names_of_every_kind(refused):
    assert refused(custom(metadata={"name": "x" * 254})) == [
        f'metadata.name: Invalid value: "{"x" * 254}": must be no more than 253 bytes'
    ]
    (found,) = refused(custom(metadata={"name": "x" * 5000}))
    assert len(found) < 700, "a long value is shown in part"
    assert refused(custom(metadata={"generateName": "x" * 254}))[-1].startswith("metadata.generateName: Invalid value")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o" * 254, "uid": "u" * 254}
    assert refused(custom(metadata={"name": "r", "ownerReferences": [owner]})) == [
        f"metadata.ownerReferences[0].name: {LONG_NAME}",
        f"metadata.ownerReferences[0].uid: {LONG_NAME}",
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "detail"),
    [
        ("g" * 254 + "/v1", "Report", "is no group: may not be more than 253 bytes"),
        ("example.com/v" + "1" * 63, "Report", "is no version: may not be more than 63 bytes"),
        ("example.com/v1", "R" * 63, "its plural may not be more than 63 bytes"),
    ],
    ids=["group", "version", "kind"],
)
def test_groups_versions_and_kinds(admit, api_version: str, kind: str, detail: str):
    with pytest.raises(UnknownKindError, match=detail):
        admit({"apiVersion": api_version, "kind": kind, "metadata": {"name": "r"}})


def test_wrong_types_of_what_names_an_object(admit):
    for document in ({}, {"apiVersion": 5, "kind": []}, {"apiVersion": "v1", "kind": None}):
        with pytest.raises(UnknownKindError):
            admit(document)
    for metadata in (5, [], "x", {"name": 5}, {"name": {"a": []}}, {"labels": []}, {"annotations": {"a": 1}}):
        with pytest.raises(admission.AdmissionError) as caught:
            admit({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
        assert caught.value.faults[0].field.startswith("metadata")


def test_an_object_has_at_most_a_mebibyte_and_a_half(refused, admit):
    large = custom(spec={"schema": "x" * 1024 * 1024})
    assert admit(large)["spec"] == large["spec"], "public custom resource definitions have up to 1 MiB"
    (found,) = refused(custom(spec={"schema": "x" * bounds.OBJECT_BYTES}))
    assert found.startswith("Too long: an object may not be more than 1572864 bytes, this one has 15730")
    full = custom(spec={"schema": ""})
    room = bounds.OBJECT_BYTES - len(msgspec.json.encode(admit(full)))
    assert admit(custom(spec={"schema": "x" * room}))
    with pytest.raises(admission.AdmissionError):
        admit(custom(spec={"schema": "x" * (room + 1)}))


def test_sixty_kinds_of_resources(refused, admit, make_pod):
    def asked(count: int, prefix: str = "r") -> dict[str, str]:
        return {f"example.com/{prefix}{at}": "1" for at in range(count)}

    def container(name: str, amounts: dict[str, str]) -> dict[str, Any]:
        return {"name": name, "image": "x", "resources": {"requests": amounts, "limits": amounts}}

    admit(make_pod(containers=[container("a", asked(60))]))
    two = [container("a", asked(40)), container("b", asked(21, "s"))]
    assert refused(make_pod(containers=two)) == ["spec.containers: Too many: 61: must have at most 60 resources"]
    assert refused(replica_set({"containers": [container("a", asked(7000))]})) == [
        "spec.template.spec.containers: Too many: 7000: must have at most 60 resources"
    ]
    admit(node(status={"capacity": asked(60)}))
    many = {"capacity": asked(40), "allocatable": asked(30, "s")}
    assert refused(node(status=many)) == ["status.allocatable: Too many: 70: must have at most 60 resources"]


def test_lists_are_as_long_as_the_api_allows(refused, admit):
    def claim(count: int) -> dict[str, Any]:
        requests = [{"name": f"r{at}", "exactly": {"deviceClassName": "gpu"}} for at in range(count)]
        document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
        return {**document, "spec": {"devices": {"requests": requests}}}

    assert admit(claim(32))
    assert refused(claim(33)) == ["spec.devices.requests: Too many: 33: must have at most 32 items"]


def test_a_hundred_faults_are_told_of_an_object(refused, make_pod):
    found = refused(make_pod(args=[1] * 100_000, hostAliases=[1] * 100_000))
    assert len(found) == 100


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "kept"),
    [
        ("v1", "Node", {}, True),
        ("example.com/v1", "Report", {}, True),
        ("v1", "Pod", {"containers": [{"name": "c", "image": "x"}]}, False),
        ("v1", "Service", {}, False),
        ("v1", "PersistentVolume", {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}, False),
        (
            "v1",
            "PersistentVolumeClaim",
            {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]},
            False,
        ),
        ("apps/v1", "ReplicaSet", replica_set({})["spec"], False),
        ("apps/v1", "Deployment", replica_set({})["spec"], False),
        ("apps/v1", "StatefulSet", replica_set({})["spec"], False),
        ("policy/v1", "PodDisruptionBudget", {"minAvailable": 1}, False),
        ("resource.k8s.io/v1", "ResourceClaim", {"devices": {}}, False),
        ("storage.k8s.io/v1", "VolumeAttachment", {"attacher": "a", "nodeName": "n", "source": {}}, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_status_of_a_new_object(admit, api_version: str, kind: str, spec: dict[str, Any], kept: bool):
    conditions = [{"type": "Made", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}]
    status = (
        {"conditions": conditions} if kind not in ("PersistentVolume", "VolumeAttachment") else {"message": "made up"}
    )
    if kind == "VolumeAttachment":
        status = {"attached": True}
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, "status": status}
    left = admit(document).get("status", {})
    assert (left.get("conditions") == conditions) if kept else (set(left) <= {"phase"})
    assert left.get("phase", "Pending") == "Pending"


def test_a_new_gated_pod_is_nominated_nowhere(admit, make_pod):
    document = make_pod(schedulingGates=[{"name": "example.com/wait"}])
    stored = admit(document | {"status": {"nominatedNodeName": "n1", "phase": "Running"}})
    assert stored["status"] == {"phase": "Pending"}


def test_the_status_of_a_replaced_object_is_taken(admit, make_pod):
    stored = admit(make_pod())
    again = admit(make_pod() | {"status": {"phase": "Running"}}, stored)
    assert again["status"]["phase"] == "Running"


OF_EVERY_KIND = everything("default", "bad")
ONE_OF = 29
"""So many of the spoilt documents are looked at: all kinds, places and kinds of harm in turn."""


def good(kind: str) -> dict[str, Any]:
    """A document that admission takes."""
    document = written(OF_EVERY_KIND[kind])
    if kind == "pods":
        container = {"name": "before", "image": "x"}
        document = document | {"spec": document["spec"] | {"hostNetwork": False, "initContainers": [container]}}
    return document


@pytest.mark.parametrize("kind", OF_EVERY_KIND)
def test_no_absurd_value_ends_admission(admit, cluster, kind: str):
    """Created or replacing a good one, it is stored so that readers can read it, or refused with a reason."""
    cluster.add("priorityclasses", {"metadata": {"name": "bad"}, "value": 5})
    overhead = {"podFixed": {"cpu": "1m"}}
    cluster.add("runtimeclasses", {"metadata": {"name": "bad"}, "handler": "bad", "overhead": overhead})
    stored = admit(good(kind))
    reasons: list[str] = []
    taken = 0
    for poison in spoilt(good(kind), every=ONE_OF):
        for old in (None, stored):
            try:
                admitted = admit(decoding.document(poison.payload), old)
                decoding.decode(kind, msgspec.json.encode(admitted))
            except ObjectError as error:
                reasons.append(error.detail)
            else:
                taken += 1
    assert taken > 0
    assert reasons
    assert all(reasons)
