"""Kubernetes' own controller manager runs the workloads of a lab, `workloads` off: its work is done, and its
log has no error.

`pytest tests/kube/test_controller_manager.py --churn-s 600` goes on with changes for ten minutes.
"""

import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from tests.e2e import played
from tests.kube import controller_manager
from tests.kube.conftest import kubeconfig_of
from tests.support.holding import held

NODES: Final = 3
WITHIN_S: Final = 90
"""Of each wait: a CronJob begins with the minute."""
LOOK_S: Final = 0.5
CHURN_PAUSE_S: Final = 5.0

Document = dict[str, Any]


class Person:
    """Somebody with kubectl."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        self._words = (str(kubectl), f"--kubeconfig={kubeconfig}")
        self.kubeconfig = kubeconfig

    def says(self, *words: str, stdin: str = "") -> str:
        """What kubectl prints; it must not fail."""
        done = subprocess.run(
            [*self._words, *words], check=False, input=stdin, capture_output=True, text=True, timeout=WITHIN_S + 30
        )
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, *documents: Document) -> None:
        self.says("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    def items(self, resource: str, *words: str) -> list[Document]:
        """All of a resource."""
        return json.loads(self.says("get", resource, "-o", "json", *words))["items"]

    def names(self, resource: str, *words: str) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.items(resource, *words))

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Look until it is so."""
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline, f"it never came: {what}\n{self.says('get', 'all,events', '-A')}"
            time.sleep(LOOK_S)

    def running(self, label: str) -> int:
        """How many pods with this label run and are not deleted."""
        found = self.items("pods", "-l", f"app={label}")
        return sum(
            one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"] for one in found
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The kubeconfig of a lab without `workloads`."""
    folder = tmp_path_factory.mktemp("lab")
    async with held(played.lab(["up", "--nodes", str(NODES), "--services", controller_manager.SERVICES], folder)):
        yield await kubeconfig_of(folder)


def template(name: str, image: str = "web:1", runs_s: int = 0, **spec: Any) -> Document:
    metadata: Document = {"labels": {"app": name}}
    if runs_s:
        metadata["annotations"] = {"podyard.io/run-duration": f"{runs_s}s"}
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "50m"}}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def workload(kind: str, name: str, **spec: Any) -> Document:
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": template(name), **spec},
    }


def deployment(replicas: int = 3, image: str = "web:1") -> Document:
    return workload("Deployment", "web", replicas=replicas, template=template("web", image))


def stateful_set() -> Document:
    return workload("StatefulSet", "db", replicas=3, serviceName="db")


def job(name: str, completions: int = 3) -> Document:
    spec = {"completions": completions, "parallelism": 2, "template": template(name, runs_s=1, restartPolicy="Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def cron_job() -> Document:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job("tick", 1)["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}


def budget() -> Document:
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def autoscaler() -> Document:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
        "minReplicas": 2,
        "maxReplicas": 4,
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaled"},
        "spec": spec,
    }


def config(name: str, *owners: Document) -> Document:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
        | {key: one["metadata"][key] for key in ("name", "uid")}
        for one in owners
    ]
    metadata: Document = {"name": name, **({"ownerReferences": references} if references else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.timeout(3600)
def test_it_does_its_work_and_has_nothing_to_complain_of(
    kubectl: Path, lab: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    churn_s: float = request.config.getoption("--churn-s")
    person = Person(kubectl, lab)
    with controller_manager.running(tmp_path, lab) as log:
        _rolls_out(person)
        _runs_everything(person)
        _counts_budgets(person)
        _scales(person)
        _collects(person)
        _empties_namespaces(person)
        _churns(person, churn_s)
        _ticks(person)
        found = controller_manager.faults(log)
    assert not found, "\n".join(found)


def _rolls_out(person: Person) -> None:
    person.apply(deployment())
    person.says("rollout", "status", "deployment/web", f"--timeout={WITHIN_S}s")
    person.apply(deployment(image="web:2"))
    person.says("rollout", "status", "deployment/web", f"--timeout={WITHIN_S}s")
    assert len(person.items("replicasets", "-l", "app=web")) == 2
    person.says("rollout", "undo", "deployment/web")
    person.says("rollout", "status", "deployment/web", f"--timeout={WITHIN_S}s")
    images = {one["spec"]["containers"][0]["image"] for one in person.items("pods", "-l", "app=web")}
    assert "web:1" in images


def _runs_everything(person: Person) -> None:
    person.apply(stateful_set(), workload("DaemonSet", "logs"), job("sum"), cron_job())
    person.says("rollout", "status", "statefulset/db", f"--timeout={WITHIN_S}s")
    assert person.names("pods", "-l", "app=db") == ["db-0", "db-1", "db-2"]
    person.says("rollout", "status", "daemonset/logs", f"--timeout={WITHIN_S}s")
    places = {one["spec"]["nodeName"] for one in person.items("pods", "-l", "app=logs")}
    assert len(places) == NODES
    person.says("wait", "--for=condition=Complete", "job/sum", f"--timeout={WITHIN_S}s")
    assert person.items("jobs", "--field-selector=metadata.name=sum")[0]["status"]["succeeded"] == 3
    person.says("delete", "pod", "db-1")
    person.until("db-1 is made again", lambda: person.running("db") == 3)


def _counts_budgets(person: Person) -> None:
    person.apply(budget())

    def counted() -> bool:
        status = person.items("poddisruptionbudgets")[0].get("status", {})
        return (status.get("disruptionsAllowed"), status.get("currentHealthy")) == (1, 3)

    person.until("the budget allows one disruption", counted)


def _scales(person: Person) -> None:
    person.apply(workload("Deployment", "scaled", replicas=1), autoscaler())
    person.until("the autoscaler has two replicas made", lambda: person.running("scaled") == 2)
    person.says("delete", "hpa/scaled", "deployment/scaled")
    person.until("they are collected", lambda: not person.items("pods", "-l", "app=scaled"))


def _collects(person: Person) -> None:
    """What goes with its owner, after it, before it, or without it."""
    person.apply(config("owner"))
    owner = next(one for one in person.items("configmaps") if one["metadata"]["name"] == "owner")
    person.apply(config("owned", owner))
    person.says("delete", "configmap", "owner", "--cascade=foreground")
    person.until("both are gone", lambda: not {"owner", "owned"} & set(person.names("configmaps")))

    person.says("delete", "deployment", "web", "--cascade=orphan")
    (kept, *_) = [one for one in person.items("replicasets", "-l", "app=web") if one["spec"]["replicas"]]
    assert "ownerReferences" not in kept["metadata"]
    person.apply(deployment())
    person.says("rollout", "status", "deployment/web", f"--timeout={WITHIN_S}s")
    name = kept["metadata"]["name"]
    adopted = [one for one in person.items("replicasets", "-l", "app=web") if one["metadata"]["name"] == name]
    assert adopted[0]["metadata"]["ownerReferences"][0]["kind"] == "Deployment", "it is adopted"

    person.says("delete", "job", "sum", "--cascade=foreground")
    assert not person.items("pods", "-l", "app=sum")


def _empties_namespaces(person: Person) -> None:
    person.says("create", "namespace", "shop")
    inside = ("--namespace", "shop")
    documents = (deployment(2), config("settings"), budget())
    person.says("apply", *inside, "-f", "-", stdin=yaml.safe_dump_all(documents))
    person.says("rollout", "status", "deployment/web", *inside, f"--timeout={WITHIN_S}s")
    person.says("delete", "namespace", "shop", f"--timeout={WITHIN_S}s")
    assert "shop" not in person.names("namespaces")
    assert not person.items("pods,configmaps,deployments", *inside)


def _churns(person: Person, seconds: float) -> None:
    """Change things for a while."""
    deadline, step = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        step += 1
        person.apply(deployment(replicas=2 + step % 4, image=f"web:{step % 3}"), job(f"sum-{step}"))
        person.says("delete", "pod", f"db-{step % 3}")
        person.says("rollout", "status", "deployment/web", f"--timeout={WITHIN_S}s")
        person.says("wait", "--for=condition=Complete", f"job/sum-{step}", f"--timeout={WITHIN_S}s")
        person.says("delete", "job", f"sum-{step}", "--cascade=background")
        person.until("the StatefulSet is whole", lambda: person.running("db") == 3)
        time.sleep(CHURN_PAUSE_S)
    if step:
        print(f"{step} rounds in {seconds:g} s")


def _ticks(person: Person) -> None:
    def ran() -> bool:
        found = person.items("jobs")
        return any(one["metadata"]["name"].startswith("tick-") and one["status"].get("succeeded") for one in found)

    person.until("the CronJob has had a job done", ran)
