"""The Kubernetes API and the api behind it, and clients of several identities."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
from prometheus_client import CollectorRegistry

from podyard.api.service import SERVICE as API
from podyard.api.settings import ApiSettings
from podyard.bus import Bus
from podyard.kube_api.service import SERVICE
from podyard.kube_api.settings import KubeApiSettings
from podyard.runtime.ports import free_port
from tests.support.holding import Hold
from tests.support.services import make_service, running
from tests.support.waiting import eventually

TOKENS = """a-person,ann,1,"podyard:people"
a-reader,ray,2,"podyard:readers"
a-stranger,sam,3,"others"
"""
LIMIT_S = 20.0


class Clients:
    """Who asks."""

    def __init__(self, url: str, bus: Bus, metrics: CollectorRegistry) -> None:
        """:param metrics: of the service"""
        self.url = url
        self.bus = bus
        self._metrics = metrics

    def client(self, token: str = "a-person") -> httpx.AsyncClient:
        """:param token: empty: somebody who does not say who he is"""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # the certificate is made at each start, and signed by itself
        return httpx.AsyncClient(base_url=self.url, headers=headers, verify=False, timeout=LIMIT_S)

    async def ask(self, method: str, path: str, token: str = "a-person", **more: Any) -> httpx.Response:
        async with self.client(token) as client:
            return await client.request(method, path, **more)

    def count(self, name: str, **labels: str) -> float:
        """A metric of the service."""
        return self._metrics.get_sample_value(name, labels) or 0.0

    async def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        found = await self.ask("POST", path, json=document)
        assert found.status_code == 201, found.text
        return found.json()


@asynccontextmanager
async def served(bus: Bus, folder: Path, **settings: Any) -> AsyncIterator[Clients]:
    """:param settings: of the service, besides port and tokens"""
    tokens = folder / "tokens.csv"
    tokens.write_text(TOKENS)
    os.chmod(tokens, 0o600)
    port = free_port()
    api = make_service(API, bus, ApiSettings(secrets_key_file=str(folder / "secrets.key")))
    kube_api = make_service(SERVICE, bus, KubeApiSettings(port=port, token_auth_file=str(tokens), **settings))
    async with AsyncExitStack() as stack:
        for service in (api, kube_api):
            await stack.enter_async_context(running(service))
            await eventually(f"{service.name} is ready", lambda service=service: service.health.ready)
        yield Clients(f"https://127.0.0.1:{port}", bus, kube_api.metrics)


@pytest_asyncio.fixture
async def clients(bus: Bus, tmp_path: Path, hold: Hold[Clients]) -> Clients:
    return await hold(served(bus, tmp_path))
