"""Which of its nodes an agent may play: two never play one.

Who plays a node says so in the node's status: the session of its process, and the lease under which it leads.
An agent plays a node once its own word stands there, and not before. It puts it there by a compare-and-set
over the version that it has seen, so of several only one succeeds; whoever finds another's word in the place
of its own has lost the node at that moment. It is put

- at once, where nobody has spoken, or who spoke led under the same lease, which is ours now
- where another agent plays, when nothing was heard of the node for the time of patience, neither a heartbeat
  nor a word; or at once, if people say so when the agent is started

Silence counts only while we listen to that node's heartbeats, hear the bus, and run ourselves
(docs/rules.md, silence-is-what-we-listened-to).

What was said of a node's pods in the meantime is not known, by another agent or by us before the node was not
to be played for a while: everything is listed once more before such a node is played.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.proto.facts import NodeStatusFact

LOOKS: Final = 10
"""How often nodes that others play are looked at, in the time of patience."""
STALLED_S: Final = 2.0
"""A look that is so late tells that we did not run: what came meanwhile was not heard in time."""


class Player(NamedTuple):
    """Who plays a node, as its status says."""

    session: str
    """Unique to one start of a process; empty: an agent that does not say."""
    lease: str = ""
    """Name of the lease under which it leads."""


class Patience(NamedTuple):
    """When a node may be taken from another agent."""

    silence_s: float = 50.0
    """As long as `workloads` waits before it calls a node lost."""
    take_over: bool = False
    """At once, whoever plays it."""


class Standing(enum.Enum):
    """What is to become of a node that the agent is to play."""

    PLAY = enum.auto()
    CLAIM = enum.auto()
    LIST = enum.auto()
    """It is ours, and the facts about its pods have to be listed first."""
    WAIT = enum.auto()


class Claim(NamedTuple):
    """A claim that is on its way."""

    over: int
    """Sequence of the version that it replaces, 0 for none."""
    catches_up: bool
    """Whether another agent played the node while we looked on."""


class Awaited:
    """A node that another agent plays."""

    __slots__ = ("by", "heard_at", "listening", "version")

    def __init__(self, by: Player, version: int, now: float) -> None:
        self.by = by
        self.version = version
        """Sequence of what it has said last of the node."""
        self.heard_at = now
        """When it gave a sign of life, or we began to listen."""
        self.listening = False


class Claims:
    """Of one term. Owned by one core."""

    def __init__(self, player: Player, patience: Patience) -> None:
        self._player = player
        self._patience = patience
        self._claimed: dict[str, Claim] = {}
        self._listing: set[str] = set()
        """Nodes that are ours and wait for a listing."""
        self._awaited: dict[str, Awaited] = {}
        self._let_go: set[str] = set()
        """Nodes that were ours and are not to be played: what we said of their pods since is not known."""
        self._lost: set[str] = set()
        """Nodes that were taken from us: our lease did not protect them."""
        self._hears = False
        self._look_s = patience.silence_s / LOOKS
        self._look_at = float("inf")

    @property
    def awaited(self) -> Mapping[str, Awaited]:
        """Nodes that others play, by name."""
        return self._awaited

    @property
    def next_due(self) -> float | None:
        """When to look at those that others play."""
        return self._look_at if self._awaited else None

    def judge(self, name: str, stored: NodeStatusFact | None, version: int, *, playing: bool, now: float) -> Standing:
        """What the node's status asks for.

        :param stored: as it is stored
        :param version: its sequence
        :param playing: whether we play the node
        """
        said = _player(stored)
        if said == self._player:
            return self._ours(name)
        if playing and not said.session:
            return Standing.PLAY
        if not said.session or (not playing and self._may_take(name, said)):
            claimed = self._claimed.get(name)
            return Standing.CLAIM if claimed is None or claimed.over != version else Standing.WAIT
        self._await(name, said, version, playing=playing, now=now)
        return Standing.WAIT

    def claim(self, name: str, stored: NodeStatusFact | None, version: int) -> None:
        """The node's claim goes out, over that version of its status."""
        taken = bool(_player(stored).session) and self._patience.take_over
        before = self._claimed.get(name)
        catches_up = taken or name in self._awaited or (before is not None and before.catches_up)
        self._claimed[name] = Claim(version, catches_up)
        self._awaited.pop(name, None)

    def forget(self, name: str) -> bool:
        """The node is gone; whether something was said of it already."""
        self._let_go.discard(name)
        return self._drop(name)

    def let_go(self, name: str, *, playing: bool) -> None:
        """The node is not to be played any more, or still not.

        :param playing: whether we play the node
        """
        if self._drop(name) or playing:
            self._let_go.add(name)

    def listed(self) -> list[str]:
        """Everything was listed: these nodes may be played now."""
        found = sorted(self._listing)
        self._listing.clear()
        return found

    def due(self, now: float) -> list[str]:
        """Nodes that were silent for so long that they may be claimed."""
        if not self._awaited or now < self._look_at:
            return []
        self._look_at = now + self._look_s
        return [name for name, one in self._awaited.items() if self._is_silent(one, now)]

    # ---- what is heard

    def run_on(self, now: float) -> None:
        """Before anything else of a step: did we run all the time?"""
        if self._awaited and now > self._look_at + STALLED_S:
            self._begin_hearing(self._awaited.values(), now)
            self._look_at = now + self._look_s

    def hears(self, hears: bool, now: float) -> None:
        """We hear the bus now, or do not any more; until it is said we do not."""
        self._hears = hears
        self._begin_hearing(self._awaited.values(), now)

    def listens(self, name: str, now: float) -> None:
        """Heartbeats of that node would reach us from now on."""
        one = self._awaited.get(name)
        if one is not None:
            one.listening = True
            one.heard_at = now

    def beat(self, name: str, now: float) -> None:
        """A sign of life."""
        one = self._awaited.get(name)
        if one is not None:
            one.heard_at = now

    # ----

    def _drop(self, name: str) -> bool:
        self._awaited.pop(name, None)
        self._lost.discard(name)
        said = name in self._claimed or name in self._listing
        self._claimed.pop(name, None)
        self._listing.discard(name)
        return said

    def _ours(self, name: str) -> Standing:
        if name in self._listing:
            return Standing.WAIT
        claim = self._claimed.pop(name, None)
        self._awaited.pop(name, None)
        if name not in self._let_go and (claim is None or not claim.catches_up):
            return Standing.PLAY
        self._let_go.discard(name)
        self._listing.add(name)
        return Standing.LIST

    def _may_take(self, name: str, said: Player) -> bool:
        if name in self._lost or name in self._awaited:
            return False
        return said.lease == self._player.lease or self._patience.take_over

    def _await(self, name: str, said: Player, version: int, *, playing: bool, now: float) -> None:
        if playing:
            self._lost.add(name)
        self._claimed.pop(name, None)
        self._listing.discard(name)
        if not self._awaited:
            self._look_at = now + self._look_s
        one = self._awaited.setdefault(name, Awaited(said, version, now))
        if one.version != version:
            one.by, one.version, one.heard_at = said, version, now

    def _is_silent(self, one: Awaited, now: float) -> bool:
        return self._hears and one.listening and now >= one.heard_at + self._patience.silence_s

    def _begin_hearing(self, awaited: Iterable[Awaited], now: float) -> None:
        for one in awaited:
            one.heard_at = now


def _player(stored: NodeStatusFact | None) -> Player:
    return Player("") if stored is None else Player(stored.session, stored.lease)
