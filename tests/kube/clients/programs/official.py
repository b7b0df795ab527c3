"""What people do with the official Python client, each function an example. Run by the interpreter that knows
it: `python official.py KUBECONFIG EXAMPLE`, in a namespace of that name.
"""

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.informer.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

WITHIN_S = 60
LABELS = {"app": "web"}
APPLY = "application/apply-patch+yaml"


@contextlib.contextmanager
def refused(code: int, reason: str = "") -> Iterator[ApiException]:
    """What is asked in the block is refused so; the block gets what came, once it is over."""
    caught = ApiException()
    try:
        yield caught
    except ApiException as error:
        caught.status, caught.body = error.status, error.body
    assert caught.status == code, (caught.status, caught.body)
    assert not reason or f'"reason":"{reason}"' in caught.body, caught.body


def until(what: str, look: Callable[[], Any]) -> Any:
    """What is looked for, once it is there."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not seen within {WITHIN_S} s: {what}")


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def deployment(name: str, replicas: int) -> client.V1Deployment:
    container = client.V1Container(name="c", image="nginx:1", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=LABELS), spec=client.V1PodSpec(containers=[container])
    )
    selector = client.V1LabelSelector(match_labels=LABELS)
    spec = client.V1DeploymentSpec(replicas=replicas, selector=selector, template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def lists_page_by_page(namespace: str) -> None:
    core = client.CoreV1Api()
    for at in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"c{at}", {"even": str(at % 2 == 0)}, at=str(at)))
    names: list[str] = []
    more, counts = None, []
    while more != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=more)
        names += [one.metadata.name for one in page.items]
        counts.append((len(page.items), page.metadata.remaining_item_count))
        more = page.metadata._continue or ""
    assert names == [f"c{at}" for at in range(5)], names
    assert counts == [(2, 3), (2, 1), (1, None)], counts
    even = core.list_namespaced_config_map(namespace, label_selector="even=True")
    assert [one.metadata.name for one in even.items] == ["c0", "c2", "c4"]
    named = core.list_config_map_for_all_namespaces(field_selector=f"metadata.name=c3,metadata.namespace={namespace}")
    assert [one.data for one in named.items] == [{"at": "3"}]


def watches_from_a_list(namespace: str) -> None:
    core = client.CoreV1Api()
    core.create_namespaced_config_map(namespace, config_map("before"))
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    told = []
    follower = watch.Watch()

    def write() -> None:
        core.create_namespaced_config_map(namespace, config_map("c", x="1"))
        core.patch_namespaced_config_map("c", namespace, {"data": {"x": "2"}})
        core.delete_namespaced_config_map("c", namespace)

    writer = threading.Thread(target=write)
    writer.start()
    for event in follower.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=WITHIN_S
    ):
        told.append((event["type"], event["object"].metadata.name, event["object"].data))
        if event["type"] == "DELETED":
            follower.stop()
    writer.join()
    assert told == [("ADDED", "c", {"x": "1"}), ("MODIFIED", "c", {"x": "2"}), ("DELETED", "c", {"x": "2"})], told
    begun = time.monotonic()
    told = list(watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=1))
    assert [event["type"] for event in told] == ["ADDED"] * len(told)
    assert time.monotonic() - begun < WITHIN_S / 2, "a watch ends when its time is over"


def is_told_that_a_version_is_gone(namespace: str) -> None:
    """The lab remembers a megabyte of changes."""
    core = client.CoreV1Api()
    core.create_namespaced_config_map(namespace, config_map("c"))
    old = core.list_namespaced_config_map(namespace).metadata.resource_version
    much = "x" * 500_000
    for at in range(6):
        core.patch_namespaced_config_map("c", namespace, {"data": {"x": f"{at}{much}"}})
    with refused(410):
        for _ in watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=old, timeout_seconds=WITHIN_S
        ):
            raise AssertionError("something was told")
    with refused(410, "Expired"):
        core.list_namespaced_config_map(namespace, resource_version=old, resource_version_match="Exact")
    now = core.list_namespaced_config_map(namespace, resource_version="0")
    assert [one.metadata.name for one in now.items] == ["c"]
    with refused(504, "Timeout"):
        core.list_namespaced_config_map(namespace, resource_version="999999999")


def patches_in_four_languages(namespace: str) -> None:
    apps = client.AppsV1Api()
    apps.create_namespaced_deployment(namespace, deployment("web", 1))

    def patch(body: Any, media: str, **more: Any) -> Any:
        return apps.patch_namespaced_deployment("web", namespace, body, _content_type=media, **more)

    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1"}]}}}}
    found = patch(side, "application/strategic-merge-patch+json")
    assert [one.name for one in found.spec.template.spec.containers] == ["side", "c"]
    found = patch(
        [{"op": "test", "path": "/spec/replicas", "value": 1}, {"op": "replace", "path": "/spec/replicas", "value": 2}],
        "application/json-patch+json",
    )
    assert found.spec.replicas == 2
    with refused(422, "Invalid"):
        patch([{"op": "test", "path": "/spec/replicas", "value": 1}], "application/json-patch+json")
    found = patch({"metadata": {"labels": {"a": "b"}, "annotations": None}}, "application/merge-patch+json")
    assert found.metadata.labels == {"a": "b"}
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    with refused(409, "Conflict") as conflict:
        patch(wanted, APPLY, field_manager="me")
    assert ".spec.replicas" in conflict.body
    found = patch(wanted, APPLY, field_manager="me", force=True)
    assert found.spec.replicas == 3
    assert {(one.manager, one.operation) for one in found.metadata.managed_fields} >= {("me", "Apply")}


def creates_replaces_and_deletes(namespace: str) -> None:
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(namespace, config_map("c", x="1"))
    with refused(409, "AlreadyExists"):
        core.create_namespaced_config_map(namespace, config_map("c"))
    made.data = {"x": "2"}
    replaced = core.replace_namespaced_config_map("c", namespace, made)
    assert replaced.data == {"x": "2"}
    with refused(409, "Conflict"):
        core.replace_namespaced_config_map("c", namespace, made)
    named = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"generateName": "named-"}))
    assert named.metadata.name.startswith("named-")
    assert len(named.metadata.name) == len("named-") + 5
    with refused(409, "Conflict"):
        core.delete_namespaced_config_map("c", namespace, body={"preconditions": {"uid": "another"}})
    tried = core.create_namespaced_config_map(namespace, config_map("dry"), dry_run="All")
    assert tried.metadata.name == "dry"
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("dry", namespace)
    answer = core.delete_namespaced_config_map("c", namespace)
    assert (answer.status, answer.details.name) == ("Success", "c")
    core.delete_collection_namespaced_config_map(namespace)
    assert core.list_namespaced_config_map(namespace).items == []
    with refused(422, "Invalid") as invalid:
        core.create_namespaced_config_map(namespace, config_map("Not_A_Name"))
    assert "metadata.name" in invalid.body


def scales_and_follows_its_pods(namespace: str) -> None:
    apps, core = client.AppsV1Api(), client.CoreV1Api()
    apps.create_namespaced_deployment(namespace, deployment("web", 1))
    scale = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert (scale.spec.replicas, scale.status.selector) == (3, "app=web")
    scale.spec.replicas, scale.metadata.resource_version = 2, None  # whatever its status has become
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 2

    def ready() -> bool:
        status = apps.read_namespaced_deployment_status("web", namespace).status
        return status.ready_replicas == 2 and status.replicas == 2

    until("two pods are ready", ready)
    running = core.list_namespaced_pod(namespace, label_selector="app=web", field_selector="status.phase=Running")
    pods = [one for one in running.items if one.metadata.deletion_timestamp is None]
    assert len(pods) == 2, "the third one may still be going"
    for pod in pods:
        [owner] = pod.metadata.owner_references
        assert (owner.kind, owner.controller, pod.spec.node_name != "") == ("ReplicaSet", True, True)
        assert {one.type for one in pod.status.conditions} >= {"PodScheduled", "Ready"}


def evicts_within_a_budget(namespace: str) -> None:
    apps, core, policy = client.AppsV1Api(), client.CoreV1Api(), client.PolicyV1Api()
    apps.create_namespaced_deployment(namespace, deployment("web", 2))
    selector = client.V1LabelSelector(match_labels=LABELS)
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1PodDisruptionBudgetSpec(selector=selector, min_available=2),
    )
    policy.create_namespaced_pod_disruption_budget(namespace, budget)
    until(
        "the budget counts two healthy pods",
        lambda: policy.read_namespaced_pod_disruption_budget("web", namespace).status.current_healthy == 2,
    )
    pod = core.list_namespaced_pod(namespace, label_selector="app=web").items[0].metadata
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=pod.name, namespace=namespace))
    with refused(429, "TooManyRequests") as told:
        core.create_namespaced_pod_eviction(pod.name, namespace, eviction)
    assert "DisruptionBudget" in told.body
    assert "web" in told.body
    policy.patch_namespaced_pod_disruption_budget("web", namespace, {"spec": {"minAvailable": 1}})
    until(
        "one pod may go",
        lambda: policy.read_namespaced_pod_disruption_budget("web", namespace).status.disruptions_allowed == 1,
    )
    core.create_namespaced_pod_eviction(pod.name, namespace, eviction)

    def gone() -> bool:
        try:
            return core.read_namespaced_pod(pod.name, namespace).metadata.uid != pod.uid
        except ApiException as error:
            return error.status == 404

    until("it is gone", gone)


def cordons_a_node(namespace: str) -> None:
    core = client.CoreV1Api()
    nodes = core.list_node().items
    name = nodes[-1].metadata.name
    assert len(nodes) == 3
    assert nodes[0].status.capacity["cpu"]
    assert core.patch_node(name, {"spec": {"unschedulable": True}}).spec.unschedulable is True
    assert core.patch_node(name, {"spec": {"unschedulable": None}}).spec.unschedulable is None
    assert core.patch_node(name, {"metadata": {"labels": {"a": namespace}}}).metadata.labels["a"] == namespace


def defines_a_kind(namespace: str) -> Any:
    """Through the dynamic client; twice, as a kind that is there is there."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ponds.clients.example.com"},
        "spec": {
            "group": "clients.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ponds", "singular": "pond", "kind": "Pond"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"deep": {"type": "integer"}}},
                                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        }
                    },
                }
            ],
        },
    }
    cache = Path(tempfile.mkdtemp()) / "discovery.json"
    found = dynamic.DynamicClient(client.ApiClient(), cache_file=str(cache))
    definitions = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    with contextlib.suppress(ConflictError):
        definitions.create(body=definition)
    definitions.get(name="ponds.clients.example.com")
    found.resources.invalidate_cache()
    return found.resources.get(api_version="clients.example.com/v1", kind="Pond")


