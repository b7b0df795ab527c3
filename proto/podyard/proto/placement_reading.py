"""What is stored of a pod's binding, read at one door (docs/rules.md, a-binding-is-that-of-its-subject)."""

from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.placement import Binding, Placement, Tombstone

_decode = codec.decoder(Placement).decode


def decode(subject: str, payload: bytes | memoryview) -> Binding | Tombstone:
    """The binding or tombstone in a message on `subject`.

    :raises MessageError: if it is none, or is that of another pod
    """
    found = _decode(payload)
    if subjects.binding(found.namespace, found.name, found.uid) != subject:
        raise MessageError(
            "Binding or Tombstone",
            f"it names pod {found.namespace}/{found.name} of uid {found.uid}, its subject is {subject}",
        )
    return found
