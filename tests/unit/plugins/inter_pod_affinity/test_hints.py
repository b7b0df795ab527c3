"""What may help a pod that pod affinity rejected, and in which words."""

from typing import Any

import pytest

from podyard.framework.events import HintAnswer
from podyard.objects.core import Node, Pod
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.plugins.inter_pod_affinity import hints, term_index
from podyard.plugins.inter_pod_affinity.args import Args
from podyard.plugins.inter_pod_affinity.hints import UnreadableTermsError
from podyard.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.support import objects
from tests.unit.plugins.inter_pod_affinity import cases
from tests.unit.plugins.inter_pod_affinity.cases import REQUIRED

QUEUE, SKIP = HintAnswer.QUEUE, HintAnswer.SKIP


def term(app: str, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} | more


def pod(
    app: str = "", *, near: Any = (), apart: Any = (), on: str = "n1", space: str = "one", nominated: str = ""
) -> Pod:
    affinity = {"podAffinity": {REQUIRED: list(near)}, "podAntiAffinity": {REQUIRED: list(apart)}}
    labels = {"app": app} if app else {}
    return objects.typed_pod(
        f"p-{app}", uid=app, namespace=space, labels=labels, node=on, nominated=nominated, affinity=affinity
    )


@pytest.mark.parametrize(
    ("parked", "old", "new", "answer", "reason"),
    [
        pytest.param(
            pod(near=[term("db")]), None, pod("db"), QUEUE, "one/p-db is on n1, and the pod wants to be near it",
            id="came",
        ),
        pytest.param(
            pod(near=[term("db"), term("web")]), None, pod("db"), SKIP,
            "one/p-db came, which is no pod that the pod wants to be near", id="one term of two",
        ),
        pytest.param(pod(near=[term("db")]), None, pod("db", on=""), SKIP, "one/p-db is on no node", id="not placed"),
        pytest.param(
            pod(apart=[term("db")]), pod("db"), None, QUEUE, "one/p-db, which the pod must be apart from, left n1",
            id="left",
        ),
        pytest.param(
            pod("x"), pod("db", apart=[term("x")]), None, QUEUE, "one/p-db, which had to be apart from the pod, left n1",
            id="its own anti-affinity",
        ),
        pytest.param(
            pod(apart=[term("db"), term("web")]), pod("db"), None, SKIP,
            "one/p-db left n1; it and the pod need not be apart", id="left, one term of two",
        ),
        pytest.param(
            pod(near=[term("db")]), pod("db"), None, SKIP, "one/p-db left n1; it and the pod need not be apart",
            id="a wanted one left",
        ),
        pytest.param(
            pod(apart=[term("db")]), pod("db", on="", nominated="n1"), None, QUEUE,
            "one/p-db, which the pod must be apart from, gave up its nomination to n1", id="a nomination ended",
        ),
        pytest.param(
            pod("x"), pod("db", on="", nominated="n1", apart=[term("x")]), None, QUEUE,
            "one/p-db, which had to be apart from the pod, gave up its nomination to n1",
            id="its own anti-affinity, a nomination ended",
        ),
        pytest.param(
            pod(apart=[term("db")]), pod("db", on=""), None, SKIP, "one/p-db is on no node", id="gone from no node",
        ),
        pytest.param(
            pod(near=[term("db")]), pod("web"), pod("db"), QUEUE,
            "one/p-db now has the labels that the pod wants to be near", id="has the labels now",
        ),
        pytest.param(
            pod(apart=[term("db")]), pod("db"), pod("web"), QUEUE,
            "one/p-web no longer has the labels that the pod must be apart from", id="has the labels no more",
        ),
        pytest.param(
            pod("me", on=""), pod("me", on=""), pod("me", on=""), QUEUE, "the pod itself has other labels", id="itself"
        ),
        pytest.param(
            pod("me"), None, pod("me"), SKIP, "one/p-me came, which is no pod that the pod wants to be near",
            id="itself, bound by somebody else",
        ),
        pytest.param(
            pod(near=[term("db")]), pod("db"), pod("db"), SKIP,
            "one/p-db has other labels, which make no difference to the pod's affinity", id="no difference",
        ),
    ],
)  # fmt: skip
def test_after_a_pod(parked: Pod, old: Pod | None, new: Pod | None, answer: HintAnswer, reason: str) -> None:
    assert hints.after_pod_change(parked, old, new) == (answer, reason)
    itself = new is not None and new.metadata.uid == parked.metadata.uid
    assert answer is SKIP or itself or candidates(parked, old, new) == [term_index.read_of(parked)]


