import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.objects import manifests, yaml_reader
from podyard.objects.errors import ManifestError

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


def content(text):
    """The one document of a YAML text."""
    (document,) = yaml_reader.read(text)
    return document.content


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("on", True),
        ("y", True),
        ("No", False),
        ("off", False),
        ("n", False),
        ("yEs", "yEs"),
        ("'yes'", "yes"),
        ("~", None),
        ("", None),
        ("null", None),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("08", 8),
        ("1e3", 1000),
        ("1.50", 1.5),
        (".5", 0.5),
        ("-12", -12),
        ("12:30", "12:30"),
        ("2001-01-01", "2001-01-01"),
        ("1.2.3", "1.2.3"),
        ("100m", "100m"),
        ("1Gi", "1Gi"),
        ("+", "+"),
        ("=", "="),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1),
        ("!!binary aGVsbG8=", "hello"),
        ("|-\n  a\n  b", "a\nb"),
        (">-\n  a\n  b", "a b"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(scalar, value):
    found = content(f"key: {scalar}\n")["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_become_text():
    assert content("on: 1\n8080: 2\n1.5: 3\n'x': 4\n") == {"true": 1, "8080": 2, "1.5": 3, "x": 4}


def test_anchors_aliases_and_merges():
    text = "base: &b {x: 1, w: 2}\nuse: *b\nmore:\n  <<: *b\n  w: 3\nboth:\n  <<: [{z: 0}, *b]\n"
    found = content(text)
    assert found["use"] == {"x": 1, "w": 2}
    assert found["more"] == {"x": 1, "w": 3}
    assert found["both"] == {"x": 1, "w": 2, "z": 0}
    assert found["use"] is not found["base"]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2\n", 'key "a" is already set'),
        ("true: 1\non: 2\n", 'key "true" is already set'),
        ("a: [1\n", "not valid YAML"),
        ("a:\n\tb: 1\n", "cannot start any token"),
        ("a: *b\n", "refers to no complete value"),
        ("a: &a [*a]\n", "refers to no complete value"),
        ("a: !secret x\n", "the tag !secret is not known"),
        ("a: !!int x\n", '"x" is no int'),
        ("a: .inf\n", "no number that JSON knows"),
        ("[a]: 1\n", "a key must be text"),
        ("a: {<<: 1}\n", "<< needs a mapping"),
        ("[" * 102 + "]" * 102, "nested more than 100 deep"),
        (BOMB, "has more than 500000 values"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_yaml_that_is_refused(text, says):
    with pytest.raises(yaml_reader.YamlError, match=says.replace("<<", "<<")):
        list(yaml_reader.read(text))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz", max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_is_read_as_itself_also_as_yaml(value):
    text = json.dumps(value, ensure_ascii=False)
    (document,) = yaml_reader.read(text)
    assert document.content == value


def test_many_documents_empty_ones_and_where_they_begin():
    text = f"# nothing\n---\n---\n{POD}---\n{POD.replace('name: a', 'name: b')}..."
    found = manifests.load("pods.yaml", text)
    assert [(item.name, item.index, item.line) for item in found] == [("a", 2, 4), ("b", 3, 8)]
    assert manifests.load("empty.yaml", "") == []


def test_json_documents_one_after_another():
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    assert [item.index for item in manifests.load("pods.json", f"{text}\n{text}")] == [1, 2]


def test_lists_are_opened_and_typed_lists_name_the_kind():
    listed = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
    (node,) = manifests.load("f", listed)
    assert (node.kind.resource, node.path) == ("nodes", "items[0]")
    pods = '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}}]}'
    (pod,) = manifests.load("f", pods)
    assert (pod.kind.resource, pod.document["kind"]) == ("pods", "Pod")
    assert manifests.load("f", "apiVersion: v1\nkind: List\nitems: []\n") == []


def test_unknown_fields_are_kept_and_nulls_dropped():
    text = (
        POD.replace("{name: a}", "{name: a, creationTimestamp: null}")
        + "spec: {dnsPolicy: Default, containers: [{name: c, x: null}]}\n"
    )
    (pod,) = manifests.load("f", text)
    assert pod.document["metadata"] == {"name": "a"}
    assert pod.document["spec"] == {"dnsPolicy": "Default", "containers": [{"name": "c"}]}


def test_custom_kinds_are_kept_as_they_are():
    (widget,) = manifests.load(
        "f", "apiVersion: e.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {a: null, b: [1, x]}\n"
    )
    assert widget.kind.resource == "widgets.v1.e.com"
    assert widget.document["spec"] == {"a": None, "b": [1, "x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            POD + "spec: {containers: [{name: c, image: 7}]}\n",
            "f.yaml: document 1 (line 1): spec.containers[0].image: must be text, is a whole number: put it in quotes",
        ),
        (
            f"{POD}---\n{POD}spec: {{containers: [{{name: c, resources: {{limits: {{memory: 1Q}}}}}}]}}\n",
            'f.yaml: document 2 (line 5): spec.containers[0].resources.limits[memory]: Invalid value: "1Q": quantities must match',
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\n",
            "f.yaml: document 1 (line 1): metadata.name: Required value: name or generateName is required",
        ),
        (
            "apiVersion: v1\nkind: Pod\n",
            "f.yaml: document 1 (line 1): metadata: must be a mapping with a name, is missing",
        ),
        (
            POD.replace("name: a", "name: n"),
            "f.yaml: document 1 (line 1): metadata.name: must be text, is true or false: put it in quotes",
        ),
        ("kind: Pod\n", "f.yaml: document 1 (line 1): apiVersion: must be text, such as apiVersion: v1 and kind: Pod"),
        ("hello\n", "f.yaml: document 1 (line 1): must be a mapping with apiVersion, kind and metadata, is text"),
        (
            POD + "metadata: {}\n",
            "f.yaml: document 1 (line 4): metadata: duplicate field",
        ),
        (
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: x, labels: {on: yes}}}\n",
            "f.yaml: document 1 (line 1): items[0].metadata.labels[true]: must be text, is true or false: put it in quotes",
        ),
        ('{"a": 1, "a": 2}', "f.yaml: document 1 (line 1): a: duplicate field"),
        ('{"a": NaN}', "f.yaml: document 1 (line 1): NaN is no number that JSON knows"),
        ('{"a": 1,}', "f.yaml: document 1 (line 1): not valid JSON: "),
        ("---\na: [1\n", "f.yaml: document 1 (line 3): not valid YAML: did not find expected ',' or ']'"),
    ],
)
def test_errors_say_file_document_field_and_fault(text, message):
    with pytest.raises(ManifestError) as caught:
        manifests.load("f.yaml", text)
    assert str(caught.value).startswith(message)