def uses_the_dynamic_client(namespace: str) -> None:
    ponds = defines_a_kind(namespace)
    pond = {
        "apiVersion": "clients.example.com/v1",
        "kind": "Pond",
        "metadata": {"name": "p", "labels": LABELS},
        "spec": {"deep": 3},
    }
    assert ponds.create(body=pond, namespace=namespace).spec.deep == 3
    assert [one.metadata.name for one in ponds.get(namespace=namespace, label_selector="app=web").items] == ["p"]
    merge = "application/merge-patch+json"
    patched = ponds.patch(body={"spec": {"deep": 4}}, name="p", namespace=namespace, content_type=merge)
    assert patched.spec.deep == 4
    ponds.status.patch(body={"status": {"full": True}}, name="p", namespace=namespace, content_type=merge)
    assert ponds.get(name="p", namespace=namespace).status.full is True
    wanted = {**pond, "spec": {"deep": 5}}
    applied = ponds.server_side_apply(
        body=wanted, name="p", namespace=namespace, field_manager="me", force_conflicts=True
    )
    assert applied.spec.deep == 5
    seen = [event["type"] for event in ponds.watch(namespace=namespace, timeout=1)]
    assert seen == ["ADDED"], seen
    with refused(415):
        ponds.patch(
            body={"spec": {}}, name="p", namespace=namespace, content_type="application/strategic-merge-patch+json"
        )
    ponds.delete(name="p", namespace=namespace)
    with contextlib.suppress(NotFoundError):
        ponds.get(name="p", namespace=namespace)
        raise AssertionError("it is there")
    custom = client.CustomObjectsApi()
    place = ("clients.example.com", "v1", namespace, "ponds")
    custom.create_namespaced_custom_object(*place, body=pond)
    assert custom.list_namespaced_custom_object(*place)["kind"] == "PondList"
    assert custom.delete_namespaced_custom_object(*place, "p")["status"] == "Success"


