"""A lab at work at which bad things are thrown, and what says whether work goes on.

async with sweeping(directory) as sweep:
    await sweep.throw(messages, sweep.store)
    await sweep.clear()
"""

import itertools
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from podyard.bus import Delivery, Outgoing, WatchSpec
from podyard.bus.errors import BusError, RemoteError, TooLarge
from podyard.cli import objects_client
from podyard.proto import streams, subjects
from podyard.proto.message import ObjectRef
from tests.e2e.labs import SHORT
from tests.e2e.stage import Stand, node, stand, state_of

SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads,descheduler"
ROUND: Final = 200
"""Messages between two looks at whether work goes on."""

BAD: Final = "bad-0"
"""The name in a good document; each message that is made of it gets a number of its own."""

ANSWERED_S: Final = 10.0
GONE_S: Final = 120.0
MADE_S: Final = 30.0
"""Within so many seconds controllers see that the owners of what they make are gone."""
STARTED_S: Final = 90.0
TIMES: Final = {**SHORT, "PODYARD_NODE_AGENT_STOP_DELAY_S": "0.05"}
GOOD_NODE: Final = "good"


class Sent(NamedTuple):
    """A bad message with its address."""

    what: str
    subject: str
    payload: bytes


class Stored:
    """Which subjects of CLUSTER hold an object that is not deleted. A sink of a watch."""

    SPEC: Final = WatchSpec(
        stream=streams.CLUSTER.name, list_subjects=streams.CLUSTER.subjects, follow_subjects=streams.CLUSTER.subjects
    )

    def __init__(self) -> None:
        self.objects: set[str] = set()
        self._changed = anyio.Event()

    async def more_than(self, wanted: Iterable[str], within_s: float) -> list[str]:
        """Wait until nothing but these is there, for `within_s` at most; what else is there then."""
        kept = set(wanted)
        with anyio.move_on_after(within_s):
            while self.objects - kept:
                await self._changed.wait()
        return sorted(self.objects - kept)

    def listing(self, target: int, reason: str) -> None: ...

    def deliver(self, delivery: Delivery) -> None:
        with suppress(ValueError):
            subjects.parse_object(delivery.subject)
            (self.objects.discard if delivery.deleted else self.objects.add)(delivery.subject)
            self._changed.set()
            self._changed = anyio.Event()

    def synced(self, position: int) -> None: ...

    def advanced(self, position: int) -> None: ...

    def contact(self, fresh: bool) -> None: ...


class Sweep:
    """A lab at work, and bad messages thrown at it."""

    def __init__(self, here: Stand, stored: Stored) -> None:
        self.here = here
        self.stored = stored
        self.before: set[str] = set()
        """What is there apart from bad things."""
        self._numbers = itertools.count(1)
        self._starts = self._started()

    def _started(self) -> dict[str, int]:
        return {child.instance: child.starts for child in self.here.lab.children}

    async def goes_on(self, after: Iterable[str]) -> None:
        """A pod is made, bound and runs; nobody has ended."""
        name = f"good-{next(self._numbers)}"
        told = "\n  ".join(after)
        try:
            await self.here.do.apply([self.here.pod(name, nodeSelector={GOOD_NODE: "yes"})], "work goes on")
            await self.here.running(name)
            await objects_client.delete(
                self.here.bus, [reference(subjects.object_("pods", "default", name))], grace_period_s=0
            )
            assert self._started() == self._starts, "services have ended, and were started again"
        except Exception as error:
            error.add_note(f"after these bad messages:\n  {told}\nlogs: {self.here.lab.directory}/logs")
            raise

    async def throw(self, messages: Iterator[Sent], send: Any) -> int:
        """Send all, round by round, and see work go on after each; how many they were."""
        count = 0
        while batch := list(itertools.islice(messages, ROUND)):
            await send(batch)
            count += len(batch)
            await self.goes_on(one.what for one in batch)
        return count

    async def store(self, batch: list[Sent]) -> None:
        """As somebody would who may write into the streams."""
        done = await self.here.bus.publish_many([Outgoing(one.subject, one.payload) for one in batch], timeout_s=30)
        failed = [answer for answer in done if isinstance(answer, BusError) and not isinstance(answer, TooLarge)]
        assert not failed, failed[0]

    async def ask(self, batch: list[Sent]) -> None:
        """Each as a request; each is answered, be it with an error.

        :raises AssertionError: if one is not
        """
        for one in batch:
            try:
                await self.here.bus.request(one.subject, one.payload, timeout_s=ANSWERED_S)
            except (RemoteError, TooLarge):
                continue
            except BusError as error:
                raise AssertionError(f"{one.what}: {error}") from error

    async def tell(self, batch: list[Sent]) -> None:
        """Each as a message that nobody answers."""
        for one in batch:
            with suppress(TooLarge):
                self.here.bus.send(one.subject, one.payload)

    async def clear(self) -> None:
        """Delete whatever bad is stored; it goes. What controllers have made of it meanwhile, such as the
        claims of a StatefulSet, which outlive it, is deleted when nothing is left that makes more."""
        left = sorted(self.stored.objects - self.before)
        for within_s in (MADE_S, GONE_S):
            await objects_client.delete(
                self.here.bus, [reference(one) for one in left], grace_period_s=0, timeout_s=GONE_S
            )
            left = await self.stored.more_than(self.before, within_s)
            if not left:
                return
        raise AssertionError(f"{len(left)} objects cannot be deleted: {left[:20]}")

    async def restarted(self) -> None:
        """Kill all services: those that come after them read everything that is stored."""
        for child in self.here.lab.children:
            child.kill()
        await state_of(
            self.here.lab,
            lambda child: child.starts > self._starts[child.instance] and child.state == "ready",
            "all services started again",
            STARTED_S,
        )
        self._starts = self._started()

    def kill(self, service: str) -> None:
        """It is started again."""
        self._starts[self.here.lab.child(service).instance] += 1
        self.here.lab.child(service).kill()

    async def mended(self, subject: str, *words: str) -> None:
        """The binder says which placement cannot be read; a person says what it was, and the binder leads
        again."""
        lab = self.here.lab
        await state_of(
            lab, lambda child: child.service != "binder" or subject in child.reason, f"{subject} named", STARTED_S
        )
        done = await self.here.cli("mend", subject, *words, "--yes")
        assert done.code == 0, done
        await state_of(lab, lambda child: child.state == "ready", "all ready again", STARTED_S)


def reference(subject: str) -> ObjectRef:
    resource, namespace, name = subjects.parse_object(subject)
    return ObjectRef(resource=resource, namespace=namespace, name=name)


@asynccontextmanager
async def sweeping(
    directory: Path, services: str = SERVICES, environment: Mapping[str, str] = TIMES, **options: Any
) -> AsyncGenerator[Sweep]:
    """A lab of its own, with one node that only good pods ask for."""
    stored = Stored()
    async with (
        stand(directory, services, environment=dict(environment), **options) as here,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(here.bus.watch(Stored.SPEC, stored).run)
        await here.join(node(GOOD_NODE, cpu="1000", labels={GOOD_NODE: "yes"}))
        found = Sweep(here, stored)
        await found.goes_on(["nothing"])
        assert not await stored.more_than(
            [one for one in stored.objects if not one.startswith("cluster.pods.")], GONE_S
        )
        found.before = set(stored.objects)
        yield found
        tasks.cancel_scope.cancel()
