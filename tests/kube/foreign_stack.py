"""A stack of services with the Kubernetes API, for programs of somebody else, while the checker looks on."""

import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from podyard.runtime import ports
from tests.faults.stage import Stage, staged
from tests.support.certificates import Authority, Issued

HOST: Final = "127.0.0.1"
TOKEN: Final = "somebody-else"


class Served(NamedTuple):
    """The Kubernetes API of a stack."""

    url: str
    authority: Path
    shown: Issued
    """What its servers show, and those of schedulers."""

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(**self._connection())

    def blocking(self) -> httpx.Client:
        """For another thread than that of the stack."""
        return httpx.Client(**self._connection())

    def _connection(self) -> dict[str, Any]:
        return {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {TOKEN}"},
            "verify": ssl.create_default_context(cafile=str(self.authority)),
            "timeout": 30,
        }


@asynccontextmanager
async def stack(folder: Path, services: str) -> AsyncGenerator[tuple[Stage, Served]]:
    """Services with the Kubernetes API, and nodes."""
    authority = Authority(folder)
    server = authority.issue("server", hosts=(HOST,))
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},{TOKEN},1,"system:masters"\n', encoding="utf-8")
    os.chmod(tokens, 0o600)
    port = ports.free_port()
    known = {
        "PODYARD_KUBE_API_PORT": str(port),
        "PODYARD_KUBE_API_TOKEN_AUTH_FILE": str(tokens),
        "PODYARD_KUBE_API_TLS_CERT_FILE": str(server.certificate),
        "PODYARD_KUBE_API_TLS_PRIVATE_KEY_FILE": str(server.key),
    }
    async with staged(folder, services, environment=known) as stage:
        yield stage, Served(f"https://{HOST}:{port}", authority.file, server)
