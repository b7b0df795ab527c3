"""By what the Kubernetes API is served, and what gets people in: a certificate, a token, a kubeconfig.

    identities/kube_api/https.crt, https.key    the server's certificate and key
                        tokens.csv              who may come with which token
    identities/person/kubeconfig                for kubectl: where it is, whom to believe, the token

Whoever replaces them cuts off who has the kubeconfig before.
"""

import base64
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from podyard.cli.errors import InputError
from podyard.cli.security import identities, keys
from podyard.cli.security.authority import Authority, hosts_of

KUBE_API: Final = "kube_api"
CERTIFICATE: Final = "https.crt"
KEY: Final = "https.key"
TOKENS: Final = "tokens.csv"
KUBECONFIG: Final = "kubeconfig"
USER: Final = "podyard"
GROUP: Final = "podyard:people"
NAME: Final = "podyard"
"""Of cluster, user and context in the kubeconfig."""
URL: Final = "https://localhost:6443"
HOSTS: Final = ("localhost", "127.0.0.1", "::1", "kube-api")
"""Names of every instance: this machine, and those in docker-compose.yml and in the manifests."""


def make(place: Path, signer: Authority, url: str = URL, hosts: Sequence[str] = ()) -> None:
    """Write all of them anew, for the identities that a directory has.

    :param url: where people reach it
    :param hosts: further names and addresses of it
    :raises InputError: the URL is none
    """
    host = urlsplit(url).hostname
    if not url.startswith("https://") or not host:
        raise InputError(f"{url}: it is no URL of HTTPS", f"for example {URL}")
    issued = signer.server(tuple(dict.fromkeys((*HOSTS, host, *hosts))))
    token = new_token()
    own = place / "identities" / KUBE_API
    _put(own / KEY, issued.key)
    _put(own / CERTIFICATE, issued.certificate)
    _put(own / TOKENS, token_line(token))
    found = kubeconfig(url, signer.issued.certificate, token, NAME)
    _put(place / "identities" / identities.PERSON / KUBECONFIG, found)


def renew(place: Path, signer: Authority) -> None:
    """Make all of them anew, for the same names and the same URL."""
    document: Any = msgspec.json.decode((place / "identities" / identities.PERSON / KUBECONFIG).read_bytes())
    hosts = hosts_of((place / "identities" / KUBE_API / CERTIFICATE).read_bytes())
    make(place, signer, str(document["clusters"][0]["cluster"]["server"]), hosts)


def settings(folder: Path) -> dict[str, str]:
    """Variables of the service.

    :param folder: of its identity
    """
    return {
        "PODYARD_KUBE_API_TLS_CERT_FILE": str(folder / CERTIFICATE),
        "PODYARD_KUBE_API_TLS_PRIVATE_KEY_FILE": str(folder / KEY),
        "PODYARD_KUBE_API_TOKEN_AUTH_FILE": str(folder / TOKENS),
    }


def new_token() -> str:
    """One that nobody guesses."""
    return secrets.token_urlsafe(32)


def token_line(token: str) -> bytes:
    """A file of tokens with one that is a person's."""
    return f'{token},{USER},{USER},"{GROUP}"\n'.encode()


def kubeconfig(url: str, certificate: bytes, token: str, name: str) -> bytes:
    """A kubeconfig in JSON, which is YAML, too. Source: client-go/tools/clientcmd/api/v1.

    :param certificate: whom to believe (PEM)
    :param name: of cluster, user and context
    """
    authority = base64.b64encode(certificate).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _put(path: Path, content: bytes) -> None:
    if path.exists():
        keys.replace_secret(path, content)
    else:
        keys.write_secret(path, content)
