"""Keeps a view up to date from the bus, and lets others wait until it has read far enough.

The view is a pure fold; the informer feeds it, hands its changes on, and carries out its effects: dead
letters, new listings.
"""

import heapq
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, NoReturn, Protocol

import anyio

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.bus.watch import Watch, WatchSpec
from podyard.cluster.changes import Change, DeadDelivery, Effect
from podyard.proto import streams, subjects
from podyard.shell.causes import Told
from podyard.shell.set_aside import SetAside

log: Final = logging.getLogger("podyard.shell")


class Followed(NamedTuple):
    """What a reader lists, and what it follows afterwards."""

    listed: tuple[str, ...]
    followed: tuple[str, ...]


def with_placements(objects: Iterable[str]) -> Followed:
    """Objects and facts by wildcard, with placements: bindings are listed, commit records followed in their
    place."""
    base = tuple(dict.fromkeys(objects))
    return Followed((*base, subjects.ALL_BINDINGS, subjects.FENCE), (*base, subjects.ALL_COMMITS, subjects.FENCE))


EVERYTHING: Final = with_placements((subjects.OBJECTS_WITHOUT_FACTS, *subjects.ALL_FACTS))
"""All objects, as they are."""
WITH_NOMINATIONS: Final = with_placements(
    (subjects.OBJECTS_WITHOUT_FACTS, *subjects.ALL_FACTS, subjects.ALL_NOMINATIONS)
)
"""The same, and which nodes pods preempted for."""


def base_subjects(*more: str) -> Followed:
    """What queue, scheduler and binder all follow, and `more` wildcards (for all three alike, or positions do
    not compare)."""
    return with_placements((*subjects.FOLLOWED_BY_QUEUE_AND_SCHEDULER, *more))


class View(Protocol):
    """A fold that an informer can feed: `ClusterView`, `DocumentView`."""

    @property
    def position(self) -> int: ...
    def begin_listing(self) -> None: ...
    def end_listing(self, position: int) -> list[Change]: ...
    def apply(self, delivery: Delivery) -> list[Change]: ...
    def advance(self, position: int) -> None: ...
    def take_effects(self) -> Sequence[Effect]: ...


def ignore(*_: object) -> None:
    """For a callback that nobody waits for."""


