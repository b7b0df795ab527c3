"""Who leads, followed in the stream of leases."""

import asyncio

from podyard.bus import Delivery, WatchSpec
from podyard.proto import codec, operations, streams, subjects


class Leaders:
    """Who leads which service, as it is stored. A sink of a watch."""

    SPEC = WatchSpec(
        stream=streams.LEASES.name, list_subjects=streams.LEASES.subjects, follow_subjects=streams.LEASES.subjects
    )

    def __init__(self) -> None:
        self.now: dict[str, operations.Lease] = {}
        self._changed = asyncio.Event()

    async def until(self, service: str, within_s: float, *, other_than: str = "") -> str:
        """The leader's instance, once it is another one than that.

        :raises AssertionError: if none is in time
        """
        try:
            async with asyncio.timeout(within_s):
                while True:
                    lease = self.now.get(service)
                    if lease is not None and lease.holder != other_than:
                        return lease.holder
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"nobody but {other_than or 'nobody'} leads {service} within {within_s} s: {self.now}"
            ) from None

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        service = subjects.decode(delivery.subject.removeprefix("leases."))
        if delivery.deleted:
            self.now.pop(service, None)
        else:
            self.now[service] = codec.decode(operations.Lease, delivery.payload)
        self._changed.set()

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...
