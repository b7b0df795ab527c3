"""The end of what listens, while the server says nothing."""

import anyio

from podyard.bus._link import Link, LinkSubscription
from podyard.bus.services import Subscription, finish_all
from podyard.bus.settings import BusSettings


class Mute(Link):
    """The server never tells that it has handled anything."""

    def __init__(self) -> None:
        super().__init__(BusSettings(name="test", service="test"))
        self.forgotten: list[str] = []

    async def until_handled(self) -> None:
        await anyio.sleep_forever()

    def forget(self, subscription: LinkSubscription) -> None:
        self.forgotten.append(subscription.subject)


async def test_what_could_not_finish_in_time_is_closed_all_the_same() -> None:
    link = Mute()
    opened = [Subscription(LinkSubscription(link, name, "", lambda *_: None)) for name in ("a", "b", "c")]
    await finish_all(opened, 0.01)
    assert sorted(link.forgotten) == ["a", "b", "c"]


async def test_they_finish_although_their_owner_is_cancelled() -> None:
    link = Mute()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await finish_all([Subscription(LinkSubscription(link, "a", "", lambda *_: None))], 0.01)
    assert link.forgotten == ["a"]
