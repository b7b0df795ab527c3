"""A process' HTTP servers in the test's own process, and clients that are good, slow or silent."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import prometheus_client
import structlog

from podyard.runtime.health import Health
from podyard.runtime.http import HttpEndpoint
from podyard.runtime.pages import Pages
from podyard.runtime.ports import free_port
from podyard.runtime.settings import ServiceSettings
from tests.support.certificates import Issued

HOST = "127.0.0.1"


@contextmanager
def serving(
    *,
    secure: dict[str, Any] | None = None,
    http: dict[str, Any] | None = None,
    health: Health | None = None,
    registry: prometheus_client.CollectorRegistry | None = None,
    pages: Pages | None = None,
) -> Iterator[HttpEndpoint]:
    """Both ports, on the loopback.

    :param secure: settings of that name; none: no secure port
    """
    registry = registry or prometheus_client.CollectorRegistry()
    if health is None:
        health = Health(stall_limit_s=3600.0, registry=registry)
        health.set_ready("running", True)
    if secure is not None:
        secure = {"port": free_port(), "bind_address": HOST, **secure}
    settings = msgspec.convert({"secure": secure or {}, "http": http or {}}, ServiceSettings)
    with HttpEndpoint(settings, health, registry, pages or Pages(), structlog.get_logger()) as endpoint:
        yield endpoint


@contextmanager
def visitor(
    endpoint: HttpEndpoint,
    *,
    authority: str | None = None,
    shown: Issued | None = None,
    token: str = "",
) -> Iterator[httpx.Client]:
    """A client of the secure port, or of the plain one if it shows and trusts nothing.

    :param authority: file of the authority that the server's certificate must be of; empty: any is taken
    :param shown: his certificate
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if authority is None:
        with httpx.Client(base_url=f"http://{endpoint.address}", headers=headers, trust_env=False) as client:
            yield client
        return
    context = ssl.create_default_context(cafile=authority or None)
    if not authority:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    base = f"https://{endpoint.secure_address}"
    with httpx.Client(base_url=base, headers=headers, verify=context, trust_env=False) as client:
        yield client


def refused(registry: prometheus_client.CollectorRegistry) -> dict[str, float]:
    """How many were refused so far, by reason; those that were."""
    return {
        sample.labels["reason"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "podyard_http_refused_total" and sample.value
    }
