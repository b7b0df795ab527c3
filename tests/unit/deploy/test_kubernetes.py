"""The manifests for Kubernetes: fields and types as its API document has them, and every name, port, path and
option that they use is one of the code."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from podyard.bus.embedded import batch_limits
from podyard.cli import app, services
from podyard.cli.security import kube_files
from podyard.objects import admission, api_types
from podyard.objects.faults import Faults
from podyard.objects.type_check import Form, Shape, check_types, shape_of
from podyard.proto import streams
from podyard.runtime import settings
from podyard.runtime.settings import load_settings
from podyard.runtime.web import HEALTH
from tests.unit.deploy.test_lab_files import setting

Document = dict[str, Any]
KUBERNETES = Path(__file__).parents[3] / "deploy" / "kubernetes"
BASE, EXAMPLE = KUBERNETES / "base", KUBERNETES / "overlays" / "example"
DNS = 53


def kustomization(folder: Path) -> Document:
    return yaml.safe_load((folder / "kustomization.yaml").read_text())


def documents() -> list[Document]:
    """All objects of the base."""
    return [one for name in kustomization(BASE)["resources"] for one in yaml.safe_load_all((BASE / name).read_text())]


def of_kind(kind: str) -> dict[str, Document]:
    """By name."""
    return {one["metadata"]["name"]: one for one in documents() if one["kind"] == kind}


def workloads() -> dict[str, Document]:
    return {**of_kind("Deployment"), **of_kind("StatefulSet")}


def pod_of(workload: Document) -> Document:
    return workload["spec"]["template"]["spec"]


def container_of(workload: Document) -> Document:
    [found] = pod_of(workload)["containers"]
    return found


def unknown(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Fields that Kubernetes' API does not have."""
    if isinstance(value, dict):
        for name, inner in value.items():
            known = (shape.fields or {}).get(name) if shape.form is Form.STRUCTURE else shape.item
            if shape.form is Form.STRUCTURE and known is None:
                yield f"{path}.{name}"
            elif known is not None:
                yield from unknown(inner, known, f"{path}.{name}")
    elif isinstance(value, list) and shape.item is not None:
        for number, inner in enumerate(value):
            yield from unknown(inner, shape.item, f"{path}[{number}]")


class Empty:
    """A cluster without objects."""

    def get(self, resource: str, namespace: str, name: str) -> None:
        del resource, namespace, name

    def list(self, resource: str) -> tuple[()]:
        del resource
        return ()


def admitted(document: Document) -> Document:
    """As the api would store it; refused with all that is wrong."""
    return admission.admit(document, Empty(), old=None, now=1.0, new_uid=lambda: "u", random=Random(1))


def test_every_file_is_a_resource() -> None:
    listed = {*kustomization(BASE)["resources"], "kustomization.yaml", "options.yaml", "nats.conf"}
    assert {path.name for path in BASE.iterdir()} == listed


@pytest.mark.parametrize("document", documents(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_has_the_fields_and_types_of_kubernetes(document: Document) -> None:
    definition = api_types.definition_of(document["apiVersion"], document["kind"])
    assert definition is not None
    faults = Faults()
    check_types(faults, document, definition)
    assert not faults.found
    assert [*unknown(document, shape_of(definition), document["kind"])] == []


@pytest.mark.parametrize("kind", ["Deployment", "PodDisruptionBudget"])
def test_podyard_itself_would_admit_it(kind: str) -> None:
    for document in of_kind(kind).values():
        admitted({**document, "metadata": {**document["metadata"], "namespace": "default"}})


@pytest.mark.parametrize("name", workloads())
def test_podyard_itself_would_admit_its_pods(name: str) -> None:
    template = workloads()[name]["spec"]["template"]
    spec = {**template["spec"], "volumes": [*template["spec"]["volumes"], {"name": "data", "emptyDir": {}}]}
    admitted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **template["metadata"]}, "spec": spec})


def test_every_service_runs() -> None:
    assert {name.replace("-", "_") for name in of_kind("Deployment")} == {*services.NAMES}
    for name, deployment in of_kind("Deployment").items():
        words = container_of(deployment)["args"]
        assert words[:2] == ["run", name.replace("-", "_")]
        _, bound, _ = app.build().parse_args(words, print_error=False, exit_on_error=False)
        assert bound.args


