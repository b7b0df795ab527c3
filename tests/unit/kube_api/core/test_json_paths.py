"""JSONPath as definitions use it."""

from typing import Any

import pytest

from podyard.kube_api.core.json_paths import Path

DOCUMENT = {
    "metadata": {"annotations": {"a.b/c": "dotted"}},
    "spec": {"replicas": 3, "list": [{"name": "x"}, {"name": "y"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "ok": True, "status": "No"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.replicas", 3),
        ("spec.replicas", 3),
        (".spec.list[1].name", "y"),
        (".spec.list[-1].name", "y"),
        (".spec.list[*].name", "x"),
        (".spec.list[5].name", None),
        (".spec.absent.name", None),
        (".spec.replicas.name", None),
        (".metadata.annotations.a\\.b/c", "dotted"),
        (".metadata.annotations['a.b/c']", "dotted"),
        ('.metadata["annotations"]["a.b/c"]', "dotted"),
        ('.status.conditions[?(@.type=="Ready")].status', "True"),
        (".status.conditions[?(@.type == 'Old')].status", "No"),
        (".status.conditions[?(@.ok==true)].type", "Old"),
        (".status.conditions[?(@.type=='None')].status", None),
    ],
)
def test_the_first_value_on_a_path(path: str, value: Any):
    assert Path(path).first(DOCUMENT) == value


@pytest.mark.parametrize("path", [".a..b", ".a[", ".a[?(@.b>1)]", ".a[x]", ".a]", "." + "a" * 1025, "..a"])
def test_what_is_no_path(path: str):
    with pytest.raises(ValueError, match="path"):
        Path(path)
