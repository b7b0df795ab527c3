"""helm installs, upgrades, rolls back and uninstalls a chart on a lab: by server-side apply, waiting for what
it applied, its releases kept in Secrets."""

import base64
import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kube.clients import binaries

CHART = Path(__file__).parent / "chart"
WAIT = ("--wait", "--timeout", "90s")
RELEASE = "web"
KINDS = "deployments,services,configmaps,secrets,serviceaccounts,gauges.clients.example.com"


class Installed:
    """helm and kubectl in a namespace of a lab."""

    def __init__(self, helm: Path, kubectl: Path, kubeconfig: Path, home: Path, namespace: str) -> None:
        self._programs = {"helm": helm, "kubectl": kubectl}
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(kubeconfig)}
        self.namespace = namespace

    def run(self, name: str, *words: str, fails: bool = False) -> str:
        """What a program prints."""
        command = [self._programs[name], "--namespace", self.namespace, *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=150, check=False)
        assert (done.returncode != 0) is fails, f"{name} {' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout

    def helm(self, *words: str, fails: bool = False) -> str:
        return self.run("helm", *words, fails=fails)

    def told(self, *words: str) -> Any:
        """What helm prints as JSON."""
        return json.loads(self.helm(*words, "--output", "json"))

    def found(self, *words: str) -> Any:
        """What kubectl gets."""
        return json.loads(self.run("kubectl", "get", *words, "--output", "json"))

    def names(self, kinds: str) -> list[str]:
        """What there is of the release, and of nobody else."""
        items = self.found(kinds, "--selector", f"app.kubernetes.io/instance={RELEASE}")["items"]
        return sorted(f"{one['kind']}/{one['metadata']['name']}" for one in items)


@pytest.fixture
def installed(kubectl: Path, clients_lab: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Installed:
    namespace = request.node.name.removeprefix("test_").replace("_", "-")[:60].rstrip("-")
    return Installed(binaries.find(binaries.HELM), kubectl, clients_lab, tmp_path, namespace)


def test_a_chart_lives(installed: Installed) -> None:
    done = installed.helm("install", RELEASE, str(CHART), "--create-namespace", *WAIT)
    assert "web says hello." in done
    whole = [f"{kind}/web" for kind in ("ConfigMap", "Deployment", "Gauge", "Secret", "Service", "ServiceAccount")]
    assert installed.names(KINDS) == whole
    status = installed.found("deployment", RELEASE)["status"]
    assert (status["readyReplicas"], status["updatedReplicas"]) == (2, 2), "it has waited"
    assert installed.found("jobs")["items"] == [], "the hook has run, and was deleted"
    assert managers(installed, "deployment") >= {("helm", "Apply")}
    [listed] = installed.told("list")
    assert (listed["name"], listed["revision"], listed["status"], listed["chart"]) == (
        "web",
        "1",
        "deployed",
        "shop-1.0.0",
    )
    assert installed.told("status", RELEASE)["info"]["status"] == "deployed"
    assert "kind: Gauge" in installed.helm("get", "manifest", RELEASE)

    installed.helm("upgrade", RELEASE, str(CHART), "--set", "greeting=hi,more=yes,replicas=3", *WAIT)
    assert installed.found("configmap", RELEASE)["data"] == {"greeting": "hi", "more": "yes"}
    assert installed.found("deployment", RELEASE)["status"]["readyReplicas"] == 3
    assert installed.found("gauges.clients.example.com", RELEASE)["spec"]["level"] == 3

    installed.helm("rollback", RELEASE, "1", *WAIT)
    assert installed.found("configmap", RELEASE)["data"] == {"greeting": "hello"}, "what was added has gone"
    assert installed.found("deployment", RELEASE)["status"]["readyReplicas"] == 2
    history = installed.told("history", RELEASE)
    assert [(one["revision"], one["status"]) for one in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]
    assert history[-1]["description"] == "Rollback to 1"

    installed.helm("uninstall", RELEASE, *WAIT)
    assert (installed.names(KINDS), installed.told("list")) == ([], [])
    assert installed.found("secrets", "--selector", "owner=helm")["items"] == []


def managers(installed: Installed, kind: str) -> set[tuple[str, str]]:
    """Who manages fields of an object of the release, and how."""
    found = installed.found(kind, RELEASE, "--show-managed-fields")
    return {(one["manager"], one["operation"]) for one in found["metadata"]["managedFields"]}


def test_a_release_is_a_secret(installed: Installed) -> None:
    installed.helm("install", RELEASE, str(CHART), "--create-namespace", *WAIT)
    [kept] = installed.found("secrets", "--field-selector", "type=helm.sh/release.v1")["items"]
    metadata = kept["metadata"]
    assert metadata["name"] == "sh.helm.release.v1.web.v1"
    labels = {name: metadata["labels"][name] for name in ("name", "owner", "status", "version")}
    assert labels == {"name": "web", "owner": "helm", "status": "deployed", "version": "1"}
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(kept["data"]["release"]))))
    assert (release["name"], release["version"], release["chart"]["metadata"]["name"]) == ("web", 1, "shop")
    password = base64.b64decode(installed.found("secret", RELEASE)["data"]["password"])
    assert password == b"hidden"


def test_a_hook_that_fails_stops_the_upgrade(installed: Installed) -> None:
    installed.helm("install", RELEASE, str(CHART), "--create-namespace", *WAIT)
    said = installed.helm("upgrade", RELEASE, str(CHART), "--set", "hookSucceeds=false,replicas=5", *WAIT, fails=True)
    assert "pre-upgrade hooks failed" in said
    assert installed.found("deployment", RELEASE)["spec"]["replicas"] == 2
    assert [one["status"] for one in installed.told("history", RELEASE)] == ["deployed", "failed"]
    installed.helm("upgrade", RELEASE, str(CHART), "--set", "replicas=1", "--rollback-on-failure", *WAIT)
    assert installed.found("deployment", RELEASE)["status"]["readyReplicas"] == 1


def test_what_somebody_else_manages_is_a_conflict(installed: Installed) -> None:
    """Told in helm's words, and overruled when it is forced."""
    installed.helm("install", RELEASE, str(CHART), "--create-namespace", *WAIT)
    other = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": RELEASE}, "data": {"greeting": "mine"}}
    )
    patch = ("patch", "configmap", RELEASE, "--type=merge", "--patch", other, "--field-manager=somebody")
    installed.run("kubectl", *patch)
    said = installed.helm("upgrade", RELEASE, str(CHART), "--set", "greeting=hi", *WAIT, fails=True)
    assert "conflict" in said
    assert "somebody" in said
    installed.helm("upgrade", RELEASE, str(CHART), "--set", "greeting=hi", "--force-conflicts", *WAIT)
    assert installed.found("configmap", RELEASE)["data"]["greeting"] == "hi"


def test_a_dry_run_asks_and_writes_nothing(installed: Installed) -> None:
    said = installed.helm("install", RELEASE, str(CHART), "--create-namespace", "--dry-run=server")
    assert "kind: Deployment" in said
    assert installed.told("list") == []
