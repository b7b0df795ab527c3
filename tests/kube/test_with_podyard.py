"""What kubectl does with a lab that its own API server is no measure of: Podyard's command as its plugin, and
definitions that are served at once, or say why not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LIMIT_S = 60


def crd(kind: str, plural: str) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": kind, "plural": plural, "shortNames": ["wdg"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.with.example.com"},
        "spec": {"group": "with.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Kubectl:
    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._program = program
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        # the lab's own folder says where the bus is
        state = {"PODYARD_STATE_DIR": str(kubeconfig.parent), "NO_COLOR": "1"}
        self._environment = {**os.environ, **state, "KUBECONFIG": str(kubeconfig), "PATH": path}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._program), *words],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def good(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout


def test_it_finds_podyards_command_as_a_plugin(kubectl: Path, lab_kubeconfig: Path) -> None:
    asked = Kubectl(kubectl, lab_kubeconfig)
    asked.good("run", "explained", "--image=registry.example/web:1")
    assert "explained" in asked.good("podyard", "explain", "pod", "explained")
    refused = asked.run("podyard", "explain", "pod", "explained", "--context", "lab")
    assert refused.returncode != 0
    assert "--nats" in refused.stderr
    asked.good("delete", "pod", "explained", "--now")


def test_it_waits_for_a_definition_until_it_is_served(kubectl: Path, lab_kubeconfig: Path) -> None:
    asked = Kubectl(kubectl, lab_kubeconfig)
    established = ("wait", "--for=condition=established", "--timeout=20s")
    asked.good("apply", "--filename", "-", stdin=json.dumps(crd("Widget", "widgets")))
    asked.good(*established, "crd/widgets.with.example.com")
    # of two that are made in the same second the first by name counts as older
    asked.good("apply", "--filename", "-", stdin=json.dumps(crd("Wodget", "wodgets")))
    path = "jsonpath={.status.conditions[?(@.type=='NamesAccepted')].reason}"
    assert asked.good("get", "crd", "wodgets.with.example.com", "--output", path) == "ShortNamesConflict"
    asked.good("delete", "crd", "widgets.with.example.com")
    asked.good(*established, "crd/wodgets.with.example.com")
    asked.good("delete", "crd", "wodgets.with.example.com")


def test_it_shows_that_rbac_is_not_enforced(kubectl: Path, lab_kubeconfig: Path) -> None:
    asked = Kubectl(kubectl, lab_kubeconfig)
    made = asked.run("create", "clusterrole", "viewer-of-pods", "--verb=get", "--resource=pods")
    assert made.returncode == 0, made.stderr
    assert "Warning: RBAC objects are stored and not enforced here" in made.stderr
    asked.good("delete", "clusterrole", "viewer-of-pods")
