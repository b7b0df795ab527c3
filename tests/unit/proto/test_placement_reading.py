"""What is stored of a binding is that of the pod in its subject, or cannot be read."""

import pytest

from podyard.proto import codec, placement_reading, subjects
from podyard.proto.codec import MessageError
from podyard.proto.placement import Binding, Tombstone

STORED = {
    "binding": Binding(namespace="default", name="a", uid="uid-a", node="n1"),
    "tombstone": Tombstone(namespace="default", name="a", uid="uid-a", node="n1", reason="completed"),
}


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_it_is_read_where_it_belongs(stored: Binding | Tombstone) -> None:
    subject = subjects.binding("default", "a", "uid-a")
    assert placement_reading.decode(subject, codec.encode(stored)) == stored


@pytest.mark.parametrize("pod", [("shop", "a", "uid-a"), ("default", "b", "uid-a"), ("default", "a", "uid-b")])
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_what_is_stored_for_another_pod_cannot_be_read(stored: Binding | Tombstone, pod: tuple[str, str, str]) -> None:
    subject = subjects.binding(*pod)
    with pytest.raises(MessageError, match="names pod default/a of uid uid-a, its subject is " + subject):
        placement_reading.decode(subject, codec.encode(stored))
