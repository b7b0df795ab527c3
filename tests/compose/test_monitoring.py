"""The profile `monitoring` for real: a Prometheus in the stack finds every service, and takes the rules."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.compose.engine import REPOSITORY, Engine
from tests.compose.stack import LASTING, Stack

[UP] = re.findall(r"^docker compose --profile .* up .*$", (REPOSITORY / "docs/monitoring.md").read_text(), re.MULTILINE)
"""As the page says it."""
SCRAPED = set(LASTING) - {"nats", "jaeger"}


@pytest.fixture
def prometheus(stack: Stack, docker: Engine, environment: dict[str, str]) -> Iterator[str]:
    """Its query API. It is gone afterwards, the rest of the stack goes on."""
    stack.good(UP)
    yield f"http://127.0.0.1:{environment['PODYARD_PROMETHEUS_PORT']}/api/v1"
    stack.compose("--profile", "monitoring", "rm", "--stop", "--force", "prometheus")
    docker.run("volume", "rm", f"{environment['COMPOSE_PROJECT_NAME']}_prometheus-data")


def test_prometheus_scrapes_every_service_each_instance_on_its_own(stack: Stack, prometheus: str) -> None:
    stack.compose("up", "--detach", "--wait", "--scale", "scheduler=2")
    expected = sorted([*SCRAPED, "scheduler"])

    def scraped() -> bool:
        targets = httpx.get(f"{prometheus}/targets", params={"state": "active"}).json()["data"]["activeTargets"]
        return sorted(one["labels"]["service"] for one in targets if one["health"] == "up") == expected

    stack.until("all of them are scraped", scraped)
    rules = httpx.get(f"{prometheus}/rules").json()["data"]["groups"]
    assert sum(len(group["rules"]) for group in rules) > 0
    stack.compose("up", "--detach", "--wait", "--scale", "scheduler=1")


def test_its_container_is_contained_as_the_others(stack: Stack, prometheus: str) -> None:
    found = stack.container("prometheus").details
    assert found["HostConfig"]["ReadonlyRootfs"] is True, json.dumps(found["HostConfig"])
    assert found["HostConfig"]["CapDrop"] == ["ALL"]
