"""Caches over what comes from outside, each filled beyond its bound."""

from typing import Any

import pytest

from podyard.binder.core import intake
from podyard.binder.core.intake import Intake
from podyard.binder.core.pending import Event, Pending
from podyard.bus import dead_letters
from podyard.bus.dead_letters import DeadLetters
from podyard.cluster.changes import ClusterChangeEvent
from podyard.cluster.classify import event_resource
from podyard.cluster.pod_columns import LABEL_KEYS, PodSelection
from podyard.cluster.selector_counts import LEAST, MEMORY_BYTES, SelectorCounts, _longest
from podyard.framework.cycle import Cycle
from podyard.framework.faults import Faults
from podyard.objects import affinity_validation, kinds, names, pod_requests, quantity, selectors, times
from podyard.objects.affinity import Toleration
from podyard.objects.errors import QuantityError
from podyard.objects.faults import Faults as FieldFaults
from podyard.plugins.default_preemption import importance
from podyard.plugins.inter_pod_affinity import domain_counts, placed_terms
from podyard.plugins.inter_pod_affinity import plugin as affinity
from podyard.plugins.inter_pod_affinity.placed_terms import PlacedTerms
from podyard.plugins.pod_topology_spread import owners
from podyard.plugins.pod_topology_spread import plugin as spread
from podyard.proto import subjects
from podyard.proto.actions import ActionType
from podyard.proto.binder_api import BindAnswer, Decision
from tests.unit.framework.builders import make_node, make_pod, on, profile, snapshot_of, table_of

HUGE = "x" * 1_000_000
KIBIBYTE = 1024


@pytest.mark.parametrize(
    ("check", "cached"),
    [
        (names.subdomain_fault, names._subdomain_fault),
        (names.label_fault, names._label_fault),
        (names.qualified_fault, names._qualified_fault),
        (names.label_value_fault, names._label_value_fault),
    ],
)
def test_a_name_that_is_too_long_is_not_remembered(check: Any, cached: Any) -> None:
    before = cached.cache_info().currsize
    assert check(HUGE)
    assert cached.cache_info().currsize == before


def test_a_toleration_that_is_too_long_is_not_remembered() -> None:
    before = affinity_validation._is_fine.cache_info().currsize
    faults = FieldFaults()
    affinity_validation.check_tolerations(faults, (Toleration(key=HUGE, operator="Exists"),))
    assert faults
    assert affinity_validation._is_fine.cache_info().currsize == before


def test_a_text_that_is_too_long_for_an_amount_or_a_time_is_not_remembered() -> None:
    before = [one.cache_info().currsize for one in (quantity.parse, times._remembered)]
    with pytest.raises(QuantityError):
        quantity.parse("0" * 1_000_000)
    with pytest.raises(ValueError, match="no time"):
        times.seconds_of(HUGE)
    pod = make_pod("p", status={"startTime": HUGE})
    assert importance.start_time(pod)[0] == float("inf")
    assert [one.cache_info().currsize for one in (quantity.parse, times._remembered)] == before


def test_made_up_kinds_are_remembered_up_to_a_number() -> None:
    for number in range(kinds.KEPT_KINDS + 100):
        resource = f"things.v1.group-{number}.example.com"
        event_resource(resource)
        assert ClusterChangeEvent(resource, ActionType.ADD).label
    assert kinds.kind_of_resource.cache_info().currsize == kinds.KEPT_KINDS
    assert event_resource.cache_info().currsize == kinds.KEPT_KINDS


def test_subjects_are_remembered_up_to_a_number() -> None:
    for number in range(subjects.KEPT_SUBJECTS + 100):
        assert subjects.object_("pods", "default", f"pod-{number}") == f"cluster.pods.default.pod-{number}"
    assert subjects.object_.cache_info().currsize == subjects.KEPT_SUBJECTS


def test_what_a_container_takes_is_remembered_up_to_a_number() -> None:
    remembered = pod_requests.usage_of_one
    remembered.cache_clear()
    for number in range(pod_requests.KEPT_USAGES + 100):
        found = pod_requests.usage(make_pod("one", cpu=f"{number}m").stored)
        assert found.requests["cpu"] == number
    assert remembered.cache_info().currsize == pod_requests.KEPT_USAGES
    remembered.cache_clear()
    pod_requests.usage(make_pod("one", requests={"example.com/" + "x" * 1000: "1"}).stored)
    assert not remembered.cache_info().currsize, "a name may be of any length"


