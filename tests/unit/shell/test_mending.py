"""What takes the place of a binding that cannot be read."""

import pytest

from podyard.bus.outgoing import Outgoing
from podyard.cluster.changes import Unreadable
from podyard.cluster.pods import PodView
from podyard.proto import codec, subjects
from podyard.proto.placement import Binding, CommitRecord, Fence, Tombstone
from podyard.shell import mending
from podyard.shell.mending import MendError, Standing
from tests.support import objects

FOUND = Unreadable(subjects.binding("default", "a", "uid-a"), 7, "no JSON")
STANDING = Standing(Fence(epoch=3, n=5), 6)


def a_pod(name: str = "a") -> PodView:
    return objects.view(objects.pod(name, uid="uid-a", cpu="500m", labels={"app": "web"}))


def record(messages: tuple[Outgoing, ...]) -> CommitRecord:
    return codec.decode(CommitRecord, messages[1].payload)


def test_who_is_bound_takes_what_its_object_requests_in_binding_and_record_alike() -> None:
    mend = mending.bound(FOUND, a_pod(), "n1", STANDING, who="me", now=9.0)
    binding = codec.decode(Binding, mend.messages[0].payload)
    assert (binding.node, binding.usage.requests, binding.labels, binding.forced) == (
        "n1",
        {"cpu": 500},
        {"app": "web"},
        True,
    )
    assert binding.bound_at == 9.0
    [entry] = record(mend.messages).bindings
    assert {name: getattr(binding, name) for name in entry.__struct_fields__} == {
        name: getattr(entry, name) for name in entry.__struct_fields__
    }


def test_what_has_ended_is_a_tombstone_in_its_place_and_a_release_in_the_record() -> None:
    mend = mending.gone(FOUND, None, "n1", STANDING, who="me", now=9.0)
    tombstone = codec.decode(Tombstone, mend.messages[0].payload)
    [release] = record(mend.messages).releases
    assert (tombstone.uid, tombstone.node, tombstone.reason, tombstone.released_at) == (
        "uid-a",
        "n1",
        "terminated",
        9.0,
    )
    assert (release.uid, release.node, release.reason) == ("uid-a", "n1", "terminated")


@pytest.mark.parametrize("pod", [None, a_pod("b")], ids=["none", "of another name"])
def test_nobody_is_bound_by_another_pods_requests(pod: PodView | None) -> None:
    with pytest.raises(MendError, match=r"the object of pod default/a \(uid uid-a\) is not there"):
        mending.bound(FOUND, pod, "n1", STANDING, who="me", now=9.0)
