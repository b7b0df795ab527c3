"""Kubernetes' own control plane with its store, on free ports, in a folder: what Podyard's answers are
compared with.

Its nodes are those of a lab: `kubelets` stands in for what runs on them.
"""

import ssl
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import yaml

from podyard.bench.programs import kubernetes
from podyard.cli.lab.nodes import virtual_node
from podyard.runtime import ports
from tests.kube.reference import kubelets
from tests.support import foreign_servers
from tests.support.certificates import Authority, Issued

TOKEN: Final = "whoever-has-this-may-do-anything"
HOST: Final = "127.0.0.1"
SERVICE_ADDRESSES: Final = "10.96.0.0/16"
CONTROLLERS: Final = "*,-root-ca-certificate-publisher-controller"
"""All but the one that puts a ConfigMap into each namespace, a moment after it was made: lists would have it
or not."""
NODES: Final = 3
"""As many as `lab_kubeconfig` asks `podyard up` for."""


class ControlPlane(NamedTuple):
    """Where it is, and how one is let in."""

    url: str
    kubeconfig: Path
    authority: Path
    server: Issued
    """What its programs show when they are called."""

    def client(self) -> httpx.Client:
        """A connection of somebody who may do anything."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=ssl.create_default_context(cafile=str(self.authority)),
            timeout=30,
        )


@contextmanager
def running(folder: Path, nodes: int = NODES) -> Generator[ControlPlane]:
    """A whole one with an empty store and nodes that are ready, for as long as the block runs.

    :param folder: takes its data and logs
    :raises NoProgramError: one of its programs cannot be had
    :raises AssertionError: one of them does not become ready, with the end of its log
    """
    found = {name: kubernetes.find(name) for name in (kubernetes.CONTROLLER_MANAGER, kubernetes.SCHEDULER)}
    manager, scheduler = ports.free_ports(2)
    with api_server(folder) as plane, ExitStack() as stack:
        for name, port, more in (
            (kubernetes.CONTROLLER_MANAGER, manager, (f"--controllers={CONTROLLERS}",)),
            (kubernetes.SCHEDULER, scheduler, ()),
        ):
            works = (f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", *more)
            words = [found[name], *works, *_serves(plane.server, port)]
            ready = f"https://{HOST}:{port}/healthz"
            stack.enter_context(foreign_servers.running(name, words, ready, folder / f"{name}.log", plane.authority))
        manifests = [virtual_node(number) for number in range(1, nodes + 1)]
        client = stack.enter_context(plane.client())
        stack.enter_context(kubelets.running(client, manifests))
        yield plane


@contextmanager
def api_server(folder: Path) -> Generator[ControlPlane]:
    """The API server and its store alone: nobody acts on what is stored.

    :param folder: takes its data and logs
    :raises NoProgramError: one of its programs cannot be had
    :raises AssertionError: one of them does not become ready, with the end of its log
    """
    found = {name: kubernetes.find(name) for name in (kubernetes.ETCD, kubernetes.API_SERVER)}
    authority = Authority(folder)
    server = authority.issue("server", hosts=(HOST, "localhost"))
    accounts = authority.issue("service-accounts")
    store, peer, port = ports.free_ports(3)
    plane = ControlPlane(f"https://{HOST}:{port}", folder / "kubeconfig", authority.file, server)
    plane.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(plane)), encoding="utf-8")
    at = f"http://{HOST}:{store}"
    keeps = [found[kubernetes.ETCD], *_etcd(folder, at, f"http://{HOST}:{peer}")]
    serves = [found[kubernetes.API_SERVER], f"--etcd-servers={at}", *_api_server(folder, accounts)]
    serves += _serves(server, port)
    with (
        foreign_servers.running(kubernetes.ETCD, keeps, f"{at}/health", folder / "etcd.log"),
        foreign_servers.running(
            kubernetes.API_SERVER, serves, f"{plane.url}/readyz", folder / "kube-apiserver.log", authority.file
        ),
    ):
        yield plane


def _etcd(folder: Path, here: str, others: str) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={others}",
        f"--initial-advertise-peer-urls={others}",
        f"--initial-cluster=default={others}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _api_server(folder: Path, accounts: Issued) -> list[str]:
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},admin,admin,system:masters\n", encoding="utf-8")
    return [
        f"--token-auth-file={tokens}",
        f"--service-account-key-file={accounts.certificate}",
        f"--service-account-signing-key-file={accounts.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        # nothing here lets a pod in by a token
        "--disable-admission-plugins=ServiceAccount",
    ]


def _serves(server: Issued, port: int) -> list[str]:
    files = (f"--tls-cert-file={server.certificate}", f"--tls-private-key-file={server.key}")
    return [f"--bind-address={HOST}", f"--secure-port={port}", *files]


def _kubeconfig(plane: ControlPlane) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "reference",
        "contexts": [{"name": "reference", "context": {"cluster": "reference", "user": "admin"}}],
        "clusters": [
            {"name": "reference", "cluster": {"server": plane.url, "certificate-authority": str(plane.authority)}}
        ],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
    }
