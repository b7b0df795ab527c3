"""What people do with kr8s, each function an example. Run by the interpreter that knows it:
`python with_kr8s.py KUBECONFIG EXAMPLE`, in a namespace of that name.
"""

import sys
import warnings
from typing import Any

import kr8s
from kr8s.objects import ConfigMap, Deployment, Namespace, Node, Pod, Secret, Service, new_class

WITHIN_S = 60
LABELS = {"app": "web"}


def config_map(api: kr8s.Api, namespace: str, name: str, **data: str) -> ConfigMap:
    return ConfigMap({"metadata": {"name": name, "namespace": namespace, "labels": LABELS}, "data": data}, api=api)


def deployment(api: kr8s.Api, namespace: str, replicas: int) -> Deployment:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return Deployment({"metadata": {"name": "web", "namespace": namespace}, "spec": spec}, api=api)


def lists_and_selects(api: kr8s.Api, namespace: str) -> None:
    for at in range(3):
        config_map(api, namespace, f"c{at}", at=str(at)).create()
    found = list(api.get("configmaps", namespace=namespace, label_selector={"app": "web"}))
    assert [one.name for one in found] == ["c0", "c1", "c2"], found
    [one] = api.get("configmaps", "c1", namespace=namespace)
    assert one.data == {"at": "1"}
    assert any(node.name for node in api.get("nodes"))
    assert [one.name for one in api.get("configmaps", namespace=namespace, field_selector="metadata.name=c2")] == ["c2"]
    assert {"configmap", "pod"} <= {one["singularName"] for one in api.api_resources()}
    assert api.version()["minor"] == "36"
    assert api.whoami()


def creates_changes_and_deletes(api: kr8s.Api, namespace: str) -> None:
    found = config_map(api, namespace, "c", x="1")
    found.create()
    assert found.exists()
    found.patch({"data": {"y": "2"}})
    assert found.data == {"x": "1", "y": "2"}
    found.patch([{"op": "remove", "path": "/data/x"}], type="json")
    assert found.data == {"y": "2"}
    found.patch({"data": {"z": "3"}}, type="merge")
    found.label(tier="front")
    found.annotate({"note": "hello"})
    found.refresh()
    assert (found.labels["tier"], found.annotations["note"], found.data) == ("front", "hello", {"y": "2", "z": "3"})
    found.remove_label("tier")
    assert "tier" not in found.labels
    owned = config_map(api, namespace, "owned")
    owned.create()
    owned.set_owner(found)
    assert owned.metadata.ownerReferences[0].name == "c"
    secret = Secret({"metadata": {"name": "s", "namespace": namespace}, "data": {"k": "aGlkZGVu"}}, api=api)
    secret.create()
    assert Secret.get("s", namespace=namespace, api=api).data == {"k": "aGlkZGVu"}
    found.delete()
    found.wait("delete", timeout=WITHIN_S)
    assert not found.exists()


def waits_and_scales(api: kr8s.Api, namespace: str) -> None:
    web = deployment(api, namespace, 1)
    web.create()
    web.wait("condition=Available", timeout=WITHIN_S)
    web.scale(3)
    web.wait("jsonpath='{.status.readyReplicas}'=3", timeout=WITHIN_S)
    pods = web.pods()
    assert len(pods) == 3
    for pod in pods:
        pod.wait("condition=Ready", timeout=WITHIN_S)
        assert pod.ready()
    service = Service(
        {
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": LABELS, "ports": [{"port": 80}]},
        },
        api=api,
    )
    service.create()
    assert len(service.ready_pods()) == 3
    pods[0].delete(grace_period=0)
    pods[0].wait("delete", timeout=WITHIN_S)


def watches(api: kr8s.Api, namespace: str) -> None:
    found = config_map(api, namespace, "c", x="1")
    found.create()
    told: list[Any] = []
    for event, one in api.watch("configmaps", namespace=namespace):
        told.append((event, one.data.get("x")))
        if len(told) == 1:
            found.patch({"data": {"x": "2"}})
        elif len(told) == 2:
            found.delete()
        else:
            break
    assert told == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], told


def cordons_and_taints_a_node(api: kr8s.Api, namespace: str) -> None:
    node: Node = max(api.get("nodes"), key=lambda one: one.name)
    node.cordon()
    node.refresh()
    assert node.unschedulable is True
    node.uncordon()
    node.taint("example.com/key", "value", effect="NoSchedule")
    node.refresh()
    assert "example.com/key" in [one["key"] for one in node.taints]
    node.taint("example.com/key", "value", effect="NoSchedule-")
    node.refresh()
    assert "example.com/key" not in [one["key"] for one in node.taints]


def reads_no_logs(api: kr8s.Api, namespace: str) -> None:
    """It is told why."""
    pod = Pod(
        {"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        api=api,
    )
    pod.create()
    pod.wait("condition=Ready", timeout=WITHIN_S)
    code = 0
    try:
        list(pod.logs())
    except kr8s.ServerError as error:
        code = error.response.status_code
    assert code == 501


def uses_a_kind_of_its_own(api: kr8s.Api, namespace: str) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lakes.kr8s.example.com"},
        "spec": {
            "group": "kr8s.example.com",
            "scope": "Namespaced",
            "names": {"plural": "lakes", "singular": "lake", "kind": "Lake"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    kind = new_class("CustomResourceDefinition", version="apiextensions.k8s.io/v1", namespaced=False)
    kind(definition, api=api).create()
    lake_class = new_class("Lake", version="kr8s.example.com/v1", namespaced=True, plural="lakes")
    lake = lake_class({"metadata": {"name": "l", "namespace": namespace}, "spec": {"deep": 3}}, api=api)
    lake.create()
    lake.patch({"spec": {"deep": 4}})
    [found] = api.get("lakes.kr8s.example.com", namespace=namespace)
    assert (found.kind, found.spec.deep) == ("Lake", 4)


EXAMPLES = [
    lists_and_selects,
    creates_changes_and_deletes,
    waits_and_scales,
    watches,
    cordons_and_taints_a_node,
    reads_no_logs,
    uses_a_kind_of_its_own,
]


def main(kubeconfig: str, name: str) -> None:
    warnings.filterwarnings("ignore", message="Kubernetes version .* is not supported")
    api = kr8s.api(kubeconfig=kubeconfig)
    namespace = f"kr8s-{name.replace('_', '-')}"
    Namespace({"metadata": {"name": namespace}}, api=api).create()
    {one.__name__: one for one in EXAMPLES}[name](api, namespace)


if __name__ == "__main__":
    main(*sys.argv[1:])
