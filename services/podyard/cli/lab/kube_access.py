"""How kubectl and its like get into a lab: a certificate, a token and a kubeconfig, made once in its data
directory.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from podyard.cli.lab.plan import Planned
from podyard.cli.security import keys, kube_files
from podyard.runtime import certificates, ports

SERVICE: Final = kube_files.KUBE_API
FOLDER: Final = "kube"
KUBECONFIG: Final = kube_files.KUBECONFIG
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_TOKENS: Final = "tokens.csv"
_HOSTS: Final = ("localhost", "127.0.0.1")


class Endpoint(NamedTuple):
    """One instance of the Kubernetes API."""

    instance: str
    port: int


class KubeAccess(NamedTuple):
    """What a lab gives to the Kubernetes API and to who asks it."""

    folder: Path
    endpoints: tuple[Endpoint, ...]

    @property
    def kubeconfig(self) -> str:
        """Path of the file; empty if no instance runs."""
        return str(self.folder / KUBECONFIG) if self.endpoints else ""

    @property
    def url(self) -> str:
        """Where the first instance answers; empty if none runs."""
        return f"https://{ports.LOOPBACK}:{self.endpoints[0].port}" if self.endpoints else ""

    def environment(self, instance: str) -> dict[str, str]:
        """Settings of one instance; none of other services."""
        for one in self.endpoints:
            if one.instance == instance:
                return {
                    "PODYARD_KUBE_API_PORT": str(one.port),
                    "PODYARD_KUBE_API_TLS_CERT_FILE": str(self.folder / _CERTIFICATE),
                    "PODYARD_KUBE_API_TLS_PRIVATE_KEY_FILE": str(self.folder / _KEY),
                    "PODYARD_KUBE_API_TOKEN_AUTH_FILE": str(self.folder / _TOKENS),
                    "PODYARD_KUBE_API_HOST_NAMES": "localhost",
                }
        return {}


def prepare(directory: Path, planned: tuple[Planned, ...], name: str, now: float) -> KubeAccess:
    """Make what is not there yet, for the instances that a lab runs; nothing if it runs none.

    A token that is there stays: who has it goes on. The certificate is made anew at each start.

    :param directory: the lab's data
    :param name: the lab's, for the context of the kubeconfig
    :param now: seconds since 1970, UTC
    """
    folder = directory / FOLDER
    instances = [one.instance for one in planned if one.service == SERVICE]
    if not instances:
        return KubeAccess(folder, ())
    access = KubeAccess(folder, tuple(map(Endpoint, instances, ports.free_ports(len(instances)))))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pair = certificates.self_signed(_HOSTS, datetime.fromtimestamp(now, UTC))
    _write(folder / _CERTIFICATE, pair.chain)
    _write(folder / _KEY, pair.key)
    token = _token(folder / _TOKENS)
    _write(folder / KUBECONFIG, kube_files.kubeconfig(access.url, pair.chain, token, name or "podyard"))
    return access


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    keys.write_secret(path, content)


def _token(path: Path) -> str:
    try:
        known = path.read_text().partition(",")[0]
    except FileNotFoundError:
        known = ""
    if known:
        return known
    token = kube_files.new_token()
    _write(path, kube_files.token_line(token))
    return token
