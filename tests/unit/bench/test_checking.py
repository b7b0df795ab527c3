"""The checker on small histories: what it says of them as they are stored, and of what a stream still
holds."""

from collections.abc import Sequence
from typing import Any

import pytest

from podyard.bench.checking import holding
from podyard.bench.checking.checker import OVERWRITTEN, Checker, Read
from podyard.bus import Delivery
from podyard.proto import codec, headers, subjects
from podyard.proto.placement import BoundPod, CommitRecord, Fence, Release, Usage, binding_of, tombstone_of
from tests.support import stored

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
BLUE = {"matchLabels": {"color": "blue"}}


def node(name: str, zone: str = "a", cpu: str = "4", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOST: name, ZONE: zone}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "pods": "10"}},
    }


def pod(name: str, place: str = "default", cpu: str = "1", port: int = 0, **spec: Any) -> dict[str, Any]:
    ports = {"ports": [{"containerPort": 80, "hostPort": port}]} if port else {"ports": [{"containerPort": 80}]}
    return {
        "metadata": {"name": name, "namespace": place, "uid": f"uid-{name}", "labels": {"color": "blue"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}, **ports}], **spec},
    }


def affine(kind: str, key: str = HOST, **more: Any) -> dict[str, Any]:
    term = {"labelSelector": BLUE, "topologyKey": key, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(**more: Any) -> list[dict[str, Any]]:
    return [{"maxSkew": 1, "topologyKey": ZONE, "labelSelector": BLUE, **more}]


def _release(name: str, to: str) -> Release:
    return Release(namespace="default", name=name, uid=f"uid-{name}", node=to, reason="terminated")


class Stream:
    """Writes as an api and a binder do. What is overwritten can be taken away."""

    def __init__(self) -> None:
        self.held: dict[str, Delivery] = {}
        """By subject, the last version."""
        self.batches: list[list[Delivery]] = []
        self._sequence = 0
        self._n = 0
        self._pods: dict[str, dict[str, Any]] = {}

    def put(self, resource: str, document: dict[str, Any]) -> None:
        message = stored.version(resource, document)
        if resource == "pods":
            self._pods[document["metadata"]["name"]] = document
        self._store([(message.subject, message.payload)])

    def bind(
        self,
        *places: tuple[str, str],
        epoch: int = 1,
        released: Sequence[tuple[str, str]] = (),
        again: Sequence[tuple[str, str]] = (),
    ) -> None:
        """A commit: pods and their nodes.

        :param again: whose tombstones are written again
        """
        self._n += 1
        position = self._sequence
        bound = tuple(self._bound(name, to) for name, to in places)
        gone = tuple(_release(name, to) for name, to in released)
        record = CommitRecord(
            n=self._n, epoch=epoch, batch=f"b{self._n}", bindings=bound, releases=gone, position=position
        )
        facts = [
            (subjects.binding(one.namespace, one.name, one.uid), codec.encode(binding_of(one, bound_at=1.0)))
            for one in bound
        ]
        facts += [
            (
                subjects.binding(one.namespace, one.name, one.uid),
                codec.encode(tombstone_of(one, released_at=2.0)),
            )
            for one in (*gone, *(_release(name, to) for name, to in again))
        ]
        fence = codec.encode(Fence(epoch=epoch, n=self._n, holder="binder"))
        self._store([*facts, (subjects.commit(self._n), codec.encode(record)), (subjects.FENCE, fence)])

    def _bound(self, name: str, to: str) -> BoundPod:
        document = self._pods[name]
        cpu = document["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        return BoundPod(
            namespace=document["metadata"]["namespace"],
            name=name,
            uid=f"uid-{name}",
            node=to,
            labels={"color": "blue"},
            usage=Usage(requests={"cpu": int(cpu) * 1000}),
        )

    def _store(self, messages: list[tuple[str, bytes]]) -> None:
        batch: list[Delivery] = []
        for number, (subject, payload) in enumerate(messages, start=1):
            self._sequence += 1
            before = self.held[subject].sequence if subject in self.held else 0
            lines = {headers.EXPECTED_LAST_SUBJECT_SEQUENCE: str(before)}
            if len(messages) > 1:
                lines[headers.BATCH_ID] = f"batch-{self._sequence - number}"
                if number == len(messages):
                    lines[headers.BATCH_COMMIT] = "1"
            found = Delivery(subject, payload, self._sequence, 0.0, lines)
            self.held[subject] = found
            batch.append(found)
        self.batches.append(batch)

    def followed(self) -> Checker:
        """What the checker says of every message."""
        checker = Checker()
        for batch in self.batches:
            checker.stored([Read(one.subject, one.payload, one.sequence, one.headers) for one in batch])
        return checker

    def left(self) -> Checker:
        """What it says of what the stream still holds."""
        return holding.judged(sorted(self.held.values(), key=lambda one: one.sequence))


@pytest.fixture
def stream() -> Stream:
    made = Stream()
    made.put("nodes", node("n1"))
    made.put("nodes", node("n2", "b"))
    return made


def both(stream: Stream) -> list[str]:
    """It says the same of what was stored and of what is left, where nothing is overwritten but the fence."""
    followed, left = stream.followed(), stream.left()
    assert followed.violations == left.violations
    assert not left.unjudged
    return left.violations


def put(stream: Stream, *pods: dict[str, Any]) -> None:
    for one in pods:
        stream.put("pods", one)


def test_a_good_history_is_judged_in_full_and_found_good(stream: Stream):
    put(stream, pod("one"), pod("two"), pod("three"))
    stream.bind(("one", "n1"), ("two", "n1"))
    stream.bind(("three", "n2"))
    assert both(stream) == []
    left = stream.left()
    assert (left.commits, left.bound, left.judged) == (2, 3, 3)


def test_a_pod_that_is_bound_twice(stream: Stream):
    put(stream, pod("one"), pod("two"))
    stream.bind(("one", "n1"))
    stream.bind(("one", "n2"))
    assert "commit 2 binds one to n2, which was bound before" in stream.followed().violations
    assert "commit 2 binds one to n2, which was bound before" in stream.left().violations


def test_a_commit_that_is_missing(stream: Stream):
    put(stream, pod("one"), pod("two"), pod("three"))
    for name in ("one", "two", "three"):
        stream.bind((name, "n1"))
    del stream.held[subjects.commit(2)]
    assert "commit 3 is the 2th" in stream.left().violations


def test_a_binder_that_was_deposed(stream: Stream):
    put(stream, pod("one"), pod("two"), pod("three"))
    stream.bind(("one", "n1"), epoch=2)
    stream.bind(("two", "n1"), epoch=1)
    stream.bind(("three", "n1"), epoch=2)
    assert any("with epoch 1 writes after" in text for text in stream.left().violations)


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "overload": ([pod("one", cpu="3"), pod("two", cpu="2")], "overload {'cpu': (5000, 4000)}"),
    "host port": ([pod("one", port=80), pod("two", port=80)], "host port"),
    "own anti-affinity": ([pod("one"), pod("two", affinity=affine("podAntiAffinity"))], "anti-affinity with one"),
    "its anti-affinity": ([pod("one", affinity=affine("podAntiAffinity")), pod("two")], "anti-affinity of one"),
    "node selector": ([pod("one"), pod("two", nodeSelector={ZONE: "b"})], "node selector"),
    "affinity": ([pod("one", "other"), pod("two", affinity=affine("podAffinity", namespaces=["third"]))], "nobody in"),
    "spread": ([pod("one"), pod("two", topologySpreadConstraints=spread())], "spread {'a': 1, 'b': 0}"),
}


