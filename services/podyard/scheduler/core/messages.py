"""What the scheduler's core is told."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from podyard.cluster.changes import Change
from podyard.framework.extenders import Answers
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.queue_api import PopReply


class SessionStarted(NamedTuple):
    """From now on the queue knows this scheduler by this session; what it holds of an older one is void."""

    session: str


class Popped(NamedTuple):
    """The queue handed out pods. They are scheduled once the view has reached the reply's position."""

    reply: PopReply


class Changed(NamedTuple):
    """The view changed; the table has not followed yet."""

    changes: Sequence[Change]


class Listed(NamedTuple):
    """The view was listed anew, and its differences have come as `Changed`."""


class Work(NamedTuple):
    """Settle waits at Permit; schedule up to `limit` pods that are ready: conflicts whose position is reached first."""

    limit: int


class ExtendersAnswered(NamedTuple):
    """What the extenders said to `AskExtenders` of this number; one that is not awaited is ignored."""

    number: int
    answers: Answers


class BindAnswered(NamedTuple):
    """The binder answered a request."""

    request: BindRequest
    reply: BindReply


Message: TypeAlias = SessionStarted | Popped | Changed | Listed | Work | ExtendersAnswered | BindAnswered