def creates_from_yaml(namespace: str) -> None:
    text = f"""
apiVersion: v1
kind: ServiceAccount
metadata: {{name: sa, namespace: {namespace}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec:
  selector: {{app: web}}
  ports: [{{port: 80}}]
---
apiVersion: batch/v1
kind: Job
metadata: {{name: once, namespace: {namespace}}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: busybox}}]
"""
    path = Path(tempfile.mkdtemp()) / "objects.yaml"
    path.write_text(text)
    utils.create_from_yaml(client.ApiClient(), str(path))
    assert client.CoreV1Api().read_namespaced_service("web", namespace).spec.ports[0].port == 80
    assert client.BatchV1Api().read_namespaced_job("once", namespace).spec.completions == 1


def keeps_a_cache(namespace: str) -> None:
    core = client.CoreV1Api()
    core.create_namespaced_config_map(namespace, config_map("a"))
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    informer.start()
    try:
        until("what was there is there", lambda: informer.cache.get_by_key(f"{namespace}/a"))
        core.create_namespaced_config_map(namespace, config_map("b"))
        until("what comes is there", lambda: informer.cache.get_by_key(f"{namespace}/b"))
        core.delete_namespaced_config_map("a", namespace)
        until("what goes is gone", lambda: informer.cache.get_by_key(f"{namespace}/a") is None)
    finally:
        informer.stop()