@pytest.mark.parametrize(("pods", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_binding_against_the_rules(stream: Stream, pods: list[dict[str, Any]], why: str):
    put(stream, *pods)
    stream.bind(("one", "n1"), ("two", "n1"))
    [text] = both(stream)
    assert text.startswith("commit 1 binds two to n1 at 4, against: ")
    assert why in text


ALLOWED: dict[str, list[dict[str, Any]]] = {
    "another protocol's port is none": [pod("one", port=80), pod("two", port=81)],
    "anti-affinity looks in its own namespace": [
        pod("one", "other"),
        pod("two", affinity=affine("podAntiAffinity")),
    ],
    "a soft spread": [pod("one"), pod("two", topologySpreadConstraints=spread(whenUnsatisfiable="ScheduleAnyway"))],
    "a spread counts its own namespace": [pod("one", "other"), pod("two", topologySpreadConstraints=spread())],
    "the first of its group": [pod("one", "other"), pod("two", affinity=affine("podAffinity"))],
    "affinity in a named namespace": [
        pod("one", "other"),
        pod("two", affinity=affine("podAffinity", namespaces=["other"])),
    ],
    "node affinity": [
        pod("one"),
        pod(
            "two",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                        ]
                    }
                }
            },
        ),
    ],
}


@pytest.mark.parametrize("pods", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_binding_by_the_rules(stream: Stream, pods: list[dict[str, Any]]):
    put(stream, *pods)
    stream.bind(("one", "n1"), ("two", "n1"))
    assert both(stream) == []


@pytest.mark.parametrize(("team", "found"), [("devops", 1), ("sales", 0)])
def test_terms_look_in_the_namespaces_that_they_select(stream: Stream, team: str, found: int):
    stream.put("namespaces", {"metadata": {"name": "other", "uid": "uid-other", "labels": {"team": team}}})
    chosen = {"namespaceSelector": {"matchLabels": {"team": "devops"}}}
    put(stream, pod("one", "other"), pod("two", affinity=affine("podAntiAffinity", **chosen)))
    stream.bind(("one", "n1"), ("two", "n1"))
    assert len(both(stream)) == found


@pytest.mark.parametrize(("least", "found"), [(2, 0), (3, 1)])
def test_a_spread_over_too_few_domains_counts_an_empty_one(stream: Stream, least: int, found: int):
    put(stream, pod("one"), pod("two"), pod("three", topologySpreadConstraints=spread(minDomains=least)))
    stream.bind(("one", "n1"), ("two", "n2"), ("three", "n1"))
    assert len(both(stream)) == found


@pytest.mark.parametrize(
    ("policy", "found"),
    [({}, 1), ({"nodeAffinityPolicy": "Ignore"}, 1), ({"nodeTaintsPolicy": "Honor"}, 0)],
)
def test_a_spread_counts_nodes_by_its_policies(stream: Stream, policy: dict[str, str], found: int):
    """The node of the third zone, which is empty, has a taint."""
    stream.put("nodes", node("n3", "c", taints=[{"key": "dedicated", "effect": "NoExecute"}]))
    put(stream, pod("one"), pod("two"), pod("three", topologySpreadConstraints=spread(**policy)))
    stream.bind(("one", "n1"), ("two", "n2"), ("three", "n1"))
    assert len(both(stream)) == found


@pytest.mark.parametrize(("policy", "found"), [("Honor", 0), ("Ignore", 1)])
def test_a_spread_counts_nodes_that_the_pod_selects(stream: Stream, policy: str, found: int):
    spreads = spread(nodeAffinityPolicy=policy)
    put(stream, pod("one"), pod("two", nodeSelector={ZONE: "a"}, topologySpreadConstraints=spreads))
    stream.bind(("one", "n1"), ("two", "n1"))
    assert len(both(stream)) == found


@pytest.mark.parametrize(
    "source", [{"csi": {"driver": "ebs.csi.aws.com"}}, {"awsElasticBlockStore": {"volumeID": "v"}}]
)
def test_a_node_takes_as_many_volumes_of_a_driver_as_it_can(stream: Stream, source: dict[str, Any]):
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 1}}]
    stream.put("csinodes", {"metadata": {"name": "n1", "uid": "uid-csi"}, "spec": {"drivers": drivers}})
    pods: list[dict[str, Any]] = []
    for name in ("one", "two"):
        held = {"namespace": "default", "name": name}
        volume: dict[str, Any] = {
            "metadata": {"name": f"v-{name}", "uid": f"v-{name}"},
            "spec": {**source, "claimRef": held},
        }
        claim: dict[str, Any] = {"metadata": {**held, "uid": f"c-{name}"}}
        claim["spec"] = {"volumeName": f"v-{name}", "accessModes": ["ReadWriteOnce"]}
        stream.put("persistentvolumes", volume)
        stream.put("persistentvolumeclaims", claim)
        pods.append(pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]))
    put(stream, *pods)
    stream.bind(("one", "n1"))
    assert both(stream) == []
    stream.bind(("two", "n1"))
    assert [text.partition("against: ")[2] for text in both(stream)] == ["volume limit of ebs.csi.aws.com: 2 of 1"]


