"""Every service's endpoints, each asked for by everybody: who says nothing of himself, who shows what is
wrong or has ended, who may read some of it, who may read all."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from podyard.bus import Bus
from podyard.cli import services
from podyard.runtime.health import Health
from podyard.runtime.http import HttpEndpoint
from tests.support.certificates import DAY, Authority, Issued
from tests.support.services import make_service, running
from tests.support.serving import HOST, refused, serving
from tests.support.waiting import eventually

HEALTH = ("/livez", "/healthz", "/readyz", "/livez/ping", "/readyz/loop", "/readyz?verbose", "/livez?exclude=ping")
DEBUG = "/debug/nothing-of-the-service"
"""So that there is one on every service."""
NO_CHECK = ("/readyz/other", "/readyz/a/b", "/livez/../metrics", "/healthz/%2e%2e%2fmetrics", "/livez/")
"""Begins like health, and is none."""
OTHERS = ("queue", "binder")
"""Checks of a scheduler, which is alone here."""
UNKNOWN = (
    "/",
    "/unknown",
    "/debug",
    "/metrics/",
    "/configz/x",
    "/metrics/../livez",
    "/Metrics",
    "//livez",
    "/livezx",
    "/readyz-x",
)


class Visitor(NamedTuple):
    """Who asks, and what he may expect beside health."""

    shown: Issued | None = None
    authorization: str = ""
    on_all: int = 0
    """Status of whatever he asks for; 0: he may read."""
    only: frozenset[str] = frozenset()
    """Paths that he may read; empty: all of them. Others are forbidden to him."""
    enters: bool = True
    """Whether TLS lets him in."""
    counted: str = ""
    """As what a refusal of his is counted."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "right")


@pytest.fixture(scope="module")
def visitors(folder: Path, authority: Authority) -> dict[str, Visitor]:
    masters, monitoring = ["system:masters"], ["system:monitoring"]
    metrics = frozenset({"/metrics"})
    (folder / "wrong").mkdir()
    wrong = Authority(folder / "wrong")
    return {
        "nobody": Visitor(on_all=401, counted="no_identity"),
        "a wrong token": Visitor(authorization="Bearer guessed", on_all=401, counted="wrong_token"),
        "a token as a password": Visitor(authorization="Basic all-token", on_all=401, counted="no_identity"),
        "an empty token": Visitor(authorization="Bearer", on_all=401, counted="no_identity"),
        "the right token of somebody who may not": Visitor(
            authorization="Bearer stranger-token", on_all=403, counted="not_allowed"
        ),
        "the right token for metrics": Visitor(
            authorization="Bearer metrics-token", only=metrics, counted="not_allowed"
        ),
        "the right token for all": Visitor(authorization="Bearer all-token"),
        "a certificate for metrics": Visitor(
            authority.issue("prometheus", monitoring), only=metrics, counted="not_allowed"
        ),
        "a certificate for all": Visitor(authority.issue("jane", masters)),
        "a certificate for all, a wrong token": Visitor(authority.issue("ann", masters), "Bearer guessed"),
        "a certificate of a user by the name of a group": Visitor(
            authority.issue("system:masters"), on_all=403, counted="not_allowed"
        ),
        "an expired certificate": Visitor(
            authority.issue("old", masters, begins=-2 * DAY, ends=-DAY), enters=False, counted="wrong_certificate"
        ),
        "a certificate of tomorrow": Visitor(
            authority.issue("early", masters, begins=DAY, ends=2 * DAY), enters=False, counted="wrong_certificate"
        ),
        "a certificate of another authority": Visitor(
            wrong.issue("mallory", masters), enters=False, counted="wrong_certificate"
        ),
        "a server's certificate": Visitor(
            authority.issue("server", masters, hosts=[HOST]), enters=False, counted="wrong_certificate"
        ),
    }


@pytest.fixture(scope="module")
def secure(folder: Path, authority: Authority) -> dict[str, Any]:
    """Settings of the secure port."""
    tokens = folder / "tokens.csv"
    tokens.write_text(
        "all-token,ann,1,system:masters\nmetrics-token,prometheus,2,system:monitoring\nstranger-token,joe,3\n"
    )
    tokens.chmod(0o600)
    pair = authority.issue("here", hosts=[HOST])
    return {
        "tls_cert_file": str(pair.certificate),
        "tls_private_key_file": str(pair.key),
        "client_ca_file": str(authority.file),
        "token_auth_file": str(tokens),
    }


class Stage(NamedTuple):
    """A service that runs, and what serves it."""

    endpoint: HttpEndpoint
    paths: list[str]
    refused: Any


