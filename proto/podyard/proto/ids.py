"""Names and identities. NewTypes, so that a node's name is not taken for a pod's."""

from typing import NewType

PodUid = NewType("PodUid", str)
"""A pod's metadata.uid: unique for ever, unlike its name."""

NodeName = NewType("NodeName", str)
"""A node's metadata.name."""

AttemptId = NewType("AttemptId", str)
"""One scheduling attempt: `<queue epoch>-<n>`, chosen by the queue at the pop."""

SessionId = NewType("SessionId", str)
"""One process start of a scheduler; never used twice."""

Position = NewType("Position", int)
"""A sequence of the CLUSTER stream: resourceVersion, and how far a reader has read."""