def test_answers_of_the_binder_are_bounded_in_bytes() -> None:
    book = Intake()
    for number in range(30_000):
        decision = Decision(
            namespace="n", name="p", uid=f"u{number}", attempt=f"1-{number}", node="n", number=number, position=1
        )
        pending = Pending(decision, ("session", number), 0.0, None)
        pending.happens(Event.REFUSE)
        book.answer(
            pending, BindAnswer(attempt=decision.attempt, uid=decision.uid, result="conflict", reasons=("r" * 100,))
        )
    assert book._answered.bytes <= intake.ANSWERED_BYTES
    assert ("session", 29_999) in book._answered
    assert ("session", 0) not in book._answered


def test_dead_letters_that_are_known_are_bounded_in_bytes() -> None:
    letters = DeadLetters(None, lambda: 0.0)  # type: ignore[arg-type]
    for number in range(20_000):
        letters._remember(("queue", f"cluster.pods.default.{number}", number))
    assert letters._seen.bytes <= dead_letters.REMEMBERED_BYTES
    assert letters._known(("queue", "cluster.pods.default.19999", 19_999))
    assert not letters._known(("queue", "cluster.pods.default.1", 1))


def test_counts_of_selectors_are_bounded_with_what_they_tell_of_changes() -> None:
    table = table_of(*(make_node(f"n{number}") for number in range(3)))
    counts = table.index(SelectorCounts)
    for number in range(3000):
        counts.of(PodSelection(selectors.compile_map({"app": f"a{number}"}), None))
    assert LEAST <= len(counts._counts) <= counts._bound()
    assert counts._bound() * 8 * table.capacity < MEMORY_BYTES
    wanted = PodSelection(selectors.compile_map({"app": "x"}), None)
    counts.of(wanted)
    for number in range(5000):
        table.place(on(make_pod(f"p{number}", labels={"app": "x"}), f"n{number % 3}"))
        table.remove(f"uid-p{number}")
    assert len(counts.of(wanted)._log) <= _longest(table.capacity)


def _pods(count: int) -> Any:
    for number in range(count):
        own = {"matchLabels": {"app": f"app-{number}"}}
        term = {"topologyKey": f"key-{number}.example.com/zone", "labelSelector": own}
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": own,
        }
        extra: dict[str, Any] = {"affinity": {"podAntiAffinity": rule}}
        if number % 2:
            extra = {"topologySpreadConstraints": [constraint]}
        yield make_pod(f"p{number}", labels={"app": f"app-{number}"}, spec=extra)


def test_what_affinity_and_spreading_keep_of_pods_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = {
        (affinity, "ASKED_BYTES"): 64 * KIBIBYTE,
        (placed_terms, "ANSWERS_BYTES"): 16 * KIBIBYTE,
        (placed_terms, "SELECTIONS_BYTES"): 64 * KIBIBYTE,
        (domain_counts, "KEYS_BYTES"): 16 * KIBIBYTE,
        (spread, "PLANS_BYTES"): 64 * KIBIBYTE,
        (owners, "SELECTORS_BYTES"): 32 * KIBIBYTE,
    }
    for (module, name), bound in bounds.items():
        monkeypatch.setattr(module, name, bound)
    found, cluster = profile(), snapshot_of(*(make_node(f"n{number}", labels={"zone": "a"}) for number in range(3)))
    cycle = Cycle(found, cluster)
    for number, pod in enumerate(_pods(200)):
        cycle.run(pod)
        cluster.nodes.place(on(pod, f"n{number % 3}"))
    by_name: dict[str, Any] = {plugin.name: plugin for plugin in found.plugins}
    index: Any = cluster.nodes.index(PlacedTerms)
    for number in range(200):
        index.domains.stamp(f"key-{number}")
    caches = {
        (affinity, "ASKED_BYTES"): by_name["InterPodAffinity"]._asked,
        (placed_terms, "ANSWERS_BYTES"): index.anti_affinity._answers,
        (placed_terms, "SELECTIONS_BYTES"): index._selected,
        (domain_counts, "KEYS_BYTES"): index.domains._keys,
        (spread, "PLANS_BYTES"): by_name["PodTopologySpread"]._plans,
        (owners, "SELECTORS_BYTES"): by_name["PodTopologySpread"]._owners._known,
    }
    for key, cache in caches.items():
        assert 0 < len(cache) < 100, key
        assert cache.bytes <= bounds[key], key
    assert isinstance(cluster.faults, Faults)


def test_columns_of_placed_pods_labels_are_bounded_in_number() -> None:
    table = table_of(make_node("n"))
    for number in range(20):
        table.place(on(make_pod(f"p{number}", labels={f"key-{number}": "v"}), "n"))
    counts: Any = table.index(SelectorCounts)
    for number in range(3 * LABEL_KEYS):
        counts.of(PodSelection(selectors.compile_map({f"key-{number}": "v"}), None))
    assert len(counts._pods._labels) == LABEL_KEYS
