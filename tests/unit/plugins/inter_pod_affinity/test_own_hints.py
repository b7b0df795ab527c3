"""Why pod affinity rejected a pod, and what its own hints say of that."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.framework.events import HintAnswer, OwnRegistration
from podyard.framework.hint_sharing import OwnRead
from podyard.objects.core import Node, Pod
from podyard.plugins.inter_pod_affinity import own_hints, term_index
from podyard.plugins.inter_pod_affinity.args import Args
from podyard.plugins.inter_pod_affinity.obstacles import (
    ANY_KEY,
    KEPT_OUT_BY,
    ONE_OF_ITS_TERMS,
    OTHERS_OF_ITS_KIND,
    WANTED_BY_NAMESPACE,
)
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from podyard.proto.actions import ActionType
from tests.unit.plugins.hints.test_indexes import NODE_STEPS, POD_AFFINITY, pod_steps, pods
from tests.unit.plugins.inter_pod_affinity.test_hints import node, pod, term

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP
CHOSEN = {"matchLabels": {"env": "x"}}
PODS, NODES = own_hints.registrations()


def answers(registration: OwnRegistration, parked: Pod, obstacle: str, old: Any, new: Any) -> tuple[HintAnswer, str]:
    """The hint's answer; whom it says Queue to the index names, too."""
    found = registration.hint(parked, (obstacle,), old, new)
    assert registration.new_index is not None
    index, signature = registration.new_index(), OwnRead(term_index.read_of(parked), (obstacle,))
    index.add(signature)
    asked = index.candidates(old, new)
    assert found.answer is SKIP or asked is None or list(asked) == [signature]
    return found.answer, found.reason


@pytest.mark.parametrize(
    ("parked", "obstacle", "old", "new", "answer", "reason"),
    [
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, pod("db"), None, QUEUE,
            "one/p-db, of the pod's own kind, is gone: if it was the last, the pod may begin anywhere", id="a mate went",
        ),
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, pod("db"), pod("web"), QUEUE,
            "one/p-web, of the pod's own kind, has other labels: if it was the last, the pod may begin anywhere",
            id="a mate was relabelled",
        ),
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, pod("web"), None, SKIP,
            "one/p-web stands as much in the pod's way as before", id="another went",
        ),
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, pod("db", on=""), None, SKIP, "one/p-db is on no node",
            id="a mate went that had no place",
        ),
        pytest.param(
            pod(near=[term("db", namespaceSelector=CHOSEN)]), WANTED_BY_NAMESPACE, None, pod("db", space="two"), QUEUE,
            "one/p-db may be in a namespace that the pod's affinity chooses".replace("one", "two", 1), id="came",
        ),
        pytest.param(
            pod(apart=[term("db"), term("web")]), ONE_OF_ITS_TERMS, pod("web"), None, QUEUE,
            "one/p-web, which a term of the pod's anti-affinity may mean, is gone", id="one of several went",
        ),
        pytest.param(
            pod(apart=[term("db"), term("web")]), ONE_OF_ITS_TERMS, pod("web"), pod("db"), QUEUE,
            "one/p-db, which a term of the pod's anti-affinity may mean, has other labels", id="one of several less",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", pod("db", apart=[term("y"), term("x")]), None, QUEUE,
            "one/p-db is gone, of which an anti-affinity term may mean the pod", id="who keeps it out went",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", pod("db", apart=[term("y")]), None, SKIP,
            "one/p-db stands as much in the pod's way as before", id="who keeps others out went",
        ),
    ],
)  # fmt: skip
def test_after_a_pod(
    parked: Pod, obstacle: str, old: Pod | None, new: Pod | None, answer: HintAnswer, reason: str
) -> None:
    assert answers(PODS, parked, obstacle, old, new) == (answer, reason)


@pytest.mark.parametrize(
    ("parked", "obstacle", "old", "new", "answer", "reason"),
    [
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", None, node({"zone": "b"}), QUEUE,
            "the new node n1 may hold none of the pods that keep the pod out", id="new",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", node({"zone": "a"}), node({"zone": "b"}), QUEUE,
            "n1 left domain zone=a, whose pods are in the pod's way", id="moved",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", node({"zone": "a"}), None, QUEUE,
            "n1 left domain zone=a, whose pods are in the pod's way", id="gone",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + "zone", node({"rack": "a", "zone": "a"}), node({"zone": "a"}), SKIP,
            "n1 is in the domains of the pods that are in the pod's way, as before", id="another label",
        ),
        pytest.param(
            pod("x"), KEPT_OUT_BY + ANY_KEY, node({"rack": "a"}), node({}), QUEUE,
            "n1 left domain rack=a, whose pods are in the pod's way", id="any key",
        ),
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, node({"zone": "a"}), node({}), QUEUE,
            "n1 left domain zone=a, whose pods are in the pod's way", id="the key of its own term",
        ),
        pytest.param(
            pod("db", near=[term("db")]), OTHERS_OF_ITS_KIND, None, node({"zone": "a"}), SKIP,
            "n1 is new, and takes nothing out of the pod's way", id="new, of its kind",
        ),
    ],
)  # fmt: skip
def test_after_a_node(
    parked: Pod, obstacle: str, old: Node | None, new: Node | None, answer: HintAnswer, reason: str
) -> None:
    assert answers(NODES, parked, obstacle, old, new) == (answer, reason)


def test_registers_beside_the_reference() -> None:
    assert [one.event.label for one in InterPodAffinity(Args()).own_events_to_register()] == [
        registration.event.label for registration in (PODS, NODES)
    ]


OBSTACLES = st.lists(
    st.sampled_from(
        [
            OTHERS_OF_ITS_KIND,
            WANTED_BY_NAMESPACE,
            ONE_OF_ITS_TERMS,
            KEPT_OUT_BY + "zone",
            KEPT_OUT_BY + "disk",
            KEPT_OUT_BY + ANY_KEY,
        ]
    ),
    min_size=1,
    max_size=2,
    unique=True,
).map(tuple)
POD_STEPS = pod_steps(POD_AFFINITY, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE)
PARKED = st.lists(st.tuples(pods(about=POD_AFFINITY), OBSTACLES), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(parked=PARKED, pod_step=POD_STEPS, node_step=NODE_STEPS)
def test_what_an_index_leaves_out_would_be_skipped(
    parked: list[tuple[Pod, tuple[str, ...]]], pod_step: tuple[Any, Any], node_step: tuple[Any, Any]
) -> None:
    for registration, (old, new) in ((PODS, pod_step), (NODES, node_step)):
        assert registration.new_index is not None
        index = registration.new_index()
        signatures = [OwnRead(term_index.read_of(one), obstacles) for one, obstacles in parked]
        for signature in dict.fromkeys(signatures):
            index.add(signature)
        found = index.candidates(old, new)
        asked = set(signatures) if found is None else set(found)
        for (one, obstacles), signature in zip(parked, signatures, strict=True):
            if signature not in asked:
                assert registration.hint(one, obstacles, old, new).answer is SKIP
