"""What is typed: objects by name, files, selectors; errors before anything is sent."""

import pytest

from podyard.cli import files, getting, targets
from podyard.cli.errors import InputError

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: staging}\nspec: {containers: [{name: c}]}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"


@pytest.fixture
def file(tmp_path):
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def refs(kind, *names, namespace=None, files=()):
    found = targets.parse(kind, names, files, namespace).refs
    return [(ref.resource, ref.namespace, ref.name) for ref in found]


def test_objects_by_kind_and_name():
    assert refs("po", "a", "b", namespace="x") == [("pods", "x", "a"), ("pods", "x", "b")]
    assert refs("node", "n1", namespace="x") == [("nodes", "", "n1")]
    assert refs("pod/a", "node/b") == [("pods", "default", "a"), ("nodes", "", "b")]


def test_objects_by_file_keep_their_own_namespace(file):
    path = file("a.yaml", POD + "---\n" + NODE)
    assert refs("", files=(path,), namespace="x") == [("pods", "staging", "web"), ("nodes", "", "n1")]


def test_a_selector_is_settled_later():
    wanted = targets.parse("pods,nodes", (), (), None, selector="app=web")
    assert [kind.resource for kind in wanted.kinds] == ["pods", "nodes"]
    assert wanted.refs == ()


@pytest.mark.parametrize(
    ("kind", "names", "more"),
    [
        ("", (), {}),
        ("pods", (), {}),
        ("nonsense", ("a",), {}),
        ("pod/a", ("b",), {}),
        ("pods,nodes", ("a",), {}),
        ("pods", ("a",), {"selector": "x=y"}),
        ("pod", ("a",), {"files": ("f.yaml",)}),
    ],
)
def test_too_little_or_contradictory_words(kind, names, more):
    with pytest.raises(InputError) as raised:
        targets.parse(kind, names, more.get("files", ()), None, selector=more.get("selector", ""))
    assert raised.value.exit_code == 2


def test_get_takes_kinds_names_and_slashes():
    query = getting.parse("deploy,po", (), "default", "", "table")
    assert [kind.resource for kind in query.kinds] == ["deployments", "pods"]
    assert getting.parse("pod/a", ("node/b",), "default", "", "yaml").names == (("pods", "a"), ("nodes", "b"))
    assert [kind.resource for kind in getting.parse("all", (), None, "", "table").kinds] == list(getting.ALL)


@pytest.mark.parametrize(
    ("kind", "names", "namespace", "selector"),
    [
        ("pods,nodes", ("a",), "default", ""),
        ("pod/a", ("b",), "default", ""),
        ("pods", ("a",), "default", "x=y"),
        ("pods", ("a",), None, ""),
        ("nonsense", (), None, ""),
    ],
)
def test_get_refuses_what_makes_no_sense(kind, names, namespace, selector):
    with pytest.raises(InputError):
        getting.parse(kind, names, namespace, selector, "table")


def test_files_of_a_directory_are_read_in_order_of_their_names(file, tmp_path):
    file("b.yaml", POD)
    file("a.json", '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}')
    file("notes.txt", "not read")
    assert [manifest.name for manifest in files.read_all([str(tmp_path)])] == ["n1", "web"]


def test_standard_input_is_a_file():
    assert [manifest.name for manifest in files.read_all(["-"], stdin=lambda: NODE)] == ["n1"]


def test_every_faulty_file_is_told_with_document_and_field(file):
    bad = file("bad.yaml", NODE + "---\n" + NODE.replace("name: n1", "name: n1, labels: [a]"))
    worse = file(
        "worse.yaml", NODE + "---\n" + POD.replace("{name: c}", "{name: c, resources: {requests: {cpu: much}}}")
    )
    with pytest.raises(InputError) as raised:
        files.read_all([bad, worse])
    assert "bad.yaml: document 2" in raised.value.message
    assert "worse.yaml: document 2" in raised.value.message
    assert "spec.containers[0].resources.requests" in raised.value.message


@pytest.mark.parametrize(("name", "told"), [("missing.yaml", "No such file"), (".", "no .yaml")])
def test_a_file_that_cannot_be_read_is_told(tmp_path, name, told):
    with pytest.raises(InputError, match=told):
        files.read_all([str(tmp_path / name)])


def test_files_without_objects_are_refused(file):
    with pytest.raises(InputError, match="no objects"):
        files.read_all([file("empty.yaml", "---\n")])
