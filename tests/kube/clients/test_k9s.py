"""k9s starts on a lab and shows pods, nodes and the page that describes one: its screen is read in tmux,
whose pages a person can look at in the same way:

    K9S_CONFIG_DIR=$(mktemp -d) k9s --kubeconfig ~/.kube/podyard --command pods --all-namespaces
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.clients import binaries
from tests.support.waiting import eventually

COLUMNS, LINES = 180, 50
SHOWN_S = 60.0
"""Seconds until a page is there; k9s looks every 2."""
CONFIGURATION = """k9s:
  skipLatestRevCheck: true
  ui: {splashless: true, enableMouse: false}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1"}]}
"""


class Screen:
    """A program in a terminal of tmux."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def run(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout

    def text(self) -> str:
        return self.run("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    async def shows(self, *words: str) -> str:
        """The screen, once all of this is on it."""
        last = ""

        def found() -> str | None:
            nonlocal last
            last = self.text()
            return last if all(word in last for word in words) else None

        try:
            return await eventually(f"{words} on the screen", found, SHOWN_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{last}") from None


@contextlib.contextmanager
def started(command: list[str], environment: dict[str, str], socket: Path) -> Iterator[Screen]:
    """A program on a screen of its own, which ends with the block."""
    screen = Screen(socket)
    settings = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    screen.run("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *settings, *command)
    try:
        yield screen
    finally:
        screen.run("kill-server")


@pytest.fixture
def screen(kubectl: Path, clients_lab: Path, tmp_path: Path) -> Iterator[Screen]:
    if shutil.which("tmux") is None:
        pytest.fail("tmux is needed: a package of Debian and others", pytrace=False)
    given = ("--kubeconfig", str(clients_lab))
    subprocess.run([kubectl, *given, "apply", "-f", "-"], input=DEPLOYMENT, text=True, timeout=60, check=True)
    subprocess.run([kubectl, *given, "rollout", "status", "deployment/web", "--timeout=60s"], timeout=90, check=True)
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    environment = {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(tmp_path),
        "K9S_CONFIG_DIR": str(tmp_path),
        "K9S_LOGS_DIR": str(tmp_path),
    }
    k9s = [str(binaries.find(binaries.K9S)), *given, "--command", "pods", "--all-namespaces"]
    with started(k9s, environment, tmp_path / "tmux") as found:
        yield found


@pytest.mark.timeout(300)
async def test_k9s_shows_pods_nodes_and_a_description(screen: Screen) -> None:
    pods = await screen.shows("pods(all)", "web-", "Running", "1/1")
    assert pods.count("nginx") == 0, "it is the list"
    screen.keys(":nodes", "Enter")
    await screen.shows("<node>", "node-1", "node-3", "Ready")
    screen.keys("d")
    await screen.shows("<describe>", "Conditions:", "MemoryPressure")
    screen.keys("Escape")
    await screen.shows("<node>", "node-1", "node-3")
    screen.keys(":deployments default", "Enter")
    await screen.shows("<deployment>", "web", "2/2")
    screen.keys("d")
    await screen.shows("<describe>", "Pod Template:", "nginx:1", "2 desired")