@pytest.mark.parametrize("folder", [BASE, EXAMPLE], ids=["base", "example"])
@pytest.mark.parametrize("name", services.NAMES)
def test_it_takes_its_options_and_serves_what_is_probed(name: str, folder: Path) -> None:
    wanted = services.definition(name).settings_type
    common, _ = load_settings(wanted, name, config_file=str(folder / "options.yaml"), environment=environment(name))
    container = container_of(of_kind("Deployment")[name.replace("_", "-")])
    assert container["ports"][0] == {"name": "https", "containerPort": common.secure.port}
    assert len(container["ports"]) == (2 if name == "kube_api" else 1)
    assert (common.http.port, common.nats.stream_replicas) == (-1, of_kind("StatefulSet")["nats"]["spec"]["replicas"])
    assert common.instance == "the-pod"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked == {
            "path": "/readyz" if probe == "readinessProbe" else "/livez",
            "port": "https",
            "scheme": "HTTPS",
        }
        assert asked["path"] in HEALTH


def environment(name: str) -> dict[str, str]:
    """Of a container, with the pod's name for what is read from its metadata."""
    [one] = container_of(of_kind("Deployment")[name.replace("_", "-")])["env"]
    assert one["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    return {one["name"]: "the-pod"}


def test_services_differ_in_name_and_size_only() -> None:
    alike = set[str]()
    for name, deployment in of_kind("Deployment").items():
        text = yaml.safe_dump({**deployment, "spec": {**deployment["spec"], "template": without_size(deployment)}})
        alike.add(re.sub(rf"\b{name.replace('-', '[-_]')}\b", "NAME", text))
    assert len(alike) == 1


def without_size(deployment: Document) -> Document:
    """A template without sizes, and without what the Kubernetes API alone has."""
    template = deployment["spec"]["template"]
    container = {key: value for key, value in container_of(deployment).items() if key != "resources"}
    container["ports"] = [port for port in container["ports"] if port["name"] != "kube"]
    container["volumeMounts"] = [one for one in container["volumeMounts"] if one["name"] != "kube-api"]
    pod = template["spec"]
    volumes = [one for one in pod["volumes"] if one["name"] != "kube-api"]
    security = {key: value for key, value in pod["securityContext"].items() if key != "fsGroup"}
    return {**template, "spec": {**pod, "containers": [container], "volumes": volumes, "securityContext": security}}


def test_the_kubernetes_api_is_served_by_a_secret_that_the_page_says_how_to_make() -> None:
    deployment = of_kind("Deployment")["kube-api"]
    pod, container = pod_of(deployment), container_of(deployment)
    wanted = services.definition("kube_api").settings_type
    common, own = load_settings(
        wanted, "kube_api", config_file=str(BASE / "options.yaml"), environment=environment("kube_api")
    )
    assert common.secure.port != own.port
    assert container["ports"][1] == {"name": "kube", "containerPort": own.port}
    assert {"name": "kube", "port": own.port, "targetPort": "kube"} in of_kind("Service")["kube-api"]["spec"]["ports"]
    [folder] = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "kube-api"]
    [secret] = [one["secret"] for one in pod["volumes"] if one["name"] == "kube-api"]
    assert secret == {"secretName": "kube-api", "defaultMode": 0o440}
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    page = (KUBERNETES.parents[1] / "docs" / "kubernetes.md").read_text()
    made = re.search(r"create secret generic kube-api((?: \\\n)?(?:\s+--from-file=\S+(?: \\)?)+)", page)
    assert made is not None
    keys = dict(word.removeprefix("--from-file=").split("=") for word in re.findall(r"--from-file=\S+", made[1]))
    assert {f"{folder}/{name}" for name in keys} == {*own.key_paths}
    assert [path.rpartition("/")[2] for path in keys.values()] == [
        kube_files.CERTIFICATE,
        kube_files.KEY,
        kube_files.TOKENS,
    ]
    assert set(own.host_names) <= set(kube_files.HOSTS)


