"""The table of Kubernetes' types holds what the API document of v1.36.2 says."""

import gzip
from importlib.resources import files

import msgspec
import pytest

from podyard.objects import api_types, bounds, kinds
from podyard.objects.api_types import Field, ServedKind
from podyard.objects.decoding import JSON_NAMES
from podyard.objects.type_check import shape_of

TABLE = api_types.table()


def field(definition: str, name: str) -> Field:
    return TABLE.definitions[definition].fields[name]


def served(group: str, version: str, resource: str) -> ServedKind:
    (found,) = [kind for kind in TABLE.kinds if (kind.group, kind.version, kind.resource) == (group, version, resource)]
    return found


def test_its_origin_is_said():
    origin = TABLE.origin
    assert (origin.module, origin.version) == ("k8s.io/kubernetes", "v1.36.2")
    assert origin.file == "api/openapi-spec/swagger.json"
    assert len(origin.sha256) == 64


def test_it_is_as_large_as_the_document():
    fields = [one for definition in TABLE.definitions.values() for one in definition.fields.values()]
    assert (len(TABLE.definitions), len(fields)) == (771, 3137)
    assert sum(bool(one.merge_key) for one in fields) == 68
    assert len(TABLE.kinds) == 95


def test_it_has_facts_and_no_prose():
    text = gzip.decompress(files("podyard.objects").joinpath(api_types.TABLE).read_bytes())

    def longest(value: object) -> int:
        if isinstance(value, dict):
            return max(max(map(len, value), default=0), max(map(longest, value.values()), default=0))
        if isinstance(value, list):
            return max(map(longest, value), default=0)
        return len(value) if isinstance(value, str) and " " in value else 0

    assert longest(msgspec.json.decode(text)["definitions"]) < 90, "a name, not a sentence"


@pytest.mark.parametrize(
    ("definition", "name", "wanted"),
    [
        ("api.core.v1.PodSpec", "priority", "int32"),
        ("api.core.v1.PodSpec", "terminationGracePeriodSeconds", "int64"),
        ("api.core.v1.PodSpec", "nodeSelector", "map[string]string"),
        ("api.core.v1.PodSpec", "containers", "[]api.core.v1.Container"),
        ("api.core.v1.PodSpec", "hostNetwork", "boolean"),
        ("api.core.v1.ResourceRequirements", "requests", "map[string]apimachinery.pkg.api.resource.Quantity"),
        ("api.core.v1.TopologySpreadConstraint", "maxSkew", "int32"),
        ("api.core.v1.Toleration", "tolerationSeconds", "int64"),
        ("api.core.v1.Secret", "data", "map[string]byte"),
        ("api.scheduling.v1.PriorityClass", "value", "int32"),
        ("api.apps.v1.RollingUpdateDeployment", "maxSurge", "apimachinery.pkg.util.intstr.IntOrString"),
        ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "creationTimestamp", "apimachinery.pkg.apis.meta.v1.Time"),
        ("api.authorization.v1.SubjectAccessReviewSpec", "extra", "map[string][]string"),
    ],
)
def test_types_of_fields(definition: str, name: str, wanted: str):
    assert field(definition, name).type == wanted


def test_how_lists_and_structures_are_joined():
    ports = field("api.core.v1.Container", "ports")
    assert (ports.list_type, ports.list_keys) == ("map", ("containerPort", "protocol"))
    assert (ports.patch, ports.merge_key) == (("merge",), "containerPort")
    assert field("api.core.v1.PodSpec", "volumes").patch == ("merge", "retainKeys")
    assert field("api.apps.v1.DeploymentSpec", "strategy").patch == ("retainKeys",)
    assert field("api.core.v1.PodSpec", "tolerations").list_type == "atomic"
    assert field("api.core.v1.PodSpec", "nodeSelector").map_type == "atomic"
    assert TABLE.definitions["apimachinery.pkg.apis.meta.v1.LabelSelector"].map == "atomic"
    assert TABLE.definitions["api.core.v1.Container"].map == ""


def test_which_fields_are_required():
    assert field("api.core.v1.PodSpec", "containers").required
    assert not field("api.core.v1.PodSpec", "nodeName").required


def test_what_is_no_structure_has_a_type():
    assert TABLE.definitions["apimachinery.pkg.apis.meta.v1.Time"].type == "date-time"
    assert TABLE.definitions["apimachinery.pkg.util.intstr.IntOrString"].type == "int-or-string"
    assert TABLE.definitions["apimachinery.pkg.runtime.RawExtension"].type == "map[string]any"


def test_where_kinds_are_served():
    pods = served("", "v1", "pods")
    assert (pods.kind, pods.scope, pods.definition) == ("Pod", "Namespaced", "api.core.v1.Pod")
    assert {"eviction", "resize", "status", "binding"} <= set(pods.subresources)
    assert set(pods.verbs) == {"delete", "deletecollection", "get", "list", "patch", "post", "put"}
    assert served("", "v1", "nodes").scope == "Cluster"
    assert {kind.version for kind in TABLE.kinds if kind.resource == "horizontalpodautoscalers"} == {"v1", "v2"}
    assert served("resource.k8s.io", "v1beta2", "deviceclasses").kind == "DeviceClass"


def test_every_type_is_known():
    """A list or map of scalars, or of a definition that the table has: `shape_of` raises otherwise."""
    for name in TABLE.definitions:
        shape_of(name)


def test_every_built_in_kind_is_one_of_kubernetes():
    for kind in kinds.KINDS:
        group, _, version = kind.api_version.rpartition("/")
        found = served(group, version, kind.resource)
        assert (found.kind, found.scope == "Namespaced") == (kind.kind, kind.namespaced)
        assert found.definition == api_types.definition_of(kind.api_version, kind.kind)


def test_another_kind_has_no_definition():
    assert api_types.definition_of("example.com/v1", "Pod") is None


def test_bounds_are_those_of_fields_that_there_are():
    for definition, name in (*bounds.ITEMS, *bounds.LONGER_NAMES):
        assert field(definition, name).type.startswith(api_types.LIST) == ((definition, name) in bounds.ITEMS)


def test_json_types_have_words():
    assert set(JSON_NAMES) == {"str", "int", "float", "bool", "array", "object", "null"}
