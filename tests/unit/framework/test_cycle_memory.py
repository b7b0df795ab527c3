"""What cycles keep for pods of equal signature has a bound in bytes, whatever pods look like."""

import gc
import tracemalloc
from collections.abc import Hashable
from typing import Any

import pytest

from podyard.framework import cycle as module
from podyard.framework import sharing
from podyard.framework.cycle import FEWEST_SIGNATURES, Cycle
from podyard.framework.pod_info import PodInfo
from podyard.framework.sharing import Signatures
from tests.unit.framework.builders import make_node, make_pod, profile, snapshot_of

MEBIBYTE = 1024 * 1024


def _cycle() -> Cycle:
    return Cycle(profile(), snapshot_of(*(make_node(f"n{number}", labels={"zone": "a"}) for number in range(3))))


def _large(number: int) -> Any:
    """A pod of some 100 KB."""
    tolerations = [{"key": f"key-{number}-{one}", "operator": "Exists"} for one in range(1500)]
    return make_pod(f"p{number}", spec={"tolerations": tolerations})


def test_results_of_many_signatures_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 4 * MEBIBYTE)
    cycle = _cycle()
    cycle.run(make_pod("first"))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(300):
            cycle.run(make_pod(f"p{number}", cpu=f"{number + 1}m", labels={f"key-{number}": "v"}))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    kept: Any = cycle._shared
    assert FEWEST_SIGNATURES < len(kept) < 200
    assert kept.bytes <= 4 * MEBIBYTE
    assert taken < 5 * MEBIBYTE


def test_a_large_pod_counts_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 6 * MEBIBYTE)
    cycle = _cycle()
    for number in range(30):
        cycle.run(make_pod(f"small-{number}", cpu=f"{number + 1}m"))
    for number in range(2 * FEWEST_SIGNATURES):
        cycle.run(_large(number))
    kept: Any = cycle._shared
    assert kept.bytes <= 6 * MEBIBYTE or len(kept) == FEWEST_SIGNATURES
    assert len(kept) < 2 * FEWEST_SIGNATURES


def test_templates_and_their_signatures_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "TEMPLATES_BYTES", MEBIBYTE)
    signatures = Signatures([plugin for plugin in profile().plugins if getattr(plugin, "reads_template", False)])
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(40):
            signatures.of(_large(number))
        for number in range(400):
            signatures.of(make_pod(f"p{number}", cpu=f"{number}m", labels={f"key-{number}": "v"}))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 3 * MEBIBYTE


def test_a_signature_that_is_known_is_not_made_again() -> None:
    signatures = Signatures([plugin for plugin in profile().plugins if getattr(plugin, "reads_template", False)])
    first = signatures.of(make_pod("a", labels={"app": "x"}))
    assert signatures.of(make_pod("b", labels={"app": "x"})) == first
    assert signatures.of(make_pod("c", labels={"app": "y"})) != first


class Volumes:
    """Signs pods with volumes, by their uid."""

    name = "Volumes"
    signs_few_templates = True

    def __init__(self) -> None:
        self.asked = 0

    def signature(self, pod: PodInfo) -> Hashable:
        self.asked += 1
        return pod.uid if pod.pod.spec.volumes else None


def test_a_plugin_that_signs_few_templates_is_asked_once_about_the_others() -> None:
    volumes = Volumes()
    signatures = Signatures([volumes])
    plain = {signatures.of(make_pod(name)) for name in ("a", "b", "c")}
    assert (len(plain), volumes.asked) == (1, 1)
    mounting = {
        signatures.of(
            make_pod(name, spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})
        )
        for name in ("d", "e", "f")
    }
    assert (len(mounting), volumes.asked) == (3, 4)
    assert not plain & mounting


def test_a_plugin_that_does_not_say_so_is_asked_about_every_pod() -> None:
    volumes = Volumes()
    volumes.signs_few_templates = False
    signatures = Signatures([volumes])
    assert len({signatures.of(make_pod(name)) for name in ("a", "b", "c")}) == 1
    assert volumes.asked == 3