@asynccontextmanager
async def staged(name: str, bus: Bus, secure: Mapping[str, Any]) -> AsyncIterator[Stage]:
    """The service as it is, with all its pages."""
    service = make_service(services.definition(name), bus)
    service.pages.made_here()
    service.pages.add("/configz", lambda: {name: service.settings})
    service.pages.add(DEBUG, dict)
    async with running(service):
        await eventually("it has begun", lambda: _has_begun(service.health))
        with serving(
            secure=dict(secure), health=service.health, registry=service.metrics, pages=service.pages
        ) as endpoint:
            pages = service.pages.paths(secure=True)
            yield Stage(endpoint, ["/metrics", *pages], lambda: refused(service.metrics))
            assert service.pages.paths(secure=True) == pages, "all of them were asked for"


def _has_begun(health: Health) -> bool:
    """Whether it waits for nobody, or for other services alone."""
    return bool(health.checks) and all(check.ok for name, check in health.checks.items() if name not in OTHERS)


@asynccontextmanager
async def visiting(endpoint: HttpEndpoint, authority: Authority, visitor: Visitor) -> AsyncIterator[httpx.AsyncClient]:
    context = ssl.create_default_context(cafile=authority.file)
    if visitor.shown is not None:
        context.load_cert_chain(visitor.shown.certificate, visitor.shown.key)
    headers = {"Authorization": visitor.authorization} if visitor.authorization else {}
    async with httpx.AsyncClient(
        base_url=f"https://{endpoint.secure_address}", verify=context, headers=headers, trust_env=False
    ) as client:
        yield client


async def asked(client: httpx.AsyncClient, path: str) -> httpx.Response | None:
    """Its answer; None if TLS refuses."""
    try:
        # as it is written: httpx would mend some of these paths
        return await client.get("/", extensions={"target": path.encode()})
    except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError, ssl.SSLError):
        return None


@pytest.mark.parametrize("name", services.NAMES)
async def test_on_the_secure_port_each_reads_what_he_may(
    name: str, bus: Bus, secure: dict[str, Any], authority: Authority, visitors: dict[str, Visitor]
) -> None:
    async with staged(name, bus, secure) as stage:
        for who, visitor in visitors.items():
            before = stage.refused().get(visitor.counted, 0)
            refusals: list[httpx.Response] = []
            async with visiting(stage.endpoint, authority, visitor) as client:
                if not visitor.enters:
                    assert [await asked(client, path) for path in ("/livez", "/metrics")] == [None, None], who
                    assert stage.refused()[visitor.counted] == before + 2, who
                    continue
                for path in HEALTH:
                    answer = await asked(client, path)
                    assert answer is not None, (who, path)
                    assert answer.status_code in ((200, 500) if path[:7] == "/readyz" else (200,)), (who, path)
                for path in NO_CHECK:
                    answer = await asked(client, path)
                    assert answer is not None, (who, path)
                    assert (answer.status_code, answer.text) == (404, "there is no such check\n"), (who, path)
                for path in (*stage.paths, *UNKNOWN):
                    expected = 200 if path in stage.paths else 404
                    if visitor.only and path not in visitor.only:
                        expected = 403
                    answer = await asked(client, path)
                    assert answer is not None, (who, path)
                    assert answer.status_code == (visitor.on_all or expected), (who, path)
                    if answer.status_code in (401, 403):
                        refusals.append(answer)
            assert stage.refused().get(visitor.counted, 0) == before + len(refusals), who
            told = {(answer.status_code, answer.text, str(answer.headers)) for answer in refusals}
            assert len(told) <= 1, f"what is there is told to {who}: {told}"


@pytest.mark.parametrize("name", services.NAMES)
async def test_on_the_plain_port_everybody_reads_all_but_debug(name: str, bus: Bus, secure: dict[str, Any]) -> None:
    async with staged(name, bus, secure) as stage:
        base = f"http://{stage.endpoint.address}"
        headers = {"Authorization": "Bearer all-token"}
        async with httpx.AsyncClient(base_url=base, headers=headers, trust_env=False) as client:
            for path in (*HEALTH, *stage.paths, *UNKNOWN):
                answer = await asked(client, path)
                assert answer is not None
                there = path in HEALTH or (path in stage.paths and not path.startswith("/debug"))
                if path in HEALTH and path.startswith("/readyz"):
                    assert answer.status_code in (200, 500)
                else:
                    assert answer.status_code == (200 if there else 404), path
                if answer.status_code == 404:
                    assert "debug" not in answer.text, "what the other port has is not told here"
        assert stage.refused() == {}