def test_taints_keep_pods_away_that_do_not_tolerate_them(stream: Stream):
    stream.put("nodes", node("n3", taints=[{"key": "dedicated", "effect": "NoSchedule"}], unschedulable=True))
    put(stream, pod("one"), pod("two", tolerations=[{"operator": "Exists"}]))
    stream.bind(("two", "n3"))
    assert both(stream) == []
    stream.bind(("one", "n3"))
    assert len(both(stream)) == 1


def test_who_left_takes_no_room(stream: Stream):
    put(stream, pod("one", cpu="3"), pod("two", cpu="3"))
    stream.bind(("one", "n1"))
    stream.bind(released=[("one", "n1")])
    stream.bind(("two", "n1"))
    left = stream.left()
    assert (left.violations, left.released) == ([], 1)


def test_a_tombstone_is_written_again_to_expire(stream: Stream):
    """Its first version is overwritten, and the batch that writes it again tells of other pods."""
    put(stream, pod("one"), pod("two"))
    stream.bind(("one", "n1"))
    stream.bind(released=[("one", "n1")])
    stream.bind(("two", "n1"), again=[("one", "n1")])
    assert both(stream) == []


def test_a_release_of_what_is_not_there(stream: Stream):
    put(stream, pod("one"), pod("two"))
    stream.bind(("one", "n1"))
    stream.bind(released=[("one", "n2")])
    stream.bind(("two", "n1"))
    assert "commit 2 releases one from n2, where it is not" in stream.left().violations


