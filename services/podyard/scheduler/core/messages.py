"""What the scheduler's core is told."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName
from podyard.cluster.pods import PodView
from podyard.framework.extenders import Answers
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.queue_api import PopReply


class SessionStarted(NamedTuple):
    """The queue knows this scheduler by a new session. What the old one popped is not to be scheduled."""

    session: str


class Popped(NamedTuple):
    """The queue handed out pods. They are scheduled once the view has reached the reply's position."""

    reply: PopReply


class Changed(NamedTuple):
    """The view has changed. The node table is to follow it."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view was listed anew. Its differences came before, as `Changed`."""


class Work(NamedTuple):
    """End waits at Permit, then make attempts.

    First come pods whose older attempt is settled, then decisions that conflicted, then popped pods.
    """

    limit: int
    """Attempts at most."""


class ExtendersAnswered(NamedTuple):
    """What the extenders said to the `AskExtenders` of this ticket. One that is not awaited is ignored."""

    ticket: int
    answers: Answers


class Would(NamedTuple):
    """Somebody asks where a pod would go. Answered under the ticket by `Reply` or `Declined`, at once or when
    extenders have answered."""

    ticket: int
    pod: NamespacedName | PodView
    """A stored one, or one that is not."""
    limit: int
    """Nodes that are told by name."""


class BindAnswered(NamedTuple):
    """The binder answered some decisions of a request."""

    request: BindRequest
    reply: BindReply


Message: TypeAlias = SessionStarted | Popped | Changed | Listed | Work | ExtendersAnswered | Would | BindAnswered