class Informer:
    """Feeds one view. Owned by one event loop; its callbacks are synchronous and see the view as of their
    changes."""

    def __init__(
        self,
        bus: Bus,
        view: View,
        subjects: Followed,
        *,
        service: str,
        on_changes: Callable[[Told], None] = ignore,
        on_listed: Callable[[str], None] = ignore,
        on_contact: Callable[[bool], None] = ignore,
        on_unreadable: Callable[[Delivery, str], None] = ignore,
        aside: SetAside | None = None,
        together: bool = False,
    ) -> None:
        """
        :param service: whose dead letters the unreadable versions become
        :param on_changes: called with what a delivery or a listing changed, at least one change
        :param on_listed: called after each complete listing, after its changes, with the reason for it
            ("start" at first): whoever derived state from changes must now doubt it
        :param on_contact: called with False when nothing was heard for 2 s, with True when it was heard again
        :param on_unreadable: called with what cannot be read, and why, when its dead letter is sent: once,
            however often it is listed
        :param aside: what is set aside; None: only what this informer's view raises on
        :param together: changes of deliveries that were read at one go are told at one go, when the view has
            them all, before anybody else runs: less work for each
        """
        self.view = view
        if aside is None:
            aside = SetAside()
        self._sink = _Sink(bus, view, service, on_changes, on_listed, on_contact, on_unreadable, aside, together)
        spec = WatchSpec(stream=streams.CLUSTER.name, list_subjects=subjects.listed, follow_subjects=subjects.followed)
        self._watch: Watch = bus.watch(spec, self._sink, on_read=self._sink.tell if together else None)
        self._sink.relist = self._watch.relist

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the view; 0 before the first listing is complete."""
        return self.view.position

    @property
    def fresh(self) -> bool:
        """Whether the view is complete and the server was heard of within 2 s."""
        return self._sink.fresh

    async def run(self) -> NoReturn:
        """Feed the view for ever; cancel to end it."""
        await self._watch.run()

    async def synced(self) -> None:
        """Wait for the first complete listing."""
        await self._sink.first_listing.wait()

    async def reached(self, position: int) -> None:
        """Wait until the view holds everything up to `position`; bound it by a time-out if the position may
        be wrong."""
        if self.view.position < position:
            await self._sink.waiter(position).wait()

    def relist(self, reason: str) -> None:
        """List again soon: the view was found wrong."""
        self._watch.relist(reason)


class _Sink:
    """What the watch calls: carries deliveries into the view, and what comes of them out of it."""

    def __init__(
        self,
        bus: Bus,
        view: View,
        service: str,
        on_changes: Callable[[Told], None],
        on_listed: Callable[[str], None],
        on_contact: Callable[[bool], None],
        on_unreadable: Callable[[Delivery, str], None],
        aside: SetAside,
        together: bool,
    ) -> None:
        self.fresh = False
        self.first_listing = anyio.Event()
        self.relist: Callable[[str], None] = ignore
        self._bus = bus
        self._view = view
        self._service = service
        self._on_changes = on_changes
        self._on_listed = on_listed
        self._on_contact = on_contact
        self._on_unreadable = on_unreadable
        self._aside = aside
        self._together = together
        self._changes: list[Change] = []
        """What nobody was told of yet."""
        self._made_by: list[Delivery] = []
        """For each of these the delivery that made it."""
        self._reason = ""
        self._waiting: list[tuple[int, int, anyio.Event]] = []
        self._ticket = itertools.count()

    def listing(self, target: int, reason: str) -> None:
        """A listing begins; the view shows the old state until it ends."""
        del target
        self.tell()
        self._reason = reason
        self._view.begin_listing()

    def deliver(self, delivery: Delivery) -> None:
        """One message."""
        try:
            changes = self._view.apply(self._aside.admit(delivery))
        except (
            Exception
        ) as error:  # boundary: a fold that raised may be half done, so all is listed anew without the message
            self._raised(delivery, error)
            return
        if changes:
            self._changes += changes
            self._made_by += [delivery] * len(changes)
        if not self._together:
            self.tell()

    def tell(self) -> None:
        """Hand on what came of the last deliveries."""
        if self._changes:
            told = Told(self._changes, self._made_by)
            self._changes, self._made_by = [], []
            self._on_changes(told)
        self._carry_out()
        if self._waiting:
            self._wake()

    def _raised(self, delivery: Delivery, error: Exception) -> None:
        log.error("the view raised on %s @%d, which is set aside", delivery.subject, delivery.sequence, exc_info=error)
        self._bus.dead_letter_soon(self._service, delivery, f"the view raised {type(error).__name__}: {error}")
        self._aside.put(delivery)
        self.relist(f"the view raised on {delivery.subject} @{delivery.sequence}")

    def synced(self, position: int) -> None:
        """The listing is complete."""
        changes = self._view.end_listing(position)
        if changes:
            self._on_changes(Told(changes))
        self._on_listed(self._reason)
        self._carry_out()
        self.first_listing.set()
        self.contact(True)
        self._wake()

    def advanced(self, position: int) -> None:
        """The stream moved on without a message for this view."""
        self.tell()
        self._view.advance(position)
        self._wake()

    def contact(self, fresh: bool) -> None:
        """The server fell silent, or is heard again."""
        fresh = fresh and self.first_listing.is_set()
        if fresh != self.fresh:
            self.fresh = fresh
            self._on_contact(fresh)

    def waiter(self, position: int) -> anyio.Event:
        """An event that is set when the view reaches `position`."""
        event = anyio.Event()
        heapq.heappush(self._waiting, (position, next(self._ticket), event))
        return event

    def _carry_out(self) -> None:
        for effect in self._view.take_effects():
            if isinstance(effect, DeadDelivery):
                self._bus.dead_letter_soon(self._service, effect.delivery, effect.reason)  # says so in the log, too
                self._on_unreadable(effect.delivery, effect.reason)
            else:
                self.relist(effect.reason)

    def _wake(self) -> None:
        position = self._view.position
        while self._waiting and self._waiting[0][0] <= position:
            heapq.heappop(self._waiting)[2].set()
