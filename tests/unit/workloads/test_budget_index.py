"""The index of budgets says what one would find by comparing every budget with every pod, and looks at
few."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects import selectors
from podyard.objects.errors import SelectorError
from podyard.objects.selectors import Selector
from podyard.workloads.core.budget_index import BUDGETS, BudgetIndex
from tests.support import objects, stored
from tests.support.stream import ClusterStream

NAMESPACES = ("a", "b")
LABELS = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from("xy"), max_size=2)
SELECTORS: Any = st.one_of(
    st.none(),
    st.just({}),
    LABELS.map(lambda labels: {"matchLabels": labels}),
    st.sampled_from(
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "tier", "operator": "is", "values": ["x"]}]},
        )
    ),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("pods", "pods", BUDGETS)),
        st.sampled_from(NAMESPACES),
        st.sampled_from("123"),
        st.one_of(st.none(), st.tuples(LABELS, SELECTORS, st.booleans())),
    ),
    max_size=40,
)


class Followed:
    """A view and the index that follows it."""

    def __init__(self) -> None:
        self.stream, self.view = ClusterStream(lambda: 1000.0), ClusterView()
        self.view.begin_listing()
        self.view.end_listing(0)
        self.index = BudgetIndex(self.view)

    def put(self, resource: str, namespace: str, name: str, **more: Any) -> list[ObjectKey]:
        if resource == "pods":
            document = objects.pod(name, namespace=namespace, **more)
        else:
            document = {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, **more}
        self.stream.put(stored.version(resource, document))
        return self.follow()

    def remove(self, resource: str, namespace: str, name: str) -> list[ObjectKey]:
        self.stream.put(stored.marker(resource, {"metadata": {"name": name, "namespace": namespace}}))
        return self.follow()

    def follow(self) -> list[ObjectKey]:
        changes = self.view.apply(self.stream.log[-1])
        return [key for change in changes for key in self.index.follow(change)]


def selected(view: ClusterView) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Pods by budget, found the long way."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, budget in view.objects(BUDGETS).items():
        try:
            selector = selectors.compile_labels(budget.spec.selector)
        except SelectorError:
            selector = selectors.compile_labels(None)
        found[key] = {one for one, pod in view.pods.items() if one[0] == key[0] and selector.matches(pod.labels)}
    return found


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_budgets_have_the_pods_that_they_select_after_every_change(steps: list[Any]) -> None:
    world = Followed()
    for resource, namespace, name, wanted in steps:
        before = selected(world.view)
        if wanted is None:
            concerned = world.remove(resource, namespace, name)
        elif resource == "pods":
            concerned = world.put(resource, namespace, name, labels=wanted[0], uid=f"{name}-{wanted[2]}")
        else:
            spec = {} if wanted[1] is None else {"selector": wanted[1]}
            concerned = world.put(resource, namespace, name, spec=spec, status={"disruptionsAllowed": int(wanted[2])})
        now = selected(world.view)
        for key, pods in now.items():
            index = world.index.pods_of(ObjectKey(BUDGETS, *key))
            assert len(index) == len(pods)
            assert {pod.key for pod in index} == pods
        for there in NAMESPACES:
            keys = {key.namespaced_name for key in world.index.of_namespace(there)}
            assert keys == {key for key in now if key[0] == there}
        if resource == "pods":
            pod = (namespace, name)
            assert {key.namespaced_name for key in concerned} >= {
                key for key in now if pod in now[key] or pod in before.get(key, ())
            }


@pytest.mark.parametrize("change", ["a pod", "a budget's status"])
def test_a_change_looks_at_few(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """300 pods and 300 budgets: a pod that changes meets its own, a budget with another status meets
    nobody."""
    world = Followed()
    for number in range(300):
        world.put("pods", "a", f"p{number}", labels={"app": f"x{number}"})
        world.put(BUDGETS, "a", f"b{number}", spec={"selector": {"matchLabels": {"app": f"x{number}"}}})
    asked: list[Selector] = []
    matches = Selector.matches
    monkeypatch.setattr(Selector, "matches", lambda self, labels: asked.append(self) or matches(self, labels))
    if change == "a pod":
        assert world.put("pods", "a", "p7", labels={"app": "x8"}) == [
            ObjectKey(BUDGETS, "a", "b7"),
            ObjectKey(BUDGETS, "a", "b8"),
        ]
        assert len(asked) == 1
    else:
        spec = {"selector": {"matchLabels": {"app": "x7"}}}
        world.put(BUDGETS, "a", "b7", spec=spec, status={"disruptionsAllowed": 3})
        assert asked == []
        assert [pod.name for pod in world.index.pods_of(ObjectKey(BUDGETS, "a", "b7"))] == ["p7"]
