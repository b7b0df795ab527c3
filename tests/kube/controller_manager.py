"""Kubernetes' own controller manager beside a lab: how it is started, and what of its log is a fault.

`workloads` does not run; all controllers do but those that go by what nobody writes here.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from podyard.bench.programs import kubernetes
from podyard.runtime import ports
from tests.support import foreign_servers
from tests.support.certificates import Authority

SERVICES: Final = "api,kube_api,queue,scheduler,binder,node_agent"
"""All but `workloads`, whose place it takes, and the descheduler."""
HOST: Final = "127.0.0.1"
LEFT_OUT: Final = (
    # nodes send heartbeats here, and no leases; workloads says which are lost, and ends pods by taints
    "node-lifecycle-controller",
    "taint-eviction-controller",
    # what quotas count is a fact of its own
    "resourcequota-controller",
    # the binder binds volumes, and nothing is attached
    "persistentvolume-binder-controller",
    "persistentvolume-attach-detach-controller",
    # what it cleans up an API server counts
    "legacy-serviceaccount-token-cleaner-controller",
)
CONTROLLERS: Final = ",".join(("*", *(f"-{name}" for name in LEFT_OUT)))
FAULT: Final = re.compile(r"^[EF]\d{4} ")
"""How klog begins a line of the level error or fatal."""
ITS_OWN: Final = (
    # of its flags, at every start. Source: component-base/metrics/options.go
    r"The manifest file is empty, ignoring\.",
    # it has not seen yet what it wrote, and looks again. Source: pkg/controller/util/consistency
    "is not as new as written version",
    # the same, found out by the API: it looks again
    "the object has been modified; please apply your changes to the latest version and try again",
)
"""What is found in lines that it may write of an API server of Kubernetes, too."""


@contextmanager
def running(folder: Path, kubeconfig: Path) -> Generator[Path]:
    """One that leads, for as long as the block runs; the block gets its log.

    :param folder: takes its certificates and its log
    :raises NoProgramError: it cannot be had
    :raises AssertionError: it does not become ready, with the end of its log
    """
    program = kubernetes.find(kubernetes.CONTROLLER_MANAGER)
    authority = Authority(folder)
    server = authority.issue("controller-manager", hosts=(HOST,))
    accounts = authority.issue("service-accounts")
    port = ports.free_port()
    log = folder / "kube-controller-manager.log"
    words = [
        program,
        f"--kubeconfig={kubeconfig}",
        "--kube-api-content-type=application/json",
        f"--controllers={CONTROLLERS}",
        "--leader-elect=true",
        f"--service-account-private-key-file={accounts.key}",
        f"--root-ca-file={authority.file}",
        # people wait for what it does: ten times as often as usual
        "--horizontal-pod-autoscaler-sync-period=2s",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        "--v=1",
    ]
    ready = f"https://{HOST}:{port}/healthz"
    with foreign_servers.running(kubernetes.CONTROLLER_MANAGER, words, ready, log, authority.file):
        yield log


def faults(log: Path) -> list[str]:
    """Lines of errors, in order, but for those of `ITS_OWN`."""
    lines = (line for line in log.read_text(errors="replace").splitlines() if FAULT.match(line))
    return [line for line in lines if not any(re.search(one, line) for one in ITS_OWN)]