def test_an_unknown_kind_without_group_is_refused_with_advice():
    with pytest.raises(ManifestError, match="kinds of your own need a group") as caught:
        manifests.load("f.yaml", f"{POD}---\napiVersion: v1\nkind: Widget\nmetadata: {{name: w}}\n")
    assert (caught.value.source, caught.value.document, caught.value.field) == ("f.yaml", 2, "kind")


def test_huge_files_and_objects_are_refused(monkeypatch):
    def large(size: int) -> str:
        return POD.replace("{name: a}", "{name: a, annotations: {x: " + "y" * size + "}}")

    assert manifests.load("f", large(1536 * 1024 - 1000)), "as large as the api takes them"
    with pytest.raises(ManifestError, match="larger than 1536 KiB"):
        manifests.load("f", large(1536 * 1024))
    monkeypatch.setattr(yaml_reader, "LARGEST_TEXT_BYTES", 10)
    with pytest.raises(ManifestError, match="split it"):
        manifests.load("f", POD)


def test_deep_json_is_refused():
    with pytest.raises(ManifestError):
        manifests.load("f", '{"a":' * 5000 + "1" + "}" * 5000)


def test_a_manifest_can_word_faults_found_later():
    (pod,) = manifests.load("f", f"apiVersion: v1\nkind: List\nitems:\n- {{{POD.replace(chr(10), ', ')[:-2]}}}\n")
    assert (
        str(pod.fault("spec.containers", "Required value"))
        == "f: document 1 (line 1): items[0].spec.containers: Required value"
    )
