"""What of a pod can run as processes of a host."""

from typing import Any

import pytest

from podyard.node_agent.core.programs import Bounds, Faults, Program, Rules, bounds, expand, plan
from tests.support import objects
from tests.unit.node_agent.make import MEBIBYTE

RULES = Rules(namespaces=frozenset({"default"}))
SLEEP = {"command": ["sleep", "1"]}


def pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return objects.pod("web", container=SLEEP if container is None else container, **spec)


def faults(document: dict[str, Any], rules: Rules = RULES) -> tuple[str, ...]:
    found = plan(document, rules)
    assert isinstance(found, Faults)
    return found.told


def program(document: dict[str, Any], rules: Rules = RULES) -> Program:
    found = plan(document, rules)
    assert not isinstance(found, Faults), found
    return found["main"]


def test_a_command_runs_as_nobody_in_a_directory_of_its_own():
    assert program(pod()) == Program(argv=("sleep", "1"), uid=65534, gid=65534)


def test_arguments_follow_the_command_and_references_are_those_of_the_environment():
    found = program(
        pod(
            {
                "command": ["sh", "-c"],
                "args": ["echo $(GREETING) $(NOBODY) $$(GREETING)"],
                "env": [
                    {"name": "WHO", "value": "world"},
                    {"name": "GREETING", "value": "hello $(WHO)"},
                    {"name": "E"},
                ],
                "workingDir": "/srv",
            }
        )
    )
    assert found.argv == ("sh", "-c", "echo hello world $(NOBODY) $(GREETING)")
    assert found.env == {"WHO": "world", "GREETING": "hello world", "E": ""}
    assert found.working_dir == "/srv"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("$A $", "$A $"),
        ("$()", "$()"),
        ("$(A)$(A)", "11"),
    ],
)
def test_references_are_expanded_as_the_kubelet_does(text: str, expanded: str):
    """Source: third_party/forked/golang/expansion/expand_test.go."""
    assert expand(text, {"A": "1"}) == expanded


def test_a_container_names_users_over_its_pod():
    context = {"runAsUser": 1000, "runAsGroup": 1001, "supplementalGroups": [7]}
    found = program(pod({**SLEEP, "securityContext": {"runAsUser": 2000}}, securityContext=context))
    assert (found.uid, found.gid, found.groups) == (2000, 1001, (7,))


@pytest.mark.parametrize(
    ("container", "spec", "told"),
    [
        ({}, {}, "spec.containers[0].command: is missing: without its image nobody knows what to run"),
        (
            {**SLEEP, "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {},
            "spec.containers[0].env[0].valueFrom: the environment of a process has literal values only",
        ),
        (
            {**SLEEP, "envFrom": [{"configMapRef": {"name": "a"}}]},
            {},
            "spec.containers[0].envFrom: the environment of a process has literal values only",
        ),
        (
            {**SLEEP, "livenessProbe": {"exec": {"command": ["true"]}}},
            {},
            "spec.containers[0].livenessProbe: processes are not probed",
        ),
        (SLEEP, {"volumes": [{"name": "v", "emptyDir": {}}]}, "spec.volumes: a process has no volumes of its pod"),
        (SLEEP, {"imagePullSecrets": [{"name": "s"}]}, "spec.imagePullSecrets: no images are pulled"),
        (SLEEP, {"activeDeadlineSeconds": 5}, "spec.activeDeadlineSeconds: is not done for processes"),
        (SLEEP, {"dnsPolicy": "None"}, "spec.dnsPolicy: a process has 'Default'"),
        (SLEEP, {"securityContext": {"fsGroup": 0}}, "spec.securityContext.fsGroup: is not done for processes"),
        (SLEEP, {"somethingNew": [1]}, "spec.somethingNew: is not done for processes"),
        (
            {**SLEEP, "securityContext": {"privileged": True}},
            {},
            "spec.containers[0].securityContext.privileged: is not done for processes",
        ),
        (
            {**SLEEP, "securityContext": {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}}},
            {},
            "spec.containers[0].securityContext.capabilities: a process is given no capabilities",
        ),
        (
            SLEEP,
            {"securityContext": {"runAsUser": 0}},
            "spec.containers[0].securityContext.runAsUser: 0 is root, and allow_root is off",
        ),
        (
            {**SLEEP, "securityContext": {"runAsGroup": 0}},
            {},
            "spec.containers[0].securityContext.runAsGroup: 0 is root, and allow_root is off",
        ),
        (
            SLEEP,
            {"securityContext": {"supplementalGroups": [0]}},
            "spec.containers[0].securityContext.supplementalGroups: 0 is root, and allow_root is off",
        ),
        (
            SLEEP,
            {"initContainers": [{"name": "init", "command": ["true"], "lifecycle": {"preStop": {"sleep": {}}}}]},
            "spec.initContainers[0].lifecycle: is not done for processes",
        ),
    ],
)
def test_what_needs_more_than_a_process_is_refused_with_its_path(container: Any, spec: Any, told: str):
    assert faults(pod(container, **spec)) == (told,)


def test_root_runs_where_it_is_allowed_unless_the_pod_forbids_it():
    allowed = Rules(namespaces=frozenset({"default"}), allow_root=True)
    assert program(pod(securityContext={"runAsUser": 0, "runAsGroup": 0}), allowed).uid == 0
    assert faults(pod(securityContext={"runAsUser": 0, "runAsNonRoot": True}), allowed) == (
        "spec.containers[0].securityContext.runAsNonRoot: is true, and runAsUser is 0",
    )


def test_pods_of_other_namespaces_do_not_run():
    assert faults(objects.pod("web", namespace="prod", container=SLEEP)) == (
        "metadata.namespace: prod is none of those whose pods run here: default",
    )


def test_what_says_nothing_is_not_refused():
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": False}
    spec = {"volumes": [], "hostNetwork": True, "shareProcessNamespace": False, "hostAliases": None, "hostname": ""}
    assert program(pod({**SLEEP, "securityContext": context}, **spec)).argv == ("sleep", "1")


def test_what_an_api_server_fills_in_is_not_refused():
    container = {
        **SLEEP,
        "image": "busybox",
        "imagePullPolicy": "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
    }
    assert program(pod(container, **spec)).argv == ("sleep", "1")


def test_all_faults_are_told_up_to_a_number():
    many = [{"name": str(at), "valueFrom": {"fieldRef": {}}} for at in range(13)]
    found = plan(pod({**SLEEP, "env": many}), RULES)
    assert isinstance(found, Faults)
    assert found.message.count("valueFrom") == 10
    assert found.message.endswith("; and 3 more")


def test_limits_of_containers_and_of_the_pod():
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi", "cpu": "1"}}
    found = bounds(objects.typed_pod("web", container={"resources": resources}))
    assert found["main"] == Bounds(64 * MEBIBYTE, 250, 1000)
    assert found[""] == Bounds(None, 250, None)
    whole = bounds(objects.typed_pod("web", resources={"limits": {"memory": "128Mi", "cpu": "2"}}))
    assert whole[""] == Bounds(128 * MEBIBYTE, 2000, 2000)
