"""A watch's reader that keeps what it was told, and messages for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from podyard.bus import Bus, Delivery, Outgoing, Watch, WatchSpec
from tests.support.waiting import eventually

LIMIT_S = 10.0


class Reader:
    """Folds deliveries into `content`, as a view would: what a listing does not repeat is gone."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.deliveries: list[Delivery] = []
        self.listings: list[tuple[int, str]] = []
        self.synced_at: list[int] = []
        self.advances: list[int] = []
        self.contacts: list[bool] = []
        self.on_deliver: Callable[[Delivery], None] = lambda delivery: None
        self._listing: dict[str, bytes] | None = None
        self._changed = asyncio.Event()

    def listing(self, target: int, reason: str) -> None:
        self.listings.append((target, reason))
        self._listing = {}
        self._changed.set()

    def deliver(self, delivery: Delivery) -> None:
        self._changed.set()
        self.deliveries.append(delivery)
        self.on_deliver(delivery)
        content = self.content if self._listing is None else self._listing
        if delivery.deleted:
            content.pop(delivery.subject, None)
        else:
            content[delivery.subject] = delivery.payload

    def synced(self, position: int) -> None:
        assert self._listing is not None
        self.content, self._listing = self._listing, None
        self.synced_at.append(position)
        self._changed.set()

    def advanced(self, position: int) -> None:
        self.advances.append(position)
        self._changed.set()

    def contact(self, fresh: bool) -> None:
        self.contacts.append(fresh)
        self._changed.set()

    async def until(self, condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        """Wait for `condition`, looked at after every call of the watch."""
        async with asyncio.timeout(limit_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_synced(self) -> None:
        """Wait for the first listing."""
        await self.until(lambda: self.synced_at)

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason in self.listings]


def spec(
    subjects: str = "cluster.>", follow: str = "", heartbeat_s: float = 0.1, pending_messages: int = 0
) -> WatchSpec:
    return WatchSpec(
        stream="CLUSTER",
        list_subjects=(subjects,),
        follow_subjects=(follow or subjects,),
        heartbeat_s=heartbeat_s,
    )


@asynccontextmanager
async def watching(
    bus: Bus, reader: Reader, what: WatchSpec | None = None, *, watch: Watch | None = None
) -> AsyncIterator[Watch]:
    """A running watch: that one, or one of this reader."""
    watch = watch or bus.watch(what or spec(), reader)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait([task])


def message(name: str, payload: bytes = b"{}", **options: object) -> Outgoing:
    return Outgoing(f"cluster.pods.default.{name}", payload, **options)  # type: ignore[arg-type]


async def gone(bus: Bus, subject: str) -> None:
    """Wait until the server has removed what is on `subject` of CLUSTER."""

    async def removed() -> bool:
        return await bus.get("CLUSTER", subject) is None

    await eventually(f"{subject} has gone", removed)