def elects_a_leader(namespace: str) -> None:
    led = threading.Event()
    lock = ConfigMapLock("lock", namespace, "me")
    wanted = electionconfig.Config(
        lock, lease_duration=5, renew_deadline=4, retry_period=1, onstarted_leading=led.set, onstopped_leading=None
    )
    threading.Thread(target=leaderelection.LeaderElection(wanted).run, daemon=True).start()
    assert led.wait(WITHIN_S)
    annotations = client.CoreV1Api().read_namespaced_config_map("lock", namespace).metadata.annotations
    assert '"holderIdentity": "me"' in annotations["control-plane.alpha.kubernetes.io/leader"]


def asks_what_it_may(namespace: str) -> None:
    assert client.VersionApi().get_code().minor == "36"
    about = client.V1ResourceAttributes(verb="create", resource="pods", namespace=namespace)
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=about)
    review = client.V1SelfSubjectAccessReview(spec=spec)
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed is True
    whoami = client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview())
    assert whoami.status.user_info.username
    groups = client.ApisApi().get_api_versions().groups
    assert {"apps", "batch", "policy"} <= {one.name for one in groups}
    assert client.AppsV1Api().get_api_resources().resources


EXAMPLES = [
    lists_page_by_page,
    watches_from_a_list,
    is_told_that_a_version_is_gone,
    patches_in_four_languages,
    creates_replaces_and_deletes,
    scales_and_follows_its_pods,
    evicts_within_a_budget,
    cordons_a_node,
    uses_the_dynamic_client,
    creates_from_yaml,
    keeps_a_cache,
    elects_a_leader,
    asks_what_it_may,
]


def main(kubeconfig: str, name: str) -> None:
    config.load_kube_config(kubeconfig)
    namespace = f"official-{name.replace('_', '-')}"
    client.CoreV1Api().create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
    {one.__name__: one for one in EXAMPLES}[name](namespace)


if __name__ == "__main__":
    main(*sys.argv[1:])
