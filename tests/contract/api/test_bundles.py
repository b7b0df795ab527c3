"""Ten bundles of well-known kinds apply whole, and twice. What nothing here acts on is told."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podyard.bus import Bus
from podyard.cli import objects_client
from podyard.objects import acting, manifests
from podyard.proto.objects_api import ObjectResult
from tests.contract.api.conftest import ready
from tests.support.bundles import BUNDLES

TOLD = {
    "argo-cd": {"ConfigMap", "NetworkPolicy", "Role", "RoleBinding", "Secret", "ServiceAccount"},
    "bookinfo": {"ServiceAccount"},
    "cert-manager": {"ClusterRole", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
    "guestbook": set[str](),
    "ingress-nginx": {"ConfigMap", "IngressClass", "ValidatingWebhookConfiguration"},
    "kube-prometheus": {"APIService", "NetworkPolicy", "Secret", "Seer unless a plugin of yours does"},
    "metrics-server": {"APIService", "ClusterRole", "ServiceAccount"},
    "microservices-demo": {"ServiceAccount"},
    "nvidia-device-plugin": set[str](),
    "voting-app": set[str](),
}
"""Some of the kinds that are told of, by bundle; others stand in `acting`."""


def test_there_are_ten():
    assert list(BUNDLES) == sorted(TOLD)


@pytest.mark.parametrize("name", BUNDLES)
async def test_a_bundle_applies_whole_with_warnings_and_a_second_time_changes_nothing(
    bus: Bus, tmp_path: Path, name: str
) -> None:
    found = manifests.load(name, BUNDLES[name])
    documents = [manifest.document for manifest in found]
    async with ready(bus, tmp_path / "secrets.key"):
        rehearsed = await objects_client.apply(bus, documents, validation="strict", dry_run=True)
        assert faults(rehearsed) == []
        applied = await objects_client.apply(bus, documents, validation="strict")
        again = await objects_client.apply(bus, documents, validation="strict")
    assert outcomes(rehearsed) == outcomes(applied) == {"created": len(found)}
    assert outcomes(again) == {"unchanged": len(found)}
    told = {warning.removeprefix("nothing here acts on ") for one in applied for warning in one.warnings}
    unheeded = {acting.unheeded(manifest.kind) for manifest in found} - {""}
    assert told == {sentence.removeprefix("nothing here acts on ") for sentence in unheeded}
    assert told >= TOLD[name]


def faults(results: list[ObjectResult]) -> list[tuple[str, str]]:
    return [(one.name, one.reason) for one in results if one.outcome not in objects_client.GOOD]


def outcomes(results: list[ObjectResult]) -> dict[str, int]:
    return dict(Counter(one.outcome for one in results))


async def test_what_a_later_request_leans_on_is_rehearsed_with_it(bus: Bus) -> None:
    """More than one request: the namespace is in the first, and a dry run writes none of them."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    maps: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "namespace": "shop"}}
        for number in range(300)
    ]
    async with ready(bus):
        rehearsed = await objects_client.apply(bus, [space, *maps], dry_run=True)
        lost = await objects_client.apply(bus, maps, dry_run=True)
    assert outcomes(rehearsed) == {"created": 301}
    assert [one.name for one in rehearsed] == ["shop", *(one["metadata"]["name"] for one in maps)]
    assert outcomes(lost) == {"refused": 300}, "a rehearsal tells of all requests"
