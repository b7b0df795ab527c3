"""What may help a pod that hard spread constraints kept off all nodes."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from podyard.framework import events
from podyard.framework.events import HintAnswer, HintResult
from podyard.framework.hint_sharing import OwnRead
from podyard.framework.status import PluginFault
from podyard.objects.core import Node, Pod
from podyard.objects.errors import SelectorError
from podyard.plugins.hinted import UnexpectedObjectError
from podyard.plugins.pod_topology_spread.args import Args
from podyard.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.unit.plugins.pod_topology_spread.clusters import HARD, SOFT, Cluster, make_node, make_pod
from tests.unit.plugins.pod_topology_spread.plain import HOST, ZONE

WEB = {"matchLabels": {"app": "web"}}
LISTED = {
    "defaultingType": "List",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": HARD}],
}


def constraint(key: str = ZONE, action: str = HARD, selector: Mapping[str, Any] = WEB, **more: Any) -> dict[str, Any]:
    """A constraint as a manifest has it."""
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": dict(selector)} | more


def parked(*constraints: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Pod:
    """The pod that waits."""
    return make_pod("parked", labels=labels, spec={"topologySpreadConstraints": list(constraints)}).pod


def other(
    app: str = "web", *, node: str = "n1", namespace: str = "one", tolerations: int = 0, nominated: str = ""
) -> Pod:
    """A pod that something happened to."""
    spec = {"nodeName": node, "tolerations": [{"key": "t", "operator": "Exists"}] * tolerations}
    pod = make_pod("other", labels={"app": app}, namespace=namespace, spec=spec).pod
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=nominated))


def hint(kind: str, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """The answer of the plugin with default arguments."""
    return ask(PodTopologySpread(Args()), kind, pod, old, new)


def ask(plugin: PodTopologySpread, kind: str, pod: Pod, old: object | None, new: object | None) -> HintResult:
    """The plugin's answer."""
    (found,) = [one.hint for one in plugin.events_to_register() if one.event.resource == kind]
    assert found is not None
    return found(pod, old, new)


ZONED, UNZONED = make_node("n1", labels={ZONE: "a", HOST: "n1"}), make_node("n1", labels={HOST: "n1"})
MOVED = make_node("n1", labels={ZONE: "b", HOST: "n1"})
TAINTED = make_node("n1", labels={ZONE: "a", HOST: "n1"}, taints=[{"key": "t", "effect": "NoSchedule"}])
EMPTY_ZONE = make_node("n1", labels={ZONE: "", HOST: "n1"})


@pytest.mark.parametrize(
    ("old", "new", "queue", "words"),
    [
        pytest.param(
            None,
            other(),
            True,
            "one/other, which counts for the spread over topology.kubernetes.io/zone, came",
            id="came",
        ),
        pytest.param(None, other("db"), False, "counts for none", id="came, does not count"),
        pytest.param(None, other(node=""), False, "on no node", id="came, is on no node"),
        pytest.param(None, other(namespace="two"), False, "another namespace", id="came, of another namespace"),
        pytest.param(other(), None, True, "is gone", id="gone"),
        pytest.param(other("db"), None, False, "counts for none", id="gone, did not count"),
        pytest.param(other(node="", nominated="n1"), None, True, "is gone", id="a nomination ended"),
        pytest.param(other(node=""), None, False, "on no node", id="gone from no node"),
        pytest.param(other(), other("db"), True, "counts no more for the spread over", id="counts no more"),
        pytest.param(other("db"), other(), True, "counts now for the spread over", id="counts now"),
        pytest.param(other("db"), other("mail"), False, "counts as before", id="other labels, counts as before"),
        pytest.param(other(), other(), False, "are the same", id="same labels"),
    ],
)
def test_pods(old: Pod | None, new: Pod | None, queue: bool, words: str) -> None:
    plugin, pod = PodTopologySpread(Args()), parked(constraint())
    answer = ask(plugin, events.POD, pod, old, new)
    assert answer.answer == (HintAnswer.QUEUE if queue else HintAnswer.SKIP)
    assert words in answer.reason
    assert not queue or named_by_index(plugin, pod, old, new)


