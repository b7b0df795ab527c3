"""What queue, schedulers and binder know of the world, and their plugins."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.proto.binder_api import BindRequest
from podyard.proto.decisions import AttemptRecord
from podyard.proto.queue_api import PopReply
from podyard.queue.core.effects import AttemptEnded
from tests.unit.queue.small_world.clock import Clock, Network
from tests.unit.queue.small_world.log import Log

Respond: TypeAlias = Callable[[Any], None]

_profiles: dict[str, Profile] = {}


def profile_of(part: str) -> Profile:
    """Each part's own plugins, made once: they are dear, and parts of one name follow each other."""
    if part not in _profiles:
        _profiles[part] = default_profile()
    return _profiles[part]


class Surroundings(Protocol):
    """What the parts know of the world."""

    clock: Clock
    network: Network
    log: Log
    last_records: dict[str, AttemptRecord]

    @property
    def stream(self) -> Log: ...
    @property
    def now(self) -> float: ...
    def lag(self) -> float: ...
    def handed_out(self, reply: PopReply) -> None: ...
    def attempt_ended(self, ended: AttemptEnded) -> None: ...
    def to_queue(self, verb: str, request: Any, respond: Respond) -> None: ...
    def to_binder(self, request: BindRequest, respond: Respond) -> None: ...
    def delete(self, name: str, uid: str) -> None: ...