def test_of_a_pod_that_was_written_again_its_room_is_judged(stream: Stream):
    """Its version at the time of the decision is gone: what its binding says that it takes is there."""
    put(stream, pod("one", cpu="3"), pod("two", cpu="2"))
    stream.bind(("one", "n1"))
    put(stream, pod("one", cpu="3", nodeSelector={ZONE: "b"}))
    assert stream.followed().violations == []
    left = stream.left()
    assert (left.violations, dict(left.unjudged), left.judged) == ([], {OVERWRITTEN: 1}, 0)
    stream.bind(("two", "n1"))
    assert "commit 2 binds two to n1 at 8, against: overload {'cpu': (5000, 4000)}" in stream.left().violations


def renamed(name: str) -> dict[str, Any]:
    made = pod(name)
    made["metadata"]["labels"] = {"color": "red"}
    return made


NOT_RED = {"matchExpressions": [{"key": "color", "operator": "NotIn", "values": ["red"]}]}


@pytest.mark.parametrize("selector", [BLUE, NOT_RED])
def test_of_a_pod_that_was_written_again_nobody_knows_which_labels_it_had(stream: Stream, selector: dict[str, Any]):
    put(stream, pod("one"), pod("two", affinity=affine("podAntiAffinity", labelSelector=selector)))
    stream.bind(("one", "n1"))
    put(stream, renamed("one"))
    stream.bind(("two", "n1"))
    put(stream, pod("one"))
    assert stream.followed().violations == []
    assert stream.left().violations == []


def test_whoever_needs_a_mate_may_have_had_one_that_was_written_again(stream: Stream):
    near = pod("two", affinity=affine("podAffinity"))
    near["metadata"]["labels"] = {}
    put(stream, pod("one"), near)
    stream.bind(("one", "n1"))
    stream.bind(("two", "n1"))
    put(stream, renamed("one"))
    assert stream.followed().violations == []
    left = stream.left()
    assert (left.violations, left.unjudged[OVERWRITTEN]) == ([], 2), "of the first itself, of the second its mate"


def test_room_is_judged_of_a_pod_that_was_written_again_after_its_own_binding(stream: Stream):
    put(stream, pod("one", cpu="3"), pod("two", cpu="2"))
    stream.bind(("one", "n1"))
    stream.bind(("two", "n1"))
    put(stream, pod("two", cpu="2", nodeSelector={ZONE: "a"}))
    assert stream.left().violations == ["commit 2 binds two to n1, against: overload {'cpu': (5000, 4000)}"]


def test_a_binding_of_what_is_written_again_is_not_taken_for_one_of_nothing(stream: Stream):
    put(stream, pod("one"))
    stream.bind(("one", "n1"))
    assert stream.left().violations == []
    del stream.held[subjects.object_("pods", "default", "one")]
    assert stream.left().violations == ["commit 1 binds one to n1, which is not there at 3"]


def test_a_field_that_the_rules_do_not_read_is_told(stream: Stream):
    put(stream, pod("one", overhead={"cpu": "1"}))
    stream.bind(("one", "n1"))
    assert dict(stream.left().unjudged) == {"the rules do not read overhead": 1}
    assert stream.followed().violations == ["commit 1 binds one to n1, and the rules do not read overhead"]


def test_when_the_first_records_have_expired_bindings_still_count(stream: Stream):
    put(stream, pod("one", cpu="3"), pod("two", cpu="2"))
    stream.bind(("one", "n1"))
    stream.bind(("two", "n1"))
    del stream.held[subjects.commit(1)]
    left = stream.left()
    assert [text.partition("against: ")[2] for text in left.violations] == ["overload {'cpu': (5000, 4000)}"]
    assert sum(left.unjudged.values()) == 1


def test_messages_of_a_batch_are_read_together():
    def read(sequence: int, batch: str, *, ends: bool = False) -> Read:
        lines = {headers.BATCH_ID: batch} if batch else {}
        return Read("cluster.census", b"", sequence, lines | ({headers.BATCH_COMMIT: "1"} if ends else {}))

    reads = [read(1, "a"), read(2, "a", ends=True), read(3, ""), read(4, "b"), read(6, "c", ends=True), read(7, "")]
    assert [[one.sequence for one in batch] for batch in holding.batches(reads)] == [[1, 2], [3], [4], [6], [7]]


def test_who_came_in_the_place_of_one_that_left_keeps_others_away_too(stream: Stream):
    alone = affine("podAntiAffinity")
    put(stream, pod("one", affinity=alone), pod("two", affinity=alone), pod("three"))
    stream.bind(("one", "n1"))
    stream.bind(released=[("one", "n1")])
    stream.bind(("two", "n1"))
    assert stream.left().violations == []
    stream.bind(("three", "n1"))
    assert len(stream.left().violations) == 1