@pytest.mark.parametrize("name", workloads())
def test_pods_are_of_the_restricted_kind_and_have_no_rights(name: str) -> None:
    """Source: Kubernetes' Pod Security Standards, "restricted"."""
    pod, container = pod_of(workloads()[name]), container_of(workloads()[name])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["serviceAccountName"] == name
    assert (pod["automountServiceAccountToken"], of_kind("ServiceAccount")[name]["automountServiceAccountToken"]) == (
        False,
        False,
    )
    assert not {one["kind"] for one in documents()} & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    assert {"cpu", "memory"} == {*container["resources"]["requests"]}
    assert container["resources"]["limits"].keys() == {"memory"}


@pytest.mark.parametrize("name", workloads())
def test_who_may_be_there_twice_is_spread_and_not_drained_at_once(name: str) -> None:
    workload = workloads()[name]
    labels = workload["spec"]["template"]["metadata"]["labels"]
    chosen = {"app.kubernetes.io/name": name}
    assert chosen.items() <= labels.items()
    assert workload["spec"]["selector"] == {"matchLabels": chosen}
    assert of_kind("PodDisruptionBudget")[name]["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": chosen}}
    assert of_kind("Service")[name]["spec"]["selector"] == chosen
    assert workload["spec"]["replicas"] >= 2
    [(_, terms)] = pod_of(workload)["affinity"]["podAntiAffinity"].items()
    term = terms[0].get("podAffinityTerm", terms[0])
    assert term == {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": chosen}}


def test_services_have_the_time_to_end() -> None:
    for deployment in of_kind("Deployment").values():
        granted_s = pod_of(deployment)["terminationGracePeriodSeconds"]
        assert granted_s > settings.ServiceSettings().shutdown_timeout_s


def test_images_are_those_of_the_compose_file() -> None:
    found = {container_of(one)["image"] for one in workloads().values()}
    assert found == {setting("PODYARD_IMAGE"), setting("PODYARD_NATS_IMAGE")}
    names = {image.partition(":")[0] for image in found}
    assert {one["name"] for one in kustomization(EXAMPLE)["images"]} <= names
    assert {one["name"] for one in kustomization(EXAMPLE)["replicas"]} <= {*workloads()}


def test_ports_that_are_let_through_are_those_that_are_served() -> None:
    served = {port["containerPort"] for one in workloads().values() for port in container_of(one)["ports"]}
    ports = {
        port["port"]
        for policy in of_kind("NetworkPolicy").values()
        for way in (*policy["spec"].get("ingress", ()), *policy["spec"].get("egress", ()))
        for port in way["ports"]
    }
    assert ports - {DNS} <= served
    assert served - ports == {8222}, "the monitor is for the kubelet alone"
    assert of_kind("NetworkPolicy")["nobody"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_the_servers_are_those_of_the_stateful_set() -> None:
    nats = of_kind("StatefulSet")["nats"]
    hosts = [f"nats-{number}.{nats['spec']['serviceName']}" for number in range(nats["spec"]["replicas"])]
    config = (BASE / "nats.conf").read_text()
    [routes] = re.findall(r"routes: \[(.*)\]", config)
    assert routes.split(", ") == [f"nats://{host}:6222" for host in hosts]
    assert yaml.safe_load((BASE / "options.yaml").read_text())["nats"]["servers"] == [
        f"nats://{host}:4222" for host in hosts
    ]
    assert "sync_interval: always" in config


def test_the_servers_have_the_limits_of_elsewhere() -> None:
    config = (BASE / "nats.conf").read_text()
    sizes = {name: int(number) for name, number in re.findall(r"^\s*(\w+): (\d+)[MG]B$", config, re.MULTILINE)}
    assert sizes["max_payload"] * 1024**2 == streams.MAX_PAYLOAD_BYTES
    assert sizes["max_file_store"] * 1024**3 >= sum(spec.max_bytes for spec in streams.ALL_STREAMS)
    found = dict(re.findall(r"(max_inflight_\w+): (\d+)", config))
    assert {name: int(number) for name, number in found.items()} == batch_limits()["batch"]
    [claim] = of_kind("StatefulSet")["nats"]["spec"]["volumeClaimTemplates"]
    assert int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi")) > sizes["max_file_store"]