def named_by_index(plugin: PodTopologySpread, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Whether the index of events of pods names this parked pod."""
    (registration,) = [one for one in plugin.events_to_register() if one.event.resource == events.POD]
    assert registration.new_index is not None
    index = registration.new_index()
    index.add(plugin.hint_signature(pod))
    return list(index.candidates(old, new) or ()) == [plugin.hint_signature(pod)]


@pytest.mark.parametrize(
    ("old", "new", "queue", "words"),
    [
        pytest.param(None, ZONED, True, "is new", id="new"),
        pytest.param(None, UNZONED, False, "has no label topology.kubernetes.io/zone", id="new without label"),
        pytest.param(None, EMPTY_ZONE, True, "is new", id="new with an empty label"),
        pytest.param(UNZONED, None, False, "has no label", id="gone without label"),
        pytest.param(UNZONED, ZONED, True, "joined", id="got the label"),
        pytest.param(ZONED, UNZONED, True, "left", id="lost the label"),
        pytest.param(ZONED, MOVED, True, "is in another domain of topology.kubernetes.io/zone", id="moved"),
        pytest.param(ZONED, TAINTED, True, "has other taints", id="got a taint"),
        pytest.param(TAINTED, ZONED, True, "has other taints", id="lost a taint"),
        pytest.param(ZONED, ZONED, False, "where it was", id="the same"),
        pytest.param(UNZONED, UNZONED, False, "as before", id="the same, without label"),
    ],
)
def test_nodes(old: Node | None, new: Node | None, queue: bool, words: str) -> None:
    answer = hint(events.NODE, parked(constraint(), constraint(HOST)), old, new)
    assert answer.answer == (HintAnswer.QUEUE if queue else HintAnswer.SKIP)
    assert words in answer.reason


def test_a_node_that_leaves_its_domain_helps_too() -> None:
    """A domain without pods that goes raises the lowest count of those that stay."""
    answer = hint(events.NODE, parked(constraint()), ZONED, None)
    assert answer.answer == HintAnswer.QUEUE
    assert answer.reason == "n1, a node of the pod's spread domains, is gone"


def test_pods_that_come_and_change_reach_the_plugin() -> None:
    pod = parked(constraint())
    assert hint(events.POD, pod, None, other()).answer == HintAnswer.QUEUE
    assert hint(events.POD, pod, other(), other("db")).answer == HintAnswer.QUEUE


def test_own_tolerations_help_if_taints_are_honored() -> None:
    def changed(pod: Pod, tolerations: int) -> Pod:
        toleration = other(tolerations=1).spec.tolerations[:tolerations]
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, tolerations=toleration))

    for policy, expected in (("Honor", HintAnswer.QUEUE), ("Ignore", HintAnswer.SKIP)):
        pod = parked(constraint(nodeTaintsPolicy=policy))
        assert hint(events.POD, pod, changed(pod, 0), changed(pod, 1)).answer == expected
    pod = parked(constraint(nodeTaintsPolicy="Honor"))
    assert hint(events.POD, pod, other(), other(tolerations=1)).answer == HintAnswer.SKIP, "not of other pods"


def test_own_labels_help_although_the_pod_is_on_no_node() -> None:
    pod = parked(constraint(), labels={"app": "web"})
    relabelled = parked(constraint(), labels={"app": "db"})
    assert hint(events.POD, relabelled, pod, relabelled).answer == HintAnswer.QUEUE


def test_without_hard_constraints_nodes_help_and_pods_do_not() -> None:
    pod = parked(constraint(action=SOFT))
    assert hint(events.NODE, pod, None, UNZONED).answer == HintAnswer.QUEUE
    assert hint(events.NODE, pod, UNZONED, None).answer == HintAnswer.QUEUE
    assert hint(events.NODE, pod, UNZONED, ZONED).answer == HintAnswer.SKIP
    assert hint(events.NODE, pod, ZONED, TAINTED).answer == HintAnswer.QUEUE
    assert hint(events.POD, pod, None, other()).answer == HintAnswer.SKIP


def under_defaults(*services: str) -> PodTopologySpread:
    """A plugin with a hard default constraint, in a cluster with Services for pods of these apps."""
    plugin, cluster = PodTopologySpread(msgspec.convert(LISTED, Args)), Cluster()
    for app in services:
        cluster.known.put(
            "services", {"metadata": {"name": app, "namespace": "one"}, "spec": {"selector": {"app": app}}}
        )
    plugin.use_objects(cluster.known)
    return plugin


def test_under_hard_default_constraints_the_pods_services_say_who_counts() -> None:
    pod = make_pod("parked", labels={"app": "web"}).pod
    plugin = under_defaults("web", "db")
    assert ask(plugin, events.POD, pod, None, other()).answer == HintAnswer.QUEUE
    assert ask(plugin, events.POD, pod, None, other("db")).answer == HintAnswer.SKIP
    assert ask(plugin, events.POD, pod, other("db"), other()).answer == HintAnswer.QUEUE
    assert ask(plugin, events.NODE, pod, None, ZONED).answer == HintAnswer.QUEUE
    assert ask(plugin, events.NODE, pod, None, UNZONED).answer == HintAnswer.SKIP
    assert plugin.hint_signature(pod) != plugin.hint_signature(make_pod("parked", labels={"app": "db"}).pod)


def test_a_pod_that_belongs_to_nothing_has_no_default_constraints() -> None:
    pod = make_pod("parked", labels={"app": "web"}).pod
    plugin = under_defaults("db")
    assert ask(plugin, events.POD, pod, None, other()).answer == HintAnswer.SKIP
    assert ask(plugin, events.NODE, pod, None, UNZONED).answer == HintAnswer.QUEUE


def test_without_a_view_of_services_a_hint_fails_which_counts_as_queue() -> None:
    pod = make_pod("parked", labels={"app": "web"}).pod
    with pytest.raises(PluginFault):
        ask(PodTopologySpread(msgspec.convert(LISTED, Args)), events.POD, pod, None, other())


def test_match_label_keys_narrow_whom_a_pod_counts() -> None:
    pod = parked(constraint(matchLabelKeys=["rev"]), labels={"app": "web", "rev": "1"})
    assert hint(events.POD, pod, None, other()).answer == HintAnswer.SKIP
    mate = make_pod("mate", labels={"app": "web", "rev": "1"}, spec={"nodeName": "n1"}).pod
    assert hint(events.POD, pod, None, mate).answer == HintAnswer.QUEUE


def test_what_cannot_be_read_is_raised_so_that_it_counts_as_queue() -> None:
    faulty = parked(constraint(selector={"matchExpressions": [{"key": "app", "operator": "Near"}]}))
    with pytest.raises(SelectorError):
        hint(events.POD, faulty, None, other())
    with pytest.raises(UnexpectedObjectError):
        hint(events.NODE, parked(constraint()), None, other())


def test_pods_of_one_hint_signature_get_one_answer_and_the_index_leaves_out_other_namespaces_only() -> None:
    plugin = PodTopologySpread(Args())
    pod, same = parked(constraint(), labels={"x": "1"}), parked(constraint(), labels={"x": "2"})
    assert plugin.hint_signature(pod) == plugin.hint_signature(same)
    keyed = [parked(constraint(matchLabelKeys=["x"]), labels={"x": value}) for value in "12"]
    assert plugin.hint_signature(keyed[0]) != plugin.hint_signature(keyed[1])
    (registration,) = [one for one in plugin.events_to_register() if one.event.resource == events.POD]
    assert registration.new_index is not None
    index = registration.new_index()
    index.add(plugin.hint_signature(pod))
    assert list(index.candidates(None, other()) or ()) == [plugin.hint_signature(pod)]
    assert list(index.candidates(None, other(namespace="two")) or ()) == []
    assert index.candidates(None, make_node("n1")) is None
    index.remove(plugin.hint_signature(pod))
    assert list(index.candidates(None, other()) or ()) == []


SSD, HDD = make_node("n1", labels={ZONE: "a", "disk": "ssd"}), make_node("n1", labels={ZONE: "a", "disk": "hdd"})
IN_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
BY_AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_SSD]}}}


@pytest.mark.parametrize(
    ("old", "new", "queue"),
    [
        pytest.param(SSD, HDD, True, id="matches no more"),
        pytest.param(HDD, SSD, False, id="matches now"),
        pytest.param(SSD, make_node("n1", labels={ZONE: "b", "disk": "ssd"}), False, id="matches as before"),
        pytest.param(None, SSD, False, id="new"),
    ],
)
@pytest.mark.parametrize(
    "spec", [{"nodeSelector": {"disk": "ssd"}}, {"affinity": BY_AFFINITY}], ids=["selector", "affinity"]
)
def test_its_own_hint_knows_that_a_node_counts_no_more(
    spec: dict[str, Any], old: Node | None, new: Node, queue: bool
) -> None:
    plugin = PodTopologySpread(Args())
    (registration,) = plugin.own_events_to_register()
    pod = make_pod("parked", spec={"topologySpreadConstraints": [constraint()], **spec}).pod
    answer = registration.hint(pod, ("too few on nodes that it chooses",), old, new)
    assert answer.answer == (HintAnswer.QUEUE if queue else HintAnswer.SKIP)
    assert registration.new_index is not None
    index, signature = (
        registration.new_index(),
        OwnRead(plugin.hint_signature(pod), ("too few on nodes that it chooses",)),
    )
    index.add(signature)
    assert not queue or list(index.candidates(old, new) or ()) == [signature]
    other = make_node("n1", labels={ZONE: "a", "disk": "ssd", "rack": "1"})
    assert list(index.candidates(SSD, other) or ()) == []
