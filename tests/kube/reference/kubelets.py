"""Stands in for the kubelets of the reference's nodes.

Pods bound to them run, end and go, in the words and at the pace of Podyard's virtual nodes. So what differs
between the two is the API's doing, not the nodes'.
"""

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import httpx

from podyard.node_agent.core.annotations import EXIT_CODE, RUN_DURATION
from podyard.objects.go_syntax import parse_duration
from podyard.objects.times import rfc3339, rfc3339_micro, seconds_of

LOOK_EVERY_S: Final = 0.1
JOB_RUNS_S: Final = 5.0
"""How long pods of a Job run if they do not say; others run until they are ended."""
RENEW_EVERY_S: Final = 10.0
"""As a kubelet renews its lease."""
LEASE_S: Final = 40
"""As long as a kubelet's lease is good."""
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
PASSES: Final = frozenset({httpx.codes.NOT_FOUND, httpx.codes.CONFLICT})
"""Somebody was faster: the next look shows it."""
CALM: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)

Json = Mapping[str, Any]


@contextmanager
def running(client: httpx.Client, nodes: Sequence[Json]) -> Generator[None]:
    """Nodes of these manifests, ready when the block begins, and what runs on them.

    :raises AssertionError: at the end of the block, if the API refused what they did
    """
    kubelets = _Kubelets(client)
    for node in nodes:
        kubelets.register(node)
    kubelets.until_schedulable()
    thread = threading.Thread(target=kubelets.run, name="kubelets")
    thread.start()
    try:
        yield
    finally:
        kubelets.ended.set()
        thread.join()
    assert not kubelets.faults, "\n".join(kubelets.faults)


class _Kubelets:
    """All of them in one."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._names: list[str] = []
        self._renewed_at = 0.0
        self.ended = threading.Event()
        self.faults: list[str] = []

    def register(self, node: Json) -> None:
        """Make a node, and report it ready."""
        name = node["metadata"]["name"]
        self._names.append(name)
        self._must("POST", "/api/v1/nodes", json=node)
        at = _now()
        conditions = [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": at,
                "lastTransitionTime": at,
            }
            for kind, status, reason, message in CALM
        ]
        status = {"status": {**node["status"], "conditions": conditions}}
        self._must("PATCH", f"/api/v1/nodes/{name}/status", json=status, headers=MERGE)
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "acquireTime": _micro(), "renewTime": _micro()}
        self._must("POST", LEASES, json={"metadata": {"name": name}, "spec": spec})

    def until_schedulable(self, within_s: float = 60) -> None:
        """The node lifecycle controller takes the taint of a node that is not ready away."""
        deadline = time.monotonic() + within_s
        while any("taints" in one.get("spec", ()) for one in self._list("/api/v1/nodes")):
            assert time.monotonic() < deadline, "nodes keep the taint of those that are not ready"
            time.sleep(LOOK_EVERY_S)

    def run(self) -> None:
        """Look at all pods again and again, until the end."""
        while not self.ended.wait(LOOK_EVERY_S):
            try:
                self._renew()
                for pod in self._list("/api/v1/pods"):
                    self._see(pod)
            except (httpx.HTTPError, AssertionError) as error:
                self.faults.append(f"{type(error).__name__}: {error}")

    def _renew(self) -> None:
        if time.monotonic() - self._renewed_at < RENEW_EVERY_S:
            return
        self._renewed_at = time.monotonic()
        for name in self._names:
            self._do("PATCH", f"{LEASES}/{name}", json={"spec": {"renewTime": _micro()}}, headers=MERGE)

    def _see(self, pod: Json) -> None:
        """Do the next thing for a pod, if there is any."""
        metadata, status = pod["metadata"], pod["status"]
        if not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in metadata:
            now = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self._do("DELETE", _path(metadata), json={"kind": "DeleteOptions", "apiVersion": "v1", **now})
        elif status["phase"] == "Pending":
            self._tell(metadata, _runs(pod))
        elif status["phase"] == "Running" and time.time() - seconds_of(status["startTime"]) >= _runs_s(pod):
            self._tell(metadata, _ended(pod))

    def _tell(self, metadata: Json, status: Json) -> None:
        self._do("PATCH", f"{_path(metadata)}/status", json={"status": status}, headers=MERGE)

    def _list(self, path: str) -> list[dict[str, Any]]:
        return self._must("GET", path)["items"]

    def _must(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self._client.request(method, path, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _do(self, method: str, path: str, **more: Any) -> None:
        answer = self._client.request(method, path, **more)
        assert answer.is_success or answer.status_code in PASSES, f"{method} {path}: {answer.text}"


def _path(metadata: Json) -> str:
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _runs(pod: Json) -> dict[str, Any]:
    """The status of a pod all of whose containers run."""
    at = _now()
    state = {"running": {"startedAt": at}}
    return {
        "phase": "Running",
        "startTime": at,
        "conditions": _conditions(pod, at, "True", ""),
        "containerStatuses": [_container(one, state, ready=True) for one in pod["spec"]["containers"]],
    }


def _ended(pod: Json) -> dict[str, Any]:
    """The status of a pod whose containers have ended by themselves."""
    code = int(pod["metadata"].get("annotations", {}).get(EXIT_CODE, "0"))
    at, phase = _now(), "Failed" if code else "Succeeded"
    end = {"exitCode": code, "reason": "Error" if code else "Completed"}
    state = {"terminated": {**end, "startedAt": pod["status"]["startTime"], "finishedAt": at}}
    return {
        "phase": phase,
        "conditions": _conditions(pod, at, "False", "PodFailed" if code else "PodCompleted"),
        "containerStatuses": [_container(one, state, ready=False) for one in pod["spec"]["containers"]],
    }


def _conditions(pod: Json, at: str, ready: str, reason: str) -> list[dict[str, Any]]:
    """In the order of those of a virtual node: `podyard.node_agent.core.pod_facts`."""
    scheduled = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    initialized = {"type": "Initialized", "status": "True", "lastTransitionTime": pod["status"].get("startTime", at)}
    told = {"status": ready, "lastTransitionTime": at, **({"reason": reason} if reason else {})}
    return [initialized, *({"type": kind, **told} for kind in ("Ready", "ContainersReady")), *scheduled]


def _container(container: Json, state: Json, *, ready: bool) -> dict[str, Any]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "lastState": {},
        "state": state,
    }


def _runs_s(pod: Json) -> float:
    asked = pod["metadata"].get("annotations", {}).get(RUN_DURATION)
    if asked is not None:
        return parse_duration(asked)
    owners = pod["metadata"].get("ownerReferences", ())
    return JOB_RUNS_S if any(one["kind"] == "Job" for one in owners) else float("inf")


def _now() -> str:
    return rfc3339(time.time())


def _micro() -> str:
    return rfc3339_micro(time.time())