def candidates(parked: Pod, old: Pod | None, new: Pod | None) -> list[Any]:
    """Whom the index names, of this parked pod alone."""
    index = term_index.of_pods()
    index.add(term_index.read_of(parked))
    return list(index.candidates(old, new) or ())


@pytest.mark.parametrize(
    ("selector", "answer"),
    [
        pytest.param({"matchLabels": {"env": "x"}}, SKIP, id="by labels: never"),
        pytest.param({}, QUEUE, id="everything: always"),
        pytest.param({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, QUEUE, id="excluding: always"),
    ],
)
def test_namespaces_are_taken_to_have_no_labels(selector: Any, answer: HintAnswer) -> None:
    parked = pod(near=[term("db", namespaceSelector=selector)])
    assert hints.after_pod_change(parked, None, pod("db", space="two")).answer is answer


def node(labels: dict[str, str]) -> Node:
    return cases.node("n1", labels)


@pytest.mark.parametrize(
    ("parked", "old", "new", "answer", "reason"),
    [
        pytest.param(
            pod(near=[term("db")]), None, node({"zone": "a"}), QUEUE,
            "n1 is in domain zone=a, and the pod has affinity by zone", id="new in a domain",
        ),
        pytest.param(
            pod(near=[term("db")]), None, node({}), SKIP, "n1 (no zone) is in no domain that helps the pod",
            id="new in none",
        ),
        pytest.param(
            pod(near=[term("db")]), node({"zone": "a"}), node({"zone": "b"}), QUEUE,
            "n1 is in domain zone=b, and the pod has affinity by zone", id="moved",
        ),
        pytest.param(
            pod(near=[term("db")]), node({"zone": "a"}), node({"zone": "a", "x": "y"}), SKIP,
            "n1 (zone=a) is in no domain that helps the pod", id="another label",
        ),
        pytest.param(
            pod(near=[term("db")]), node({"zone": "a"}), node({}), SKIP,
            "n1 (no zone) is in no domain that helps the pod", id="left, affinity",
        ),
        pytest.param(
            pod(apart=[term("db")]), None, node({}), QUEUE,
            "the new node n1 may hold none of the pods that the pod must be apart from", id="new, anti-affinity",
        ),
        pytest.param(
            pod(apart=[term("db")]), node({"zone": "a"}), node({}), QUEUE,
            "n1 left domain zone=a, and the pod has anti-affinity by zone", id="left, anti-affinity",
        ),
        pytest.param(
            pod(apart=[term("db")]), node({}), node({"zone": "a"}), SKIP,
            "n1 (zone=a) is in no domain that helps the pod", id="joined, anti-affinity",
        ),
        pytest.param(
            pod(), None, node({"zone": "a"}), SKIP, "n1 changed, and the pod has no terms of its own", id="no terms"
        ),
    ],
)  # fmt: skip
def test_after_a_node(parked: Pod, old: Node | None, new: Node, answer: HintAnswer, reason: str) -> None:
    assert hints.after_node_change(parked, old, new) == (answer, reason)


def test_a_hint_that_cannot_tell_raises_and_so_counts_as_queue() -> None:
    with pytest.raises(UnexpectedObjectError):
        hints.after_pod_change(pod(), node({}), None)
    with pytest.raises(UnexpectedObjectError):
        hints.after_node_change(pod(), node({}), None)
    broken = term("db") | {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}
    with pytest.raises(UnreadableTermsError):
        hints.after_pod_change(pod(near=[broken]), None, pod("db"))


def test_registers_as_the_reference() -> None:
    pods, nodes = InterPodAffinity(Args()).events_to_register()
    assert (pods.event.resource, int(pods.event.action)) == ("Pod", 259)
    assert (nodes.event.resource, int(nodes.event.action)) == ("Node", 9)
    assert pods.hint is hints.after_pod_change
    assert nodes.hint is hints.after_node_change
