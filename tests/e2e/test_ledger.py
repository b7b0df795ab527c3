"""The sums that the end-to-end tests trust fail on a stream in which something is wrong."""

import msgspec
import pytest

from podyard.cluster.nodes import NodeView
from podyard.objects import decoding
from podyard.proto.placement import Binding, BoundPod, CommitRecord, Placement, Release, Tombstone, Usage
from tests.e2e.ledger import Ledger, check_commits
from tests.e2e.stage import node


def nodes() -> dict[str, NodeView]:
    """One node with 2 CPUs."""
    found = decoding.decode("nodes", msgspec.json.encode(node("n", cpu="2")))
    return {"n": NodeView(found, "n", "uid-n", 1)}


def bound(uid: str, cpu: int = 1000) -> BoundPod:
    return BoundPod(namespace="default", name=uid, uid=uid, node="n", usage=Usage(requests={"cpu": cpu}))


def commit(n: int, *bindings: BoundPod, releases: tuple[Release, ...] = ()) -> CommitRecord:
    return CommitRecord(n=n, epoch=1, batch=str(n), bindings=bindings, releases=releases)


def release(uid: str) -> Release:
    return Release(namespace="default", name=uid, uid=uid, node="n", reason="terminated")


def live(*uids: str) -> dict[str, Placement]:
    return {
        uid: Binding(namespace="default", name=uid, uid=uid, node="n", usage=Usage(requests={"cpu": 1000}))
        for uid in uids
    }


def ended(uid: str) -> dict[str, Placement]:
    return {uid: Tombstone(namespace="default", name=uid, uid=uid, node="n", reason="terminated")}


def test_what_adds_up_passes() -> None:
    commits = [commit(1, bound("a"), bound("b")), commit(2, bound("c"), releases=(release("a"),))]
    check_commits(Ledger(commits, {**live("b", "c"), **ended("a")}), nodes())


@pytest.mark.parametrize(
    ("ledger", "told"),
    [
        pytest.param(
            Ledger([commit(1, bound("a")), commit(2, bound("a"))], live("a")), "commit 2 binds a a again", id="twice"
        ),
        pytest.param(
            Ledger(
                [commit(1, bound("a")), commit(2, releases=(release("a"),)), commit(3, bound("a"))],
                live("a"),
            ),
            "commit 3 binds a a again",
            id="again after its release",
        ),
        pytest.param(
            Ledger([commit(1, bound("a"), bound("b", 1001))], live("a", "b")),
            "commit 1 overloads n: .*'cpu': .2001, 2000.",
            id="too much",
        ),
        pytest.param(Ledger([commit(2, bound("a"))], live("a")), "there are .2.", id="a commit is missing"),
        pytest.param(
            Ledger([commit(1, bound("a"))], live("a", "b")), "bindings say .*'b'", id="bound without a commit"
        ),
        pytest.param(
            Ledger([commit(1, bound("a"))], ended("a")), "commits leave .*'a'", id="released without a commit"
        ),
        pytest.param(Ledger([commit(1, bound("a", 7))], live("a")), "commits take .*7.*say .*1000", id="another usage"),
    ],
)
def test_what_does_not_add_up_fails(ledger: Ledger, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_commits(ledger, nodes())
